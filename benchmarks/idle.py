"""The utilisation of workers: studies of trials that sleep, and the share of the time in which trials ran.

A smooth function of six numbers, on a Ray that runs already; the first ten trials are not counted.
"""

from __future__ import annotations

import tempfile
import time
from datetime import datetime
from pathlib import Path

import raybo
from benchmarks.figures import Figure, Figures, at_least, command
from benchmarks.searches import unit_space
from raybo.engine.ray.connection import ray_for_study
from raybo.record.events import Kind
from raybo.study.study import Study

QUICK = {"trials": 60}
TARGETS = {("gp-ucb", 100.0): 90.0, ("auto", 100.0): 99.0, ("auto", 20.0): 90.0}  # percent
WARM_UP = 10


@raybo.objective(space=unit_space(6), metric="value", mode="max")
def sleeper(config: dict[str, float], *, milliseconds: float = 100.0) -> float:
    """A smooth function that takes its time."""
    time.sleep(milliseconds / 1_000)
    return -sum((value - 0.3) ** 2 for value in config.values())


def busy_share(study: Study, workers: int) -> float:
    """Seconds in which trials ran over the workers' seconds, from the end of the warm-up."""
    told = [event for event in study.events if event.kind is Kind.TOLD]
    begin, end = datetime.fromisoformat(told[WARM_UP - 1].at), datetime.fromisoformat(told[-1].at)
    ran = 0.0
    for event in told:
        start = datetime.fromisoformat(event.data["started"])
        ran += max(0.0, event.data["seconds"] - max(0.0, (begin - start).total_seconds()))
    return ran / (workers * (end - begin).total_seconds())


def figures(methods: str = "gp-ucb,auto", milliseconds: str = "100,20", trials: int = 200, workers: int = 2) -> Figures:
    """A figure for each method and length of the trials."""
    with ray_for_study(None, workers), tempfile.TemporaryDirectory() as directory:
        for method in methods.split(","):
            for length in (float(text) for text in milliseconds.split(",")):
                study = raybo.tune(
                    sleeper,
                    trials=trials,
                    method=method,
                    seed=0,
                    workers=workers,
                    storage=Path(directory, f"{method}-{length:g}.db"),
                    settings={"milliseconds": length},
                )
                busy = 100 * busy_share(study, workers)
                what = f"{workers} workers busy, {method}, {trials} trials of {length:g} ms"
                target = TARGETS.get((method, length))
                yield Figure(what, f"{busy:.1f} %") if target is None else at_least(target, busy, what, "%")


if __name__ == "__main__":
    command(figures)
