"""The cost of unknown hyperparameters: final regret and time of a suggestion, `uhe` and its rivals beside `map`.

Every run is 3 d uniform points, the same for all methods under one seed, and then 60 evaluations without noise. Regret
is the mean over seeds, with the standard error of the paired difference to map's. Times are the means over the
suggestions after the design of one run, each trial of all methods in turn, so that the machine's moods fall on all
alike. The trap is the experiment wang-defreitas-trap: a narrow peak, found or missed.
"""

from __future__ import annotations

import statistics
import time
from functools import partial

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, at_most, command
from benchmarks.searches import Array, processes, published, simple_regret
from raybo.common.threads import limit_threads
from raybo.experiments import Entry
from trials.papers.unknown_hyperparameters import ALGORITHM_1, SLICE, TRAP
from trials.synthetic import PROBLEMS

QUICK = {"seeds": 2, "trap_seeds": 4, "timed": 10, "problems": "h1,branin"}
AFTER = 60  # evaluations after the design


def design(problem: str) -> int:
    """Return the size of the initial design."""
    return 3 * len(PROBLEMS[problem].objective.space.names)


def suggestion_seconds(problem: str, methods: list[str], timed: int) -> dict[str, float]:
    """Mean seconds of a suggestion after the design, the methods taking turns."""
    objective, initial = PROBLEMS[problem].objective, design(problem)
    searchers = {
        method: raybo.Searcher(objective.space, method, objective.mode, 0, initial + timed, initial=initial)
        for method in methods
    }
    seconds: dict[str, list[float]] = {method: [] for method in methods}
    for _ in range(initial + timed):
        for method, searcher in searchers.items():
            begun = time.perf_counter()
            trial = searcher.ask()
            seconds[method].append(time.perf_counter() - begun)
            searcher.tell(trial, objective(trial.config))
    return {method: statistics.mean(taken[initial:]) for method, taken in seconds.items()}


def times(problem: str, timed: int) -> Figures:
    """Return the cost of a suggestion of uhe."""
    with limit_threads(1):
        seconds = suggestion_seconds(problem, ["map", "uhe", "mcmc"], timed)
    note = " and ".join(f"{1e3 * seconds[method]:.1f}" for method in ("uhe", "map"))
    yield at_most(2, seconds["uhe"] / seconds["map"], f"a suggestion of uhe over map's, {problem}", note=f"{note} ms")
    what = f"a suggestion of uhe over mcmc's, {problem}"
    yield at_most(0.2, seconds["uhe"] / seconds["mcmc"], what, note=f"mcmc {1e3 * seconds['mcmc']:.0f} ms")


def judged(problem: str, regrets: Array, base: Array, what: str) -> Figure:  # (seeds,), (seeds,)
    """uhe's regret beside map's, against what was hoped for on this problem; on h1 the experiment uhe-h1 judges."""
    seeds, mean, least = len(regrets), regrets.mean(), base.mean()
    error = (regrets - base).std(ddof=1) / np.sqrt(seeds)
    text = f"{mean:.2g} and {least:.2g} ({mean / least:,.3g} times), difference {(mean - least) / error:+.1f} errors"
    if problem == "h1":
        return Figure(what, text)
    if problem == "branin":
        return Figure(what, text, "below 1", bool(mean < 1.0))
    return Figure(what, text, "at most 2 errors above map's", bool(mean <= least + 2.0 * error))


def finds(entry: Entry, seed: int) -> bool:
    """True if a search ends in the trap's peak."""
    found = published(TRAP, entry, seed)
    assert TRAP.optimum is not None
    assert TRAP.found_within is not None
    return TRAP.optimum - float(found.metric("value")[found.best]) < TRAP.found_within


def figures(
    seeds: int = 10,
    trap_seeds: int = 60,
    timed: int = AFTER,
    methods: str = "uhe",
    problems: str = "h1,deceptive,hartmann3,branin",
) -> Figures:
    """Times, regrets beside map's, and the trap."""
    yield from times(problems.split(",")[0], timed)
    with processes() as pool:
        for problem in problems.split(","):
            initial = design(problem)
            regrets = {}
            for method in ("map", *methods.split(",")):
                run = partial(simple_regret, problem, method, initial + AFTER, {"initial": initial})
                regrets[method] = np.array(list(pool.map(run, range(seeds))))
            for method in methods.split(","):
                what = f"regret of {method} and of map, {problem}, mean of {seeds}"
                figure = judged(problem, regrets[method], regrets["map"], what)
                yield figure if method == "uhe" else Figure(what, figure.measured)
        often, once = (sum(pool.map(partial(finds, entry), range(trap_seeds))) for entry in (ALGORITHM_1, SLICE))
        what = f"of {trap_seeds} seeds, those that find the trap's peak: Algorithm 1, and EI with slice sampling"
        yield Figure(what, f"{often} and {once}", "at least 3 times as many", often >= max(1, 3 * once))


if __name__ == "__main__":
    command(figures)
