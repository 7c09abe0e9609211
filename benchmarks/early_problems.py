"""The learning curves of `benchmarks.early`, by name: LCBench by its surrogate, and jobs of `trials/` that are run.

python -m benchmarks.early_problems       # the references of the jobs, made anew from 200 random runs of each
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
REFERENCES = {"boosting": (0.0, 0.0), "network": (0.0, 0.0)}  # the best of 200 random runs, the mean best of 40


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

    best, chance = REFERENCES[name]
    return Problem(name, job.space, steps, curve, best, chance)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    **{f"lcbench-{task}": partial(of_lcbench, task) for task in lcbench.INSTANCES},
    **{name: partial(of_job, name) for name in JOBS},
}


def reference(name: str, runs: int = 200) -> tuple[float, float]:
    """The best last value of random runs, and the mean best of 40 of them."""
    problem, rng = of_job(name), np.random.default_rng(0)
    configs = problem.space.decode(problem.space.snap(rng.random((runs, problem.space.d))))
    y = np.array([problem.curve(config)[-1] for config in configs])
    return float(y.max()), float(np.mean([rng.choice(y, 40).max() for _ in range(4_000)]))


if __name__ == "__main__":
    for name in JOBS:
        print(f'"{name}": {reference(name)}')
