"""Seconds and size of the report of a study: `python -m benchmarks.report [TRIALS]`."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import raybo
from raybo.history import Event, Kind
from raybo.journal import Description
from raybo.report import draw
from raybo.searcher import Searcher
from raybo.study import Study


def study_of(trials: int) -> Study:
    """A study of eight parameters, among them integers and categories, with one failure in twenty."""
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
            events.append(searcher.apply(Event(Kind.FAILED, number, {"reason": "ValueError: diverged"})))
        else:
            value = float(-np.sum(np.arange(8, 0, -1) * np.square(x - 0.4)) + 0.05 * rng.standard_normal())
            events.append(searcher.apply(Event(Kind.TOLD, number, {"value": value, "seconds": 1.0})))
    return Study(Description("benchmark", "accuracy", "max", space.to_json(), "random", 0), events)


def main() -> None:
    """Print a row a form."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    study = study_of(trials)
    print(f"{trials} trials of {study.space.d} parameters")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("report.html", "picture.png", "picture.svg"):
            path = Path(folder, name)
            wall, processor = time.perf_counter(), time.process_time()
            draw(study, path)
            seconds = time.perf_counter() - wall, time.process_time() - processor
            megabytes = path.stat().st_size / 1e6
            print(f"{name:12s} {seconds[0]:.1f} s ({seconds[1]:.1f} s of processor), {megabytes:.2f} MB")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
