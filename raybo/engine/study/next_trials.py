"""Chooses the trial that a free worker submits next, as `workers` decides, and has its event committed."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import cast

from raybo.common.errors import JournalError
from raybo.engine.lifecycle import Life, Occurrence, Phase
from raybo.engine.plan import Plan
from raybo.engine.study.capacity import Capacity
from raybo.engine.study.dispatch import DispatchedTrial
from raybo.engine.study.ending import Ending
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.proposals import Proposals
from raybo.engine.study.trial_runs import TrialRuns
from raybo.engine.study.workers import Ahead, Situation, Turn, ahead, turn
from raybo.journal.requests import Request
from raybo.record.events import Begun, Event
from raybo.record.origin import Origin
from raybo.record.states import State


class NextTrials:
    """Chooses the trials of a study, one at a time.

    Args:
        plan: what is run.
        log: the study's events.
        runs: the trials that have been chosen and have not ended.
        ending: whether the study is to end.
        capacity: how many trials run at a time.
    Attributes:
        proposals: makes the proposals.
    """

    def __init__(self, plan: Plan, log: EventLog, runs: TrialRuns, ending: Ending, capacity: Capacity) -> None:
        self.plan, self.log, self.runs, self.ending, self.capacity = plan, log, runs, ending, capacity
        self.proposals = Proposals(log, capacity.timings)
        self._first: deque[int] = deque()  # trials that the last loop lost, or the user has enqueued
        self._retried: deque[int] = deque()  # trials that had failed and are wanted again
        self._to_confirm: deque[int] | None = None  # trials whose configurations run again, once that is known
        self._asking = asyncio.Lock()  # held while a trial is chosen

    def recover(self) -> None:
        """Find the trials that the last loop left, and record those that it had begun as interrupted."""
        for trial in self.log.searcher.trials:
            if trial.state is State.PENDING:
                losses = self.log.losses.get(trial.number, 0)
                dispatched = self.runs.add(Life(trial.number, attempt=trial.attempt, losses=losses))
                self._first.append(trial.number)
                if trial.origin is not Origin.ENQUEUED or trial.number in self.log.touched:  # else it has yet to begin
                    self.runs.apply(dispatched, Occurrence.STUDY_LOST, {"reason": "the study was interrupted"})
        self.log.commit()
        self._retried.extend(self.log.wanted_again())

    def can_promote(self) -> bool:
        """True if a paused trial is to continue."""
        return not self.ending.enough and self.runs.judge.promoted(self.runs.dispatched) is not None

    def begin_confirming(self) -> bool:
        """Choose the configurations that run again now that the search is over; False if there are none."""
        if self.plan.options.confirm is None or self.ending.stopped or self._to_confirm is not None:
            return False
        self._to_confirm = deque(self.log.to_confirm())
        return bool(self._to_confirm)

    def situation(self) -> Situation:
        """Return the facts on which a worker's next action depends."""
        return Situation(
            room=self.capacity.submitted,
            interrupted=len(self._first) + len(self._retried),
            is_stopping=bool(self.ending.stopped),
            has_asked_enough=not self._to_confirm and (bool(self.ending.enough) or self.log.has_asked_enough()),
            is_proposing=self._asking.locked(),
            promotes=self.can_promote(),
        )

    def ahead(self) -> Ahead:
        """Return the work to prepare while trials run; a proposal is begun here."""
        what = ahead(self.situation(), self.capacity.timings)
        if what is Ahead.PROPOSAL:
            self.proposals.prepare()
        return what

    async def take(self, worker: int) -> DispatchedTrial | None:
        """Return the next trial for a worker to submit, committed; None if the worker is to leave."""
        dispatched = await self._chosen(worker)
        if dispatched is not None:  # while the disk is waited for, it is another worker's turn
            begun = time.perf_counter()
            await self.log.committed_to(self.log.newest)
            self.capacity.timings.commits.append(time.perf_counter() - begun)
        return dispatched

    async def enqueue(self, request: Request) -> bool:
        """Have the configuration of a request run next; it is committed before the request is marked as done.

        Returns:
            False if the request has to wait: the study is being stopped, or its journal cannot be written.
        """
        if self.ending.stopped or request.values is None:
            return False
        async with self._asking:  # no proposal is on its way
            row = self.log.wanted(request.values)
            asked = None if row is None else await self.proposals.enqueued(row)
            if self.ending.stopped:
                return False
            if asked is not None:
                self.proposals.forget()
                self._first.append(self._add(asked).life.trial)
                try:
                    self.log.commit()
                except JournalError:  # the next commit raises it and ends the study
                    return False
        request.done()
        return True

    async def _chosen(self, worker: int) -> DispatchedTrial | None:
        """Return the next trial for a worker, with its event added to the log; None if the worker is to leave."""
        async with self._asking:
            if self._to_confirm and self.log.is_over:
                self._to_confirm.clear()
            what = turn(worker, self.situation(), self.capacity.timings)
            if what is Turn.RESUME:
                return self._resumed() if self._first else self._again()
            if what is Turn.PROMOTE:
                return self._promoted()
            if what is Turn.LEAVE:
                return None
            await self.runs.all_placed()  # what is asked for later knows more
            asked = self._confirmation() if self._to_confirm else await self.proposals.take()
            if self.ending.stopped or (self.ending.enough and self._to_confirm is None):
                return None
            return self._add(asked)

    def _add(self, asked: Event) -> DispatchedTrial:
        """Add the event by which a trial is asked for."""
        return self.runs.add(Life(cast(int, self.log.add(asked).trial)))

    def _confirmation(self) -> Event:
        """Return the event by which the next configuration to confirm is asked for once more."""
        assert self._to_confirm
        number = self._to_confirm.popleft()
        searcher = self.log.searcher
        return searcher.known(searcher.trials[number].config, Origin.CONFIRMED, {"confirms": number})

    def _resumed(self) -> DispatchedTrial:
        """Return a trial that was in flight when the last loop was lost, or one that the user has enqueued."""
        dispatched = self.runs.dispatched[self._first.popleft()]
        trial = self.log.searcher.trials[dispatched.life.trial]
        if trial.origin is Origin.ENQUEUED and trial.attempt == 1:
            # a loop that finds no event of it but `asked` may rely on it that it has not begun
            self.log.add(Begun(trial.number, attempt=1))
        return dispatched

    def _again(self) -> DispatchedTrial:
        """Return a failed trial that is wanted again, committed; until its turn comes it stays failed."""
        trial = self.log.searcher.trials[self._retried.popleft()]
        phase = Phase.LOST if trial.state is State.LOST else Phase.FAILED
        dispatched = self.runs.add(Life(trial.number, phase, trial.attempt))
        self.runs.apply(dispatched, Occurrence.WANTED_AGAIN, {"reason": "it had failed, and is retried"})
        self.log.commit()
        return dispatched

    def _promoted(self) -> DispatchedTrial:
        """Return a paused trial that continues, committed."""
        number = cast(int, self.runs.judge.promoted(self.runs.dispatched))
        trial = self.log.searcher.trials[number]
        dispatched = self.runs.add(Life(number, Phase.PAUSED, trial.attempt))
        self.runs.apply(dispatched, Occurrence.PROMOTED, {"step": trial.step, "seen": self.log.newest})
        return dispatched
