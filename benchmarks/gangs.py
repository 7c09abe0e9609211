"""Measure the cost of several processes per trial, in milliseconds more than a plain trial takes.

Studies of trials that do nothing take turns on one Ray, with one worker and the method `random`: plain ones, and ones
whose number of processes is a function that returns 1; then the same with two processes, which are placed together.
"""

from __future__ import annotations

import statistics
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import raybo
from benchmarks.figures import Figure, Figures, at_most, command
from benchmarks.searches import unit_space
from raybo.engine.ray.connection import ray_for_study
from raybo.job.objective import Objective

QUICK = {"trials": 30, "rounds": 1}
SPACE = unit_space(2)


def no_op(config: dict[str, float]) -> float:
    """Does nothing."""
    return 0.0


def one(config: object) -> int:
    """Return 1."""
    return 1


def milliseconds(job: Objective, trials: int) -> float:
    """Return the time of a trial, from the first proposal of a study to its last result by its journal's clock."""
    with tempfile.TemporaryDirectory() as directory:
        storage = Path(directory, "study.db")
        found = raybo.tune(job, trials=trials, method="random", seed=0, workers=1, storage=storage)
    at = [datetime.fromisoformat(event.at) for event in found.events if event.trial is not None]
    return 1_000 * (at[-1] - at[0]).total_seconds() / trials


def figures(trials: int = 100, rounds: int = 3) -> Figures:
    """A gang of one process beside a plain trial, and one of two."""
    declared: dict[str, Any] = {"space": SPACE, "metric": "value", "mode": "max", "num_cpus": 0.5}
    jobs = {
        "plain": raybo.objective(**declared)(no_op),
        "one": raybo.objective(processes=one, **declared)(no_op),
        "two": raybo.objective(processes=2, **declared)(no_op),
    }
    times: dict[str, list[float]] = {name: [] for name in jobs}
    with ray_for_study(None, 2):
        for job in jobs.values():
            milliseconds(job, 5)
        for _ in range(rounds):
            for name, job in jobs.items():
                times[name].append(milliseconds(job, trials))
    plain, alone, two = (statistics.median(times[name]) for name in jobs)
    note = f"{alone:.1f} and {plain:.1f} ms a trial, median of {rounds} rounds"
    yield at_most(15, alone - plain, "a gang of one process over a plain trial", "ms", note)
    yield Figure("a gang of two processes", f"{two:.0f} ms a trial, {two / plain:.1f} times a plain one")


if __name__ == "__main__":
    command(figures)
