"""Time and memory of one suggestion as the history grows, and the measured growth.

python -m benchmarks.scaling [--method auto] [--sizes 100,500,1000,2000] [--dimensions 10]

Each size runs in a process of its own, so that its peak memory is its own. After a history of n known results, the
median over several asks, each told in turn, as in a study; the first ask, which fits from nothing, is shown apart.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import statistics
import time

import numpy as np

import raybo
from raybo.threads import limit_threads


def measure(method: str, n: int, d: int, asks: int) -> tuple[float, float, float, float]:
    """Seconds of the first ask, median and maximum of the others, and mebibytes at the peak."""
    space = raybo.Space({f"x{i}": raybo.Float(0, 1) for i in range(d)})
    searcher = raybo.Searcher(space, method=method, mode="max", seed=0, initial=1)
    rng = np.random.default_rng(0)
    value = lambda x: float(-np.sum((x - 0.4) ** 2) + 0.1 * np.sum(np.cos(7.0 * x)))  # noqa: E731
    for row in rng.random((n, d)):
        searcher.add(space.decode(row[None, :])[0], value(row))
    seconds = []
    with limit_threads(1):
        for _ in range(asks + 1):
            begun = time.perf_counter()
            trial = searcher.ask()
            seconds.append(time.perf_counter() - begun)
            searcher.tell(trial, value(np.array(list(trial.config.values()))))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return seconds[0], statistics.median(seconds[1:]), max(seconds[1:]), peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--sizes", default="100,500,1000,2000")
    parser.add_argument("--dimensions", type=int, default=10)
    parser.add_argument("--asks", type=int, default=15)
    arguments = parser.parse_args()
    print(f"{arguments.method}, d = {arguments.dimensions}, one thread")
    print(f"{'n':>6}  {'first ask':>10}  {'median ask':>10}  {'longest':>10}  {'peak memory':>12}  {'growth':>7}")
    before: tuple[int, float] | None = None
    for n in (int(size) for size in arguments.sizes.split(",")):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            first, median, longest, peak = pool.apply(
                measure, (arguments.method, n, arguments.dimensions, arguments.asks)
            )
        growth = "" if before is None else f"n^{math.log(median / before[1]) / math.log(n / before[0]):.2f}"
        times = "  ".join(f"{1e3 * seconds:7.0f} ms" for seconds in (first, median, longest))
        print(f"{n:6d}  {times}  {peak:8.0f} MiB  {growth:>7}", flush=True)
        before = (n, median)


if __name__ == "__main__":
    main()
