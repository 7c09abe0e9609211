"""The learning curves of `benchmarks.early`, by name: LCBench by its surrogate, and jobs of `trials/` that are run.

python -m benchmarks.early_problems       # the references of the jobs, made anew: two minutes of a processor
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import raybo
from benchmarks import lcbench
from benchmarks.early_runs import Problem
from raybo.job.reports import reports_sent_to
from trials.boosting_rounds import boosting_rounds
from trials.network_epochs import network_epochs

JOBS = {"boosting": boosting_rounds, "network": network_epochs}
# of each: what counts as best, and as chance, so that regret is the log loss itself, and the share of rows told wrongly
REFERENCES = {"boosting": (0.0, -1.0), "network": (1.0, 0.0)}
LOOKS = (13, 4, 1)  # parts of a run, to which a job is run


class Heard:
    """Listens to a job until it has reported so many steps.

    Args:
        metric: the one that counts. until: the step after which the job is ended.
        directory: for what it saves, which is thrown away.
    """

    def __init__(self, metric: str, until: int, directory: Path) -> None:
        self.metric, self.until, self.directory = metric, until, directory
        self.values: list[float] = []

    def report(self, metrics: Any, step: int | None) -> None:
        """A step's metrics. Raises TrialPruned after the last that is wanted."""
        self.values.append(float(metrics[self.metric]))
        if len(self.values) == self.until:
            raise raybo.TrialPruned

    def refuse(self, fault: str) -> None:
        """Take that a report was refused, which these jobs do not handle themselves."""

    def checkpoint(self) -> Path | None:
        """None: it begins from nothing."""
        return None

    @contextmanager
    def saving(self) -> Iterator[Path]:
        """A directory in which the next checkpoint takes the place of this one."""
        yield self.directory


class Trained:
    """The curve of a configuration, for which a job is run as far as somebody looks; maximised.

    It is run to a thirteenth, a quarter or all of its steps, from the beginning each time: the same configuration
    always has the same curve, and most of what a scheduler ends is never run to its end.
    """

    def __init__(self, job: raybo.Objective, config: dict[str, Any]) -> None:
        assert job.steps is not None
        self._job, self._config, self._steps = job, config, job.steps
        self._values: list[float] = []

    def __getitem__(self, place: int) -> float:
        """The value after a step, of which the first is at place 0, and the last at -1."""
        wanted = place + 1 if place >= 0 else self._steps + 1 + place
        if wanted > len(self._values):
            looks = (max(1, round(self._steps / part)) for part in LOOKS)
            self._values = self._run(next(look for look in looks if look >= wanted))
        return self._values[wanted - 1]

    def _run(self, until: int) -> list[float]:
        job, sign = self._job, 1.0 if self._job.mode == "max" else -1.0
        with TemporaryDirectory() as scratch:
            heard = Heard(job.metric, until, Path(scratch))
            with reports_sent_to(heard):
                try:
                    if isinstance(found := job(self._config), Iterator):
                        for metrics in found:
                            heard.report(metrics, None)
                except raybo.TrialPruned:
                    pass
        return [sign * value for value in heard.values]


def of_lcbench(task: str) -> Problem:
    """The accuracies of a network on one of LCBench's tasks."""

    def curve(config: dict[str, Any]) -> list[float]:
        values: list[float] = lcbench.curves(task, [config])[0].tolist()
        return values

    return Problem(f"lcbench-{task}", lcbench.space, lcbench.EPOCHS, curve, *lcbench.REFERENCES[task])


@lru_cache(maxsize=2)
def of_job(name: str) -> Problem:
    """A job that reports its metric, maximised."""
    job, kept = JOBS[name], dict[tuple[Any, ...], Trained]()
    assert job.steps is not None

    def curve(config: dict[str, Any]) -> Trained:
        return kept.setdefault(tuple(config.values()), Trained(job, config))

    return Problem(name, job.space, job.steps, curve, *REFERENCES[name])


PROBLEMS: dict[str, Callable[[], Problem]] = {
    **{f"lcbench-{task}": partial(of_lcbench, task) for task in lcbench.REFERENCES},
    **{name: partial(of_job, name) for name in JOBS},
}
GROUPS: dict[str, list[str]] = {
    "lcbench": [f"lcbench-{task}" for task in lcbench.INSTANCES],
    "lcbench-others": [f"lcbench-{task}" for task in lcbench.OTHERS],
    "jobs": list(JOBS),
}
