"""Seconds and size of the report and the pictures of a study of 1,000 trials of eight parameters.

Among the parameters are integers and a category; one trial in twenty has failed.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, command, missing
from raybo.record.description import Description
from raybo.record.events import Failed, Told
from raybo.record.goals import Goals
from raybo.reporting import draw
from raybo.searcher import Searcher
from raybo.study.study import Study

QUICK: dict[str, object] = {}


def study_of(trials: int) -> Study:
    """The study, made without running anything."""
    space = raybo.Space(
        {
            **{f"rate{i}": raybo.Float(1e-4, 1.0, log=True) for i in range(3)},
            **{f"share{i}": raybo.Float(0, 1) for i in range(2)},
            "depth": raybo.Integer(1, 12),
            "width": raybo.Integer(16, 1024, log=True),
            "kind": raybo.Categorical(["relu", "tanh", "gelu"]),
        }
    )
    searcher, rng = Searcher(space, "random", seed=0), np.random.default_rng(0)
    events = [searcher.plan(trials)]
    for number in range(trials):
        events.append(searcher.apply(searcher.propose(searcher.history)))
        x = searcher.history.records[number].x
        if rng.random() < 0.05:
            events.append(searcher.apply(Failed(number, reason="ValueError: diverged")))
        else:
            value = float(-np.sum(np.arange(8, 0, -1) * np.square(x - 0.4)) + 0.05 * rng.standard_normal())
            events.append(searcher.apply(Told(number, value=value, seconds=1.0)))
    return Study(Description("benchmark", Goals(("accuracy",), ("max",)), space, "random", 0), events)


def figures(trials: int = 1_000) -> Figures:
    """A figure per form."""
    study = study_of(trials)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("report.html", "picture.png", "picture.svg"):
            path, what = Path(folder, name), f"{name}, {trials:,} trials"
            wall, processor = time.perf_counter(), time.process_time()
            try:
                draw(study, path)
            except raybo.MissingExtra:
                yield missing(what, "matplotlib")
                continue
            seconds = time.perf_counter() - wall, time.process_time() - processor
            megabytes = path.stat().st_size / 1e6
            yield Figure(what, f"{seconds[0]:.1f} s ({seconds[1]:.1f} of processor), {megabytes:.1f} MB")
    yield Figure("peak memory", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    command(figures)
