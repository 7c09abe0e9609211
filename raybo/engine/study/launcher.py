"""Submits trials to Ray, as tasks that run the user's function."""

from __future__ import annotations

from pathlib import Path

import ray

from raybo.engine.run_options import Keep
from raybo.engine.study.dispatch import DispatchedTrial
from raybo.engine.trial.report_sender import AttemptInfo
from raybo.engine.trial.task import PackedFunction, StudyHandle, trial_task
from raybo.job.objective import Objective
from raybo.searcher import trial_seed
from raybo.space import Config


class Launcher:
    """Submits the trials of one study.

    Args:
        objective: what is tuned, without its function.
        function: the user's function as it travels; only the workers unpickle it.
        name: the study's, unique on this Ray.
        journal: the study's, beside which its trials have their directories.
        seed: the study's.
        notifies: whether trials send this actor their begin, and the context that they have observed.
        fresh_workers: whether every trial runs in a new process.
        artifacts: the place of the trials' directories; None for beside the journal.
        keep: which checkpoints of trials that have ended are kept.
    """

    def __init__(
        self,
        objective: Objective,
        function: PackedFunction,
        *,
        name: str,
        journal: Path,
        seed: int,
        notifies: bool,
        fresh_workers: bool,
        artifacts: str | None,
        keep: Keep,
    ) -> None:
        self.objective = objective
        self.function = function
        self.home = StudyHandle(ray.get_runtime_context().current_actor, name, journal, notifies, artifacts, keep)
        self.seed = seed
        self.fresh_workers = fresh_workers
        self.renew()

    def renew(self) -> None:
        """Make a new task: requests of the old one to a node that is lost are never answered, and block others."""
        self.task = trial_task(self.objective, self.function, self.home, self.fresh_workers)

    def submit(self, dispatched: DispatchedTrial, config: Config, info: AttemptInfo) -> None:
        """Submit a trial's next attempt."""
        trial, attempt = dispatched.life.trial, dispatched.life.attempt
        dispatched.submit(self.task, config, trial, attempt, trial_seed(self.seed, trial), info)
