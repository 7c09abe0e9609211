"""The cost of one more proposal in a study of many trials: processor seconds, a refit included, and memory.

Each size runs in a process of its own, on one thread: a history of n results of which a half crowds around the best,
as in a study, and a tenth as many trials pending. Every ask is followed by the result of the oldest pending trial.
Means over so many asks that several of them fit hyperparameters anew. With `--metrics 2` trials have two values, of
functions with their optima in different places, and half of the results lie between these.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections import deque
from collections.abc import Mapping

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, at_most, command
from benchmarks.searches import parse_method, ripples, unit_space, value_of
from raybo.common.threads import limit_threads

QUICK = {"sizes": "1000,10000", "dimensions": "6", "asks": 20}
GOALS = {1_000: 20.0, 3_000: 40.0, 10_000: 60.0}  # milliseconds
MEMORY = 500  # mebibytes at 10,000


def result_of(config: Mapping[str, float], metrics: int) -> float | dict[str, float]:
    """One value, or one of each metric."""
    if metrics == 1:
        return value_of(config)
    x = np.array([list(config.values())])
    return {f"m{j}": float(ripples(np.roll(x, j, axis=1) - 0.2 * j)[0]) for j in range(metrics)}


def study_of(method: str, n: int, d: int, pending: int, metrics: int) -> tuple[raybo.Searcher, deque[raybo.Trial]]:
    """A searcher with n results, half of them around the best points, and its pending trials."""
    name, options = parse_method(method)
    space, rng = unit_space(d), np.random.default_rng(0)
    if metrics == 1:
        searcher = raybo.Searcher(space, name, "max", seed=0, **options)
    else:
        searcher = raybo.Searcher(space, name, metrics={f"m{j}": "max" for j in range(metrics)}, seed=0, **options)
    X = rng.random((n, d))
    best = X[np.argmax(ripples(X))] + 0.2 * rng.integers(metrics, size=(len(X[::2]), 1))
    X[::2] = np.clip(best + 0.1 * rng.standard_normal(X[::2].shape), 0.0, 1.0)
    for config in space.decode(X):
        searcher.add(config, result_of(config, metrics))
    waiting = deque(searcher.ask() for _ in range(pending))
    return searcher, waiting


def measure(method: str, n: int, d: int, pending: int, asks: int, metrics: int) -> tuple[list[float], float]:
    """Processor milliseconds of each ask, and mebibytes at the peak."""
    spent = []
    with limit_threads(1):
        searcher, waiting = study_of(method, n, d, pending, metrics)
        for _ in range(asks):
            begun = time.thread_time()
            waiting.append(searcher.ask())
            spent.append(1e3 * (time.thread_time() - begun))
            oldest = waiting.popleft()
            searcher.tell(oldest, result_of(oldest.config, metrics))
    return spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def figures(
    methods: str = "auto",
    sizes: str = "300,1000,3000,10000",
    dimensions: str = "6,20",
    asks: int = 100,
    metrics: int = 1,
) -> Figures:
    """A figure for each method, number of results and dimension."""
    for method in methods.split(","):
        for d in (int(text) for text in dimensions.split(",")):
            for n in (int(text) for text in sizes.split(",")):
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    spent, peak = pool.apply(measure, (method, n, d, n // 10, asks, metrics))
                what = f"one proposal of {method}, n = {n:,}, {n // 10:,} pending, d = {d}, mean"
                if metrics > 1:
                    what = f"{what}, {metrics} metrics"
                note = f"median {np.median(spent):.0f}, longest {max(spent):.0f} ms, {peak:.0f} MiB"
                found = at_most(GOALS.get(n, 0), float(np.mean(spent)), what, "ms of a processor", note)
                is_goal = n in GOALS and metrics == 1
                yield found if is_goal else Figure(what, found.measured)
                if n == 10_000 and metrics == 1:
                    yield at_most(MEMORY, peak, f"its memory, d = {d}", "MiB")


if __name__ == "__main__":
    command(figures)
