"""What reports and verdicts cost: seconds per verdict of each scheduler, and per report of a searcher."""

from __future__ import annotations

import time

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, at_most, command
from raybo.schedulers import SCHEDULERS

QUICK = {"trials": 40}
CHEAP = ("median", "asha", "hyperband")  # which must take less than a millisecond


def figures(trials: int = 1_000, steps: int = 52) -> Figures:
    """Of each scheduler, and of none."""
    yield from verdict_seconds(trials, steps)
    yield from reports_in_a_second(max(1, trials // 5), steps)


def verdict_seconds(trials: int, steps: int) -> Figures:
    """Milliseconds of the last verdicts of a study, and what its reports took without one."""
    rng = np.random.default_rng(0)
    space = raybo.Space({f"x{i}": raybo.Float(0, 1) for i in range(7)})
    for scheduler in SCHEDULERS:
        count = trials if scheduler in CHEAP else trials // 5
        searcher = raybo.Searcher(space, "random", seed=0, steps=steps, scheduler=scheduler)
        assert searcher.rule is not None
        spent = []
        for _ in range(count):
            trial, level = searcher.ask(), rng.random()
            for step in range(1, steps + 1):
                value = level * step / (step + 3) + 0.01 * rng.standard_normal()
                due = searcher.rule.scheduler.decides(searcher.history, trial.number, step)
                begun = time.process_time()
                searcher.report(trial, value, step)
                if due:
                    spent.append(time.process_time() - begun)
            searcher.tell(trial, value)  # all are run on: the most that there can be to look at
        what = f"{scheduler}: a verdict after {count:,} trials of {steps} steps"
        measured = 1e3 * float(np.median(spent[-50:]))
        yield at_most(1.0, measured, what, "ms") if scheduler in CHEAP else Figure(what, f"{measured:.1f} ms")


def reports_in_a_second(trials: int, steps: int) -> Figures:
    """How many reports a searcher takes in per second, without a verdict."""
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0, steps=steps)
    asked = [searcher.ask() for _ in range(trials)]
    begun = time.process_time()
    for step in range(1, steps + 1):
        for trial in asked:
            searcher.report(trial, 0.5, step)
    rate = trials * steps / (time.process_time() - begun)
    yield Figure("reports that a searcher takes in", f"{rate:,.0f} a second")


if __name__ == "__main__":
    command(figures)
