"""The learning curves of `benchmarks.early`, by name: LCBench by its surrogate, and jobs of `trials/` that are run.

What is best and what is chance for a job is found first, once per process, by 200 random runs of it: some minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import lcbench
from benchmarks.early_runs import Array, Problem
from raybo.reports import heard_by
from trials.boosting_rounds import boosting_rounds
from trials.network_epochs import network_epochs

JOBS = {"boosting": boosting_rounds, "network": network_epochs}
RUNS = 200  # random ones, that a job is judged by


class Heard:
    """Listens to a job that is run to its end, and saves nothing."""

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self.values: list[float] = []

    def report(self, metrics: Any, step: int | None) -> None:
        """A step's metrics."""
        self.values.append(float(metrics[self.metric]))

    def checkpoint(self) -> Path | None:
        """None: it begins from nothing."""
        return None

    @contextmanager
    def saving(self) -> Iterator[Path]:
        """A directory that is thrown away."""
        with TemporaryDirectory() as name:
            yield Path(name)


def of_lcbench(task: str) -> Problem:
    """The accuracies of a network on one of LCBench's tasks."""

    def curve(config: dict[str, Any]) -> Array:
        return np.asarray(lcbench.curves(task, [config])[0])

    return Problem(f"lcbench-{task}", lcbench.space, lcbench.EPOCHS, curve, *lcbench.REFERENCES[task])


@lru_cache(maxsize=2)
def of_job(name: str) -> Problem:
    """A job that reports its metric, maximised."""
    job = JOBS[name]
    sign = 1.0 if job.mode == "max" else -1.0
    steps = job.steps
    assert steps is not None

    def curve(config: dict[str, Any]) -> Array:
        heard = Heard(job.metric)
        with heard_by(heard):
            if isinstance(found := job(config), Iterator):
                for metrics in found:
                    heard.report(metrics, None)
        return sign * np.array(heard.values)

    rng = np.random.default_rng(0)
    configs = job.space.decode(job.space.snap(rng.random((RUNS, job.space.d))))
    y = np.array([curve(config)[-1] for config in configs])
    chance = float(np.mean([rng.choice(y, 40).max() for _ in range(4_000)]))
    return Problem(name, job.space, steps, curve, float(y.max()), chance)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    **{f"lcbench-{task}": partial(of_lcbench, task) for task in lcbench.REFERENCES},
    **{name: partial(of_job, name) for name in JOBS},
}
GROUPS: dict[str, list[str]] = {
    "lcbench": [f"lcbench-{task}" for task in lcbench.INSTANCES],
    "lcbench-others": [f"lcbench-{task}" for task in lcbench.OTHERS],
    "jobs": list(JOBS),
}
