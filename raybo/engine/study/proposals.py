"""Proposals for workers: made on the spot, in a thread beside the event loop, or ahead of time, while trials run."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

from raybo.engine.study.event_log import EventLog
from raybo.engine.study.pace import Pace
from raybo.record.events import Event
from raybo.record.history import History

SWITCH_SECONDS = 0.0005  # the thread that proposes must not keep the event loop waiting for Python's usual 5 ms


class Proposals:
    """Makes a study's proposals, one at a time.

    Args:
        log: what they are based on.
        pace: by which they are made on the spot, or again.
    """

    def __init__(self, log: EventLog, pace: Pace) -> None:
        self.log = log
        self.pace = pace
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="propose")
        self.prepared: asyncio.Future[Event] | None = None
        sys.setswitchinterval(SWITCH_SECONDS)

    async def take(self) -> Event:
        """The proposal that was prepared while trials ran, or a fresh one where a better best has come since."""
        prepared, self.prepared = self.prepared, None
        if prepared is None:
            return self._propose(self.log.searcher.history) if self.pace.is_instant() else await self._think()
        asked = await prepared
        if asked.data["seen"] < self.log.improved and self.pace.is_replaceable():
            return await self._think()
        return asked

    def prepare(self) -> None:
        """Begin the next one, if that has not been done."""
        if self.prepared is None:
            self.prepared = self._think()

    def forget(self) -> None:
        """Use no proposal that was prepared: the next trial has another number."""
        self.prepared = None

    def close(self) -> None:
        """Make no more; one that is being made is not waited for."""
        self.thread.shutdown(wait=False)

    def _think(self) -> asyncio.Future[Event]:
        history = self.log.searcher.history.copy()
        return asyncio.get_running_loop().run_in_executor(self.thread, self._propose, history)

    def _propose(self, history: History) -> Event:
        """The proposal after a history; with what it is expected to gain, where the study may end for that."""
        return self.log.searcher.propose(history, with_gain=self.log.plan.limits.stop_below_gain is not None)
