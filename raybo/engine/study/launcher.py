"""Submits trials to Ray, as tasks that run the user's function."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import ray

from raybo.engine.ray.placement import release_all, reserve
from raybo.engine.ray.resources import workers_available
from raybo.engine.run_options import Keep
from raybo.engine.study.dispatch import DispatchedTrial, outcome_of_error
from raybo.engine.study.gang import Gang
from raybo.engine.study.verdicts import Judge
from raybo.engine.trial.report_sender import AttemptInfo
from raybo.engine.trial.task import PackedFunction, StudyHandle, trial_task
from raybo.job.objective import Objective
from raybo.searcher import trial_seed
from raybo.space import Config

TRAINER_SECONDS = 10.0  # for a trainer that is interrupted to end in order


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
        cost: name of the number that a trial returns as its cost; None if it is its seconds.
        is_kept: whether the trials' directories are kept when the study has ended.
        may_grow: whether there may be room later for a trial for which there is none.
        judge: gives the verdicts on reports.
        placed: called when there is room for all processes of a trial.
        note: tells who watches something.
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
        cost: str | None,
        is_kept: bool,
        may_grow: bool,
        judge: Judge,
        placed: Callable[[], None],
        note: Callable[[str], None],
    ) -> None:
        self.objective = objective
        self.function = function
        actor = ray.get_runtime_context().current_actor
        self.home = StudyHandle(actor, name, journal, notifies, artifacts, keep, cost, is_kept)
        self.seed = seed
        self.fresh_workers = fresh_workers
        self.may_grow, self.judge, self.placed, self.note = may_grow, judge, placed, note
        self._admission = asyncio.Lock()
        place = f"{socket.gethostname()} {journal}"
        self._groups = f"raybo-{hashlib.sha256(place.encode()).hexdigest()[:16]}"
        if objective.is_gang:
            release_all(self._groups)  # of this study's last process, which died
        self.renew()

    def renew(self) -> None:
        """Make a new task: requests of the old one to a node that is lost are never answered, and block others."""
        self.task = trial_task(self.objective, self.function, self.home, self.fresh_workers)

    def submit(self, dispatched: DispatchedTrial, config: Config, info: AttemptInfo) -> None:
        """Submit a trial's next attempt.

        Raises:
            ObjectiveError: its number of processes cannot be computed.
            RayError: the cluster has no room for all of them.
        """
        trial, attempt = dispatched.life.trial, dispatched.life.attempt
        arguments = config, trial, attempt, trial_seed(self.seed, trial), info
        count = self.objective.processes_of(config)
        if callable(self.objective.processes) and not self.may_grow:
            workers_available(cast(Any, ray).nodes(), self.objective, count)
        dispatched.processes = count
        dispatched.grace = TRAINER_SECONDS if self.objective.nested else 0.0
        if count == 1 or self.objective.nested:
            dispatched.submit(self.task, *arguments)
            return
        task = self.task
        gang = Gang(
            count,
            reserve=lambda: reserve(self.objective, count, f"{self._groups}-{trial}-{attempt}"),
            admission=self._admission,
            submit=lambda group, index: task.remote_in(group, index, *arguments),
            answer=lambda step: self.judge.answer(dispatched, attempt),
            placed=self.placed,
            begun=dispatched.start,
            note=lambda text: self.note(f"trial {trial}: {text}"),
            outcome_of_error=outcome_of_error,
        )
        dispatched.submit_gang(gang)
