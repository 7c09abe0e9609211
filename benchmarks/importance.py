"""Count how often the 90 % intervals of a report's Sobol indices hold the true ones.

Ishigami's function, Sobol's g and a linear one have indices in closed form, 24 together. Each is searched by every
method from several seeds; an index counts as held if it is in its interval, or within half a per cent of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, command
from raybo.common.threads import limit_threads
from raybo.record.goals import Goal
from raybo.reporting.emulator import Emulator
from raybo.reporting.importance import importance
from raybo.space import Array

QUICK = {"seeds": 1, "trials": "30", "methods": "sobol"}
NEAR = 0.005
A, B = 7.0, 0.1  # of Ishigami's function
G = np.array([0.0, 1.0, 4.5, 9.0])  # of Sobol's g
SLOPES = np.array([5.0, 4.0, 3.0, 2.0, 1.0])


def ishigami(u: Array) -> float:
    """Ishigami's function on the unit cube."""
    x = math.pi * (2.0 * u - 1.0)
    return float(np.sin(x[0]) + A * np.sin(x[1]) ** 2 + B * x[2] ** 4 * np.sin(x[0]))


def _of_ishigami() -> tuple[Array, Array]:
    first, second = 0.5 * (1 + B * math.pi**4 / 5) ** 2, A**2 / 8
    both = B**2 * math.pi**8 * (1 / 18 - 1 / 50)
    total = first + second + both
    return np.array([first, second, 0.0]) / total, np.array([first + both, second, both]) / total


def _of_g() -> tuple[Array, Array]:
    parts = 1.0 / (3.0 * (1.0 + G) ** 2)
    variance = np.prod(1.0 + parts) - 1.0
    return parts / variance, parts * np.prod(1.0 + parts) / (1.0 + parts) / variance


def _of_linear() -> tuple[Array, Array]:
    shares = SLOPES**2 / (SLOPES**2).sum()
    return shares, shares


PROBLEMS: dict[str, tuple[int, Callable[[Array], float], tuple[Array, Array]]] = {  # axes, f, main and total indices
    "ishigami": (3, ishigami, _of_ishigami()),
    "g": (4, lambda u: float(np.prod((np.abs(4 * u - 2) + G) / (1 + G))), _of_g()),
    "linear": (5, lambda u: float(u @ SLOPES), _of_linear()),
}


def held(name: str, method: str, trials: int, seed: int) -> tuple[int, int]:
    """Return how many true indices are in their intervals, and how many there are."""
    d, f, (main, total) = PROBLEMS[name]
    searcher = raybo.Searcher({f"x{i}": raybo.Float(0, 1) for i in range(d)}, method, "max", seed, trials)
    for _ in range(trials):
        trial = searcher.ask()
        searcher.tell(trial, f(np.array(list(trial.config.values()))))
    emulator = Emulator.of(cast(Any, SimpleNamespace(history=searcher.history, goal=Goal("max"))))
    assert emulator is not None
    found = importance(emulator)
    inside = [
        (interval[0] - NEAR <= truth) & (truth <= interval[2] + NEAR)
        for interval, truth in ((found.main, main), (found.total, total))
    ]
    return int(np.sum(inside)), 2 * d


def figures(
    seeds: int = 8, trials: str = "30,80", methods: str = "sobol,auto", problems: str = ",".join(PROBLEMS)
) -> Figures:
    """Count the indices that their intervals hold, by method and number of trials."""
    for method in methods.split(","):
        for count in trials.split(","):
            with limit_threads(1):
                counts = {
                    name: np.sum([held(name, method, int(count), seed) for seed in range(seeds)], axis=0)
                    for name in problems.split(",")
                }
            good, every = np.sum(list(counts.values()), axis=0)
            each = ", ".join(f"{name} {100 * part / whole:.0f} %" for name, (part, whole) in counts.items())
            what = f"true Sobol indices in their 90 % intervals, {count} trials of {method}, {seeds} seeds"
            yield Figure(what, f"{100 * good / every:.0f} % of {every} ({each})")


if __name__ == "__main__":
    command(figures)
