"""Chooses the trial that a free worker submits next, as `workers` decides, and has its event committed."""

from __future__ import annotations

import asyncio
import time
from typing import cast

from raybo.common.errors import JournalError
from raybo.engine.lifecycle import Life, Occurrence
from raybo.engine.study.capacity import Capacity
from raybo.engine.study.dispatch import DispatchedTrial
from raybo.engine.study.ending import Ending
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.proposals import Proposals
from raybo.engine.study.trial_queue import INTERRUPTED, TrialQueue
from raybo.engine.study.trial_runs import TrialRuns
from raybo.engine.study.workers import Ahead, Situation, Turn, ahead, turn
from raybo.journal.requests import Request
from raybo.record.events import Event, EventData


class NextTrials:
    """Chooses the trials of a study, one at a time.

    Args:
        log: the study's events.
        runs: the trials that have been chosen and have not ended.
        ending: whether the study is to end.
        capacity: how many trials run at a time.
    Attributes:
        proposals: makes the proposals.
    """

    def __init__(self, log: EventLog, runs: TrialRuns, ending: Ending, capacity: Capacity) -> None:
        self.log, self.runs, self.ending, self.capacity = log, runs, ending, capacity
        self.proposals = Proposals(log, capacity.timings)
        self._queue = TrialQueue(log)
        self._asking = asyncio.Lock()  # held while a trial is chosen

    def recover(self) -> None:
        """Find the trials that the last loop left, and record those that it had begun as interrupted."""
        for life, has_begun in self._queue.left():
            dispatched = self.runs.add(life)
            self._queue.first.append(life.trial)
            if has_begun:
                self.runs.apply(dispatched, Occurrence.STUDY_LOST, {"reason": INTERRUPTED})
        self.log.commit()
        self._queue.failed.extend(self.log.wanted_again())

    def can_promote(self) -> bool:
        """True if a paused trial is to continue."""
        return not self.ending.enough and self._promoted() is not None

    def begin_confirming(self) -> bool:
        """Choose the configurations that run again now that the search is over; False if there are none."""
        return not self.ending.stopped and self._queue.begin_confirming()

    def situation(self) -> Situation:
        """Return the facts on which a worker's next action depends."""
        return Situation(
            room=self.capacity.submitted,
            interrupted=len(self._queue.first) + len(self._queue.failed),
            is_stopping=bool(self.ending.stopped),
            has_asked_enough=not self._queue.is_confirming
            and (bool(self.ending.enough) or self.log.has_asked_enough()),
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
                self._queue.first.append(self._add(asked).life.trial)
                try:
                    self.log.commit()
                except JournalError:  # the next commit raises it and ends the study
                    return False
        request.done()
        return True

    async def _chosen(self, worker: int) -> DispatchedTrial | None:
        """Return the next trial for a worker, with its event added to the log; None if the worker is to leave."""
        async with self._asking:
            confirms = self._queue.is_confirming
            what = turn(worker, self.situation(), self.capacity.timings)
            if what is Turn.RESUME:
                if self._queue.first:
                    return self.runs.dispatched[self._queue.resumed()]
                return self._begun_again(*self._queue.retried())
            if what is Turn.PROMOTE:
                return self._begun_again(*self._queue.promoted(cast(int, self._promoted())))
            if what is Turn.LEAVE:
                return None
            await self.runs.all_placed()  # what is asked for later knows more
            asked = self._queue.confirmation() if confirms else await self.proposals.take()
            if self.ending.stopped or (self.ending.enough and not confirms):
                return None
            return self._add(asked)

    def _add(self, asked: Event) -> DispatchedTrial:
        """Add the event by which a trial is asked for."""
        return self.runs.add(Life(cast(int, self.log.add(asked).trial)))

    def _begun_again(self, life: Life, occurrence: Occurrence, data: EventData) -> DispatchedTrial:
        """Return a trial that had ended or paused, and begins again; that is committed."""
        dispatched = self.runs.add(life)
        self.runs.apply(dispatched, occurrence, data)
        return dispatched

    def _promoted(self) -> int | None:
        return self.runs.judge.promoted(self.runs.dispatched)
