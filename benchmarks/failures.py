"""The failures of trials if a part of the space always fails, or one trial in ten by accident.

Rule: the two fifths of the space with the highest score fail; in three of the four problems the best lies at their
edge or beyond it. Accident: one trial in ten fails, wherever it is. Told per problem and kind: how many of the trials
after the first twenty fail, and the best value that was found, medians over the seeds, on the same seeds for each
method. `random` fails as often as the space does.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import qmc

import raybo
from benchmarks.figures import Figure, Figures, command
from benchmarks.guesses import Array, branin, hartmann6, training
from raybo.common.threads import limit_threads

FAILING = 0.4  # of the space, by the rule
ACCIDENTS = 0.1  # of the trials
FIRST = 20  # trials whose failures do not count
KINDS = ("rule", "accident")
QUICK = {"seeds": 1, "trials": 24, "problems": "branin", "methods": "random"}


def rosenbrock(u: Array) -> float:
    """A bent valley in four axes, its logarithm."""
    z = 4.0 * u - 2.0
    return -math.log1p(float((100.0 * (z[1:] - z[:-1] ** 2) ** 2 + (1.0 - z[:-1]) ** 2).sum()))


PROBLEMS: dict[str, tuple[int, Callable[[Array], float], Callable[[Array], Array]]] = {  # axes, f, score of U (n, d)
    "branin": (2, branin, lambda U: U[:, 0] + U[:, 1]),
    "training": (4, training, lambda U: U[:, 0] + 0.7 * U[:, 1] - U[:, 2] ** 2),
    "hartmann6": (6, hartmann6, lambda U: U[:, 0] - U[:, 1] ** 2 + 0.5 * U[:, 4]),
    "rosenbrock": (4, rosenbrock, lambda U: np.sin(3.0 * U[:, 0]) + U[:, 3] * U[:, 1]),
}


def study(name: str, kind: str, method: str, seed: int, trials: int) -> tuple[int, float]:
    """Return how many trials after the first twenty fail, and the best value."""
    d, f, score = PROBLEMS[name]
    limit = float(np.quantile(score(qmc.Sobol(d, rng=np.random.default_rng(0)).random(2**13)), 1.0 - FAILING))
    searcher = raybo.Searcher({f"x{i}": raybo.Float(0, 1) for i in range(d)}, method, "max", seed, trials)
    accidents = np.random.default_rng([seed, 9])
    failed = 0
    for number in range(trials):
        trial = searcher.ask()
        u = np.array(list(trial.config.values()))
        fails = score(u[None, :])[0] > limit if kind == "rule" else accidents.random() < ACCIDENTS
        failed += bool(fails) and number >= FIRST
        if fails:
            searcher.fail(trial, kind)
        else:
            searcher.tell(trial, f(u))
    return failed, searcher.best.value or 0.0


def figures(
    seeds: int = 6,
    first: int = 0,
    trials: int = 60,
    problems: str = ",".join(PROBLEMS),
    methods: str = "auto,ei,random",
) -> Figures:
    """Search where trials fail, on seeds from the first."""
    for name in problems.split(","):
        for kind in KINDS:
            for method in methods.split(","):
                with limit_threads(1):
                    found = [study(name, kind, method, seed, trials) for seed in range(first, first + seeds)]
                failures, values = zip(*found, strict=True)
                yield Figure(
                    f"{name}, {kind}, {method}: failed after the first {FIRST}, best value, medians over {seeds} seeds",
                    f"{float(np.median(failures)):g} of {trials - FIRST}, {float(np.median(values)):.5g}",
                )


if __name__ == "__main__":
    command(figures)
