"""Runs a study in this process, one trial after another, without Ray, which is quicker for many short studies.

Events, their order and the proposals are those of `raybo.tune` with one worker: a run that was begun in one way can be
continued in the other. What differs from `raybo.tune(in_process=True)` is what experiments need: a result is committed
with the proposal that follows it, which saves a cheap trial half of its commits, and an interruption leaves the study
as if this process had been killed, so that it continues with the same trials.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import raybo
from raybo.common.errors import ObjectiveError
from raybo.engine.description import searcher_for
from raybo.engine.in_process import Running, attempt_here
from raybo.engine.lifecycle import Life, Occurrence, Phase, Step, event_after
from raybo.engine.outlet import Outlet
from raybo.engine.plan import Plan
from raybo.engine.run_options import RunOptions
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.timings import Timings
from raybo.engine.study.trial_queue import INTERRUPTED, TrialQueue
from raybo.engine.study.verdicts import Judge
from raybo.engine.trial.report_sender import Answer
from raybo.job.objective import Objective
from raybo.journal import Journal
from raybo.record.events import EventData
from raybo.study.study import Study


def tune_here(
    objective: Objective,
    *,
    trials: int,
    method: str,
    seed: int,
    storage: Path,
    options: Mapping[str, Any],
    between: Callable[[], None],
    scheduler: str | None = None,
    scheduler_options: Mapping[str, Any] | None = None,
) -> Study:
    """Run or continue a study; arguments as those of `raybo.tune`.

    Args:
        between: called before each trial; what it raises ends the study, whose journal is whole.
    Raises:
        RayboError: an argument is wrong, or the journal is another study's; or what a trial prints cannot be written.
        BrokenPipeError: nobody reads what a trial prints; the trial runs again when the study is continued.
    """
    if not objective.is_single:
        raise ObjectiveError(
            f"{objective.name}: trials of several processes need Ray; run some at a time, or declare one"
        )
    with contextlib.closing(Journal(storage)) as journal:
        rule = (scheduler, scheduler_options or {})
        searcher = searcher_for(objective, method, seed, options, journal.description, rule)
    plan = Plan(
        description=searcher.description.without_objects(),
        path=storage,
        options=RunOptions(keep_checkpoints="none"),
        trials=trials,
        workers=1,
        driver=os.getpid(),
    )
    with Outlet() as outlet:
        _Loop(plan, objective, outlet).run(between)
    return raybo.load(storage)


class _Loop:
    """Runs the trials of a study."""

    def __init__(self, plan: Plan, objective: Objective, outlet: Outlet) -> None:
        self.plan, self.objective, self.outlet = plan, objective, outlet
        self.log = EventLog(plan, objective, Timings(1, True))
        self.judge = Judge(self.log, self._apply)
        self.queue = TrialQueue(self.log)

    def run(self, between: Callable[[], None]) -> None:
        with contextlib.closing(self.log), contextlib.closing(self.judge):
            self.judge.recover()
            for lost, _ in self.queue.left():
                self._apply(Running(lost), Occurrence.STUDY_LOST, {"reason": INTERRUPTED})
                self.queue.first.append(lost.trial)
            while (life := self._next()) is not None:
                self.log.commit()
                between()
                self._carry(Running(life))
            self.judge.end_paused()

    def _next(self) -> Life | None:
        """Return the next trial to run; None at the end."""
        if self.queue.first:
            number = self.queue.resumed()
            losses = self.log.losses.get(number, 0)
            return Life(number, attempt=self.log.searcher.trials[number].attempt, losses=losses)
        if (promoted := self.judge.promoted({})) is not None:
            life, occurrence, data = self.queue.promoted(promoted)
            self._apply(resumed := Running(life), occurrence, data)
            return resumed.life
        if self.log.has_asked_enough():
            return None
        return Life(self.log.add(self.log.propose(self.log.searcher.history)).trial)

    def _carry(self, trial: Running) -> None:
        """Run a trial to its end, which is still to be committed."""
        self._apply(trial, Occurrence.SUBMITTED, {})
        number, receive = trial.life.trial, partial(self._receive, trial)
        info = replace(self.judge.attempt_info(number), has_rule=True, waits_at=1)
        with attempt_here(self.log, self.objective, trial.life, info, receive) as run:
            occurrence, data = run()
        if trial.life.phase is Phase.RUNNING:
            self.outlet.require(occurrence, data)
            occurrence, data = self.judge.outcome(number, occurrence, data)
        if self._apply(trial, occurrence, data).submit:  # the disk was full
            self.queue.first.append(number)

    def _receive(self, trial: Running, batch: list[EventData]) -> Answer:
        """Record reports; each is waited for, so that all of them come from this thread."""
        return replace(self.judge.receive_now(trial, batch), waits_at=1)

    def _apply(self, trial: Running, occurrence: Occurrence, data: EventData) -> Step:
        """Perform what follows an occurrence by the table of a trial's life."""
        trial.life, following = trial.life.after(occurrence, retries=self.plan.options.retries)
        if (event := event_after(trial.life, following, occurrence, data)) is not None:
            self.log.add(event)
        if following.submit:
            self.log.losses[trial.life.trial] = trial.life.losses
        return following
