"""Spaces whose choices open parameters of their own: `auto` beside its parts, random search and Optuna's TPE.

Six shapes of space: branches of equal and of very different sizes, one to three levels deep, with numbers, integers
and categories. A seed draws the score: every branch has a highest value of its own, the best one's is 0.97, at a place
of its own, around which the score falls like a bell whose width differs from axis to axis. Three shapes were looked at
while `auto` was made, with seeds below 20; the other three were not. The methods of one seed search the same score.
Their best scores are compared in pairs by Wilcoxon's signed-rank test: the target is missed where `auto` is worse with
p < 0.05, one-sided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon

import raybo
from benchmarks.figures import Figure, Figures, command, missing
from benchmarks.searches import processes
from raybo import Categorical, Float, Integer
from raybo.common.threads import limit_threads
from raybo.space import Array, Config

QUICK = {"seeds": 2, "trials": 25, "shapes": "nested,deep"}
AUTO, TPE = "auto", "Optuna's TPE"
RIVALS = ("ei", "gp-ucb", "random", TPE)
BEST, WORST, NEXT = (
    0.97,
    0.3,
    (0.03, 0.15),
)  # the best branch's highest value; the score far off; how much less others have
WIDTHS = (0.25, 0.8)  # of the bells, in sides of the cube
WRONG = 0.85  # what a category that opens nothing and is not the best one leaves of the bell

RATE = Float(1e-4, 1.0, log=True)
SHARE = Float(0.0, 1.0)
LAYER = {"units": Integer(8, 512, log=True), "activation": Categorical(["relu", "tanh", "gelu"])}

SEEN: dict[str, dict[str, Any]] = {
    "nested": {
        "model": Categorical(
            [
                {"kind": "a", "x": SHARE, "y": SHARE},
                {
                    "kind": "b",
                    "lr": RATE,
                    "h": Integer(4, 256, log=True),
                    "alpha": SHARE,
                    "optimiser": Categorical([{"adam": True, "beta1": SHARE}, {"sgd": True, "momentum": SHARE}]),
                },
            ]
        )
    },
    "five": {
        "seed_share": SHARE,
        "model": Categorical([{"kind": f"model {i}", "p": RATE, "q": SHARE} for i in range(5)]),
    },
    "switches": {
        "lr": RATE,
        "decay": RATE,
        "dropout": SHARE,
        "batch": Integer(16, 256, log=True),
        "stop": Categorical([None, {"patience": Integer(1, 20), "gain": RATE}]),
        "warm": Categorical([None, {"steps": Integer(1, 1000, log=True)}]),
    },
}
FRESH: dict[str, dict[str, Any]] = {
    "deep": {
        "lr": RATE,
        "family": Categorical(
            [
                {"name": "p", "a": SHARE},
                {
                    "name": "q",
                    "b": SHARE,
                    "kernel": Categorical(
                        [
                            {"name": "plain", "width": RATE},
                            {
                                "name": "bent",
                                "degree": Integer(1, 9),
                                "offset": Categorical([None, {"at": SHARE, "by": SHARE}]),
                            },
                        ]
                    ),
                },
                {"name": "r", "c": SHARE, "mode": Categorical([{"soft": SHARE}, {"hard": Integer(0, 12)}])},
            ]
        ),
    },
    "layers": {
        "lr": RATE,
        "layers": Categorical([{str(i): LAYER for i in range(depth)} for depth in (1, 2, 3)]),
    },
    "unequal": {
        "model": Categorical(
            [
                "constant",
                {"tree": True, "depth": Integer(1, 12), "leaf": Integer(1, 60), "share": SHARE},
                {
                    "net": True,
                    "lr": RATE,
                    "decay": RATE,
                    "units": Integer(8, 512, log=True),
                    "dropout": SHARE,
                    "momentum": SHARE,
                    "clip": RATE,
                    "loss": Categorical(["hinge", "log", "squared"]),
                },
            ]
        )
    },
}
SHAPES = {**SEEN, **FRESH}


@dataclass(frozen=True)
class Bell:
    """The score within one branch.

    Attributes:
        height: the highest score. centre: (d,), where it is taken. width: (d,), in sides of the cube.
        numbers, categories: (d,), the axes that are open there, but for the choices that make the branch.
    """

    height: float
    centre: Array
    width: Array
    numbers: NDArray[np.bool_]
    categories: NDArray[np.bool_]

    def at(self, x: Array) -> float:  # (d,)
        """The score."""
        away = (x - self.centre) / self.width
        wrong = np.abs(x - self.centre)[self.categories] > 1e-9
        fall = math.exp(-0.5 * float(np.sum(away[self.numbers] ** 2))) * WRONG ** int(wrong.sum())
        return WORST + (self.height - WORST) * fall


class Score:
    """A score on a conditional space, drawn by a seed: from 0.3 to 0.97, the best."""

    def __init__(self, shape: str, seed: int) -> None:
        self.space = raybo.Space(SHAPES[shape])
        cube = self.space.cube
        rng = np.random.default_rng([list(SHAPES).index(shape), seed])
        self.forks = sorted({condition[0] for condition in cube.conditions if condition is not None})
        points = cube.snap(rng.random((4096, cube.d)))
        self.bells: dict[tuple[float, ...], Bell] = {}
        for branch in np.unique(points[:, self.forks], axis=0):
            there = points[(points[:, self.forks] == branch).all(axis=1)]
            is_open = np.ptp(there, axis=0) > 0.0
            categorical = np.array(cube.categorical)
            height, width = BEST - rng.uniform(*NEXT), rng.uniform(*WIDTHS, cube.d)
            centre = cube.snap(np.where(categorical, there[0], rng.uniform(0.1, 0.9, cube.d))[None, :])[0]
            self.bells[tuple(branch)] = Bell(height, centre, width, is_open & ~categorical, is_open & categorical)
        candidates = [branch for branch, bell in self.bells.items() if bell.numbers.any()]
        best = candidates[rng.integers(len(candidates))]
        self.bells[best] = replace(self.bells[best], height=BEST)

    def __call__(self, config: Config) -> float:
        x = self.space.encode([config])[0]
        return self.bells[tuple(x[self.forks])].at(x)


def best_of(method: str, trials: int, run: tuple[str, int]) -> float:
    """The best score of a search; run is the shape and the seed. NaN if Optuna is missing."""
    shape, seed = run
    score = Score(shape, seed)
    if method == TPE:
        try:
            return tpe(score, trials, seed)
        except ImportError:
            return float("nan")
    with limit_threads(1):
        searcher = raybo.Searcher(score.space, method, "max", seed, trials)
        for _ in range(trials):
            trial = searcher.ask()
            searcher.tell(trial, score(trial.config))
    return float(searcher.best.value or 0.0)


def tpe(score: Score, trials: int, seed: int) -> float:
    """The best score of Optuna's TPESampler as it comes, asked branch by branch."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed), direction="maximize")
    study.optimize(lambda trial: score(suggested(trial, score.space.template, ())), n_trials=trials)
    return float(study.best_value)


def suggested(trial: Any, template: Any, path: tuple[str, ...]) -> Any:
    """The template with what an Optuna trial suggests for its open parameters."""
    name = ".".join(path)
    if isinstance(template, dict):
        return {key: suggested(trial, inner, (*path, str(key))) for key, inner in template.items()}
    if isinstance(template, Categorical):
        position = trial.suggest_categorical(name, list(range(len(template.choices))))
        return suggested(trial, template.choices[position], (*path, str(position)))
    if isinstance(template, Integer):
        return trial.suggest_int(name, template.low, template.high, log=template.log)
    if isinstance(template, Float):
        return trial.suggest_float(name, template.low, template.high, step=template.step, log=template.log)
    return template


def figures(
    shapes: str = ",".join(SHAPES), seeds: int = 20, first: int = 20, trials: int = 50, methods: str = ",".join(RIVALS)
) -> Figures:
    """Each shape's scores, and then auto beside each rival over all of them and over the fresh ones."""
    found: dict[tuple[str, str], Array] = {}
    names = [AUTO, *methods.split(",")]
    with processes() as pool:
        for shape in shapes.split(","):
            runs = [(shape, seed) for seed in range(first, first + seeds)]
            for name in names:
                found[name, shape] = np.array(list(pool.map(partial(best_of, name, trials), runs)))
                low, median, high = np.quantile(found[name, shape], [0.25, 0.5, 0.75])
                text = f"mean {found[name, shape].mean():.3f}, quartiles {low:.3f}, {median:.3f}, {high:.3f}"
                what = f"{shape}, {name}, best of {trials} trials, {seeds} seeds"
                yield missing(what, "optuna") if np.isnan(median) else Figure(what, text)
    for group, members in (("all shapes", SHAPES), ("fresh shapes", FRESH)):
        chosen = [shape for shape in shapes.split(",") if shape in members]
        for rival in names[1:]:
            if chosen:
                yield beside(group, rival, *(np.concatenate([found[n, s] for s in chosen]) for n in (AUTO, rival)))


def beside(group: str, rival: str, ours: Array, theirs: Array) -> Figure:
    """Return how much higher auto's scores are in pairs, if it wins, and how likely it is no worse."""
    what, differences = f"auto's score less {rival}'s, {group}", ours - theirs
    if np.isnan(theirs).any():
        return missing(what, "optuna")
    worse = 1.0 if not differences.any() else float(wilcoxon(differences, alternative="less").pvalue)
    better = 1.0 if not differences.any() else float(wilcoxon(differences, alternative="greater").pvalue)
    error = float(differences.std() / math.sqrt(len(differences)))
    wins, losses = int((differences > 1e-3).sum()), int((differences < -1e-3).sum())
    text = (
        f"{differences.mean():+.4f} +- {error:.4f}, {wins} won, {losses} lost, p better {better:.2g}, worse {worse:.2g}"
    )
    return Figure(what, text, "not worse, p 0.05", bool(worse >= 0.05))


if __name__ == "__main__":
    command(figures)
