"""Proposals for workers: made on the spot, in a thread beside the event loop, or ahead of time, while trials run."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

from raybo.engine.study.event_log import EventLog
from raybo.engine.study.timings import Timings
from raybo.record.events import Asked
from raybo.space import Row
from raybo.space.partial import left_out

SWITCH_SECONDS = 0.0005  # the thread that proposes must not keep the event loop waiting for Python's usual 5 ms


class Proposals:
    """Makes a study's proposals, one at a time.

    Args:
        log: the events that they are based on.
        timings: by which they are made on the spot, or anew.
    """

    def __init__(self, log: EventLog, timings: Timings) -> None:
        self.log = log
        self.timings = timings
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="propose")
        self.prepared: asyncio.Future[Asked] | None = None
        sys.setswitchinterval(SWITCH_SECONDS)

    async def take(self) -> Asked:
        """Return the proposal that was prepared while trials ran, or a fresh one if the best has improved since."""
        prepared, self.prepared = self.prepared, None
        if prepared is None:
            return self.log.propose(self.log.searcher.history) if self.timings.is_instant() else await self._in_thread()
        asked = await prepared
        if asked.seen < self.log.improved and self.timings.is_replaceable():
            return await self._in_thread()
        return asked

    def prepare(self) -> None:
        """Begin the next proposal, unless one is being prepared."""
        if self.prepared is None:
            self.prepared = self._in_thread()

    async def enqueued(self, row: Row) -> Asked | None:
        """Return the event of asking for what a user has enqueued, with what it leaves out; see `EventLog.enqueued`."""
        history = self.log.searcher.history
        if self.timings.is_instant() or not left_out(self.log.searcher.space, row):
            return self.log.enqueued(row, history)
        return await asyncio.get_running_loop().run_in_executor(self.thread, self.log.enqueued, row, history.copy())

    def forget(self) -> None:
        """Drop the prepared proposal: the next trial has another number."""
        self.prepared = None

    def close(self) -> None:
        """Make no more proposals, without waiting for one that is being made."""
        self.thread.shutdown(wait=False)

    def _in_thread(self) -> asyncio.Future[Asked]:
        history = self.log.searcher.history.copy()
        return asyncio.get_running_loop().run_in_executor(self.thread, self.log.propose, history)
