"""The gain of a guess that is right, and the cost of one that is wrong.

Each problem is searched without a guess, with one within a tenth of the cube's side of the optimum on every axis, and
with one as far from it as the cube lets it be; the three are paired by their seeds. Reported: the median regret, after
so many trials, as a share of the spread of a thousand uniform points' values; in how many pairs the study with a guess
is ahead then; and the delay, how many trials later (or, where negative, earlier) it has reached what the one without
had after so many: the median over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import raybo
from benchmarks.figures import Figure, Figures, command
from trials.synthetic import A6, P6, hartmann

Array = NDArray[np.float64]
Problem = tuple[int, Callable[[Array], float], Array]  # axes, what is maximised on the unit cube, where it is highest


def branin(u: Array) -> float:
    """Three equal valleys."""
    x, y = 15.0 * u[0] - 5.0, 15.0 * u[1]
    b, c, t = 5.1 / (4 * math.pi**2), 5 / math.pi, 1 / (8 * math.pi)
    return -float((y - b * x**2 + c * x - 6) ** 2 + 10 * (1 - t) * math.cos(x) + 10)


def hartmann6(u: Array) -> float:
    """Six axes, six bumps."""
    return -hartmann(u, A6, P6)


def training(u: Array) -> float:
    """A loss of four hyperparameters: one matters much, two hang together, one hardly matters."""
    z = u - np.array([0.62, 0.3, 0.45, 0.5])
    return -float(
        8 * z[0] ** 2 + 2 * (z[1] + z[2]) ** 2 + (z[1] - z[2]) ** 2 + 0.02 * z[3] ** 2 + 2 * max(0.0, u[0] - 0.85)
    )


def ackley(u: Array) -> float:
    """Many small hills on a large one, three axes."""
    x = 20.0 * u - np.array([13.0, 8.0, 11.0])
    return float(
        20 * math.exp(-0.2 * math.sqrt((x**2).mean())) + math.exp(np.cos(2 * math.pi * x).mean()) - 20 - math.e
    )


PROBLEMS: dict[str, Problem] = {
    "branin": (2, branin, np.array([(math.pi + 5) / 15, 2.275 / 15])),
    "training": (4, training, np.array([0.62, 0.3, 0.45, 0.5])),
    "ackley": (3, ackley, np.array([13.0, 8.0, 11.0]) / 20),
    "hartmann6": (6, hartmann6, np.array([0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573])),
}
WORDS = {"none": "without a guess", "right": "guessed right", "wrong": "guessed wrong"}
KINDS = tuple(WORDS)
QUICK = {"seeds": 1, "trials": 12, "problems": "branin", "method": "random"}


def study(problem: Problem, method: str, kind: str, seed: int, trials: int) -> Array:  # (trials,)
    """The regret of the best after each trial."""
    d, f, optimum = problem
    rng = np.random.default_rng(seed)
    right = np.clip(optimum + rng.uniform(-0.1, 0.1, d), 0.0, 1.0)
    guess = {"none": [None] * d, "right": right.tolist(), "wrong": np.round(1.0 - optimum).tolist()}[kind]
    space = raybo.Space({f"x{i}": raybo.Float(0, 1, guess=at) for i, at in enumerate(guess)})
    searcher = raybo.Searcher(space, method, "max", seed, trials)
    best = []
    for _ in range(trials):
        trial = searcher.ask()
        searcher.tell(trial, f(np.array(list(trial.config.values()))))
        best.append(searcher.ledger.incumbent.value if searcher.ledger.incumbent else None)
    return f(optimum) - np.array(best, dtype=np.float64)


def _ahead(none: Array, other: Array, after: int) -> str:  # twice (seeds, trials)
    """In how many pairs the other is ahead after so many trials, and in how many behind."""
    difference = other[:, after - 1] - none[:, after - 1]
    return f"{(difference < 0).sum()}:{(difference > 0).sum()}"


def delay(none: Array, other: Array, after: int) -> int:
    """Return how many trials later the other reached the first one's value after so many; its length if never."""
    reached = np.flatnonzero(other <= none[after - 1])
    first = int(np.flatnonzero(none <= none[after - 1])[0])
    return (int(reached[0]) if len(reached) else len(other)) - first


def figures(
    seeds: int = 20, first: int = 0, trials: int = 40, method: str = "auto", problems: str = ",".join(PROBLEMS)
) -> Figures:
    """Search with and without guesses, on seeds from the first."""
    for name in problems.split(","):
        problem = PROBLEMS[name]
        d, f, _ = problem
        spread = float(np.std([f(u) for u in np.random.default_rng(0).random((1_000, d))]))
        found = {
            kind: np.array([study(problem, method, kind, seed, trials) for seed in range(first, first + seeds)])
            for kind in KINDS
        }
        ends = (trials // 4, trials // 2, trials)
        for kind, runs in found.items():
            regrets = ", ".join(f"{float(np.median(runs[:, n - 1])) / spread:.3g}" for n in ends)
            what = f"{name}, {WORDS[kind]}: median regret over {seeds} seeds after {', '.join(map(str, ends))} trials"
            yield Figure(what, regrets)
            if kind == "none":
                continue
            pairs = ", ".join(_ahead(found["none"], runs, n) for n in ends)
            yield Figure(
                f"{name}, {WORDS[kind]}: pairs ahead of and behind none after {', '.join(map(str, ends))}", pairs
            )
            for n in (3 * trials // 8, 3 * trials // 4):
                late = np.median([delay(a, b, n) for a, b in zip(found["none"], runs, strict=True)])
                yield Figure(f"{name}, {WORDS[kind]}: later than {n} trials without one", f"{late:+.0f} trials")


if __name__ == "__main__":
    command(figures)
