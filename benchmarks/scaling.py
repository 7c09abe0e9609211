"""Time and memory of one suggestion as the history grows, and the measured growth.

Each size runs in a process of its own, so that its peak memory is its own. After a history of n known results, the
median over several asks, each told in turn, as in a study, on one thread. A fit is kept until the observations have
grown by a hundredth, so not every ask fits anew; the first ask, which fits from nothing, is named apart.
"""

from __future__ import annotations

import math
import multiprocessing
import resource
import statistics

from benchmarks.figures import Figure, Figures, at_most, command
from benchmarks.searches import ask_seconds, told_of
from raybo.common.threads import limit_threads

QUICK = {"sizes": "100,1000", "asks": 5}
CLAIMED = 1_000  # finished trials


def measure(method: str, n: int, d: int, asks: int) -> tuple[list[float], float]:
    """Seconds of the asks, the first one's in front, and mebibytes at the peak."""
    searcher = told_of(method, n, d)
    with limit_threads(1):
        seconds = ask_seconds(searcher, asks + 1)
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def figures(method: str = "auto", sizes: str = "100,500,1000,2000", dimensions: int = 10, asks: int = 15) -> Figures:
    """A figure for each number of finished trials."""
    before: tuple[int, float] | None = None
    for n in (int(size) for size in sizes.split(",")):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            (first, *others), peak = pool.apply(measure, (method, n, dimensions, asks))
        median = statistics.median(others)
        note = f"longest {1e3 * max(others):.0f}, first {1e3 * first:.0f} ms, {peak:.0f} MiB"
        if before is not None:
            note += f", grew as n^{math.log(median / before[1]) / math.log(n / before[0]):.1f}"
        found = at_most(500, 1e3 * median, f"one ask of {method}, n = {n:,}, d = {dimensions}, median", "ms", note)
        yield found if n == CLAIMED else Figure(found.what, found.measured)
        before = n, median


if __name__ == "__main__":
    command(figures)
