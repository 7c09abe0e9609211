"""One attempt of a trial that has several processes, in the study's process: all of them or none.

Their resources are reserved together in a placement group, and each of them is a Ray task in it. The end of one is the
end of all, with one outcome. To the rest of the engine a gang is what the reference to a task is for other trials: it
is awaited and cancelled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

import ray

from raybo.engine.lifecycle import Occurrence
from raybo.engine.ray.placement import is_reserved, release
from raybo.engine.study.meetings import Meetings
from raybo.engine.study.rank_endings import RankEnding, ending_of_all
from raybo.engine.trial.report_sender import Answer
from raybo.engine.trial.seat import Arrival, Seat, seats
from raybo.record.events import EventData

WAIT_SECONDS = 1.0  # between two looks whether a placement group that is waited for is still wanted
NOTICE_SECONDS = 60.0  # a wait as long as this is told
ARRIVAL_SECONDS = 300.0  # from the first process that has begun to the last
OTHERS_SECONDS = 2.0  # after a failure, for what the other processes have to say
ECHO_SECONDS = 10.0  # likewise if the failure is a lost connection, of which another process is the cause
LEAVE_SECONDS = 30.0  # after a good end, for the others to end
KILL_SECONDS = 1.0  # for cancelled processes to end; what is left ends with the placement group
GIVE_UP_SECONDS = 30.0  # for processes on a node that does not answer


class Gang:
    """One attempt of a trial as several processes.

    Args:
        count: how many.
        reserve: asks for their placement group.
        admission: held while a gang waits for its placement group, so that the one that has waited longest is first.
        submit: submits the process of an index into the placement group; returns Ray's reference.
        answer: the study's answer to a report at a step, the same for all.
        placed: called when there is room for all.
        begun: called with the first one's node when all have begun.
        note: tells who watches something.
        outcome_of_error: classifies a failure that Ray reports.
    """

    def __init__(
        self,
        count: int,
        *,
        reserve: Callable[[], Any],
        admission: asyncio.Lock,
        submit: Callable[[Any, int], Any],
        answer: Callable[[int], Answer],
        placed: Callable[[], None],
        begun: Callable[[str], None],
        note: Callable[[str], None],
        outcome_of_error: Callable[[Exception], tuple[Occurrence, EventData]],
    ) -> None:
        self.count = count
        self.is_placed = False
        self.meetings = Meetings(count, answer, note)
        self._reserve, self._admission, self._submit = reserve, admission, submit
        self._on_placed, self._on_begun, self._note = placed, begun, note
        self._outcome_of_error = outcome_of_error
        self._group: Any = None
        self._refs: list[Any] = []
        self._watched: list[asyncio.Task[None]] = []
        self._arrivals: dict[int, Arrival] = {}
        self._first_arrival = 0.0
        self._seats: list[Seat] | None = None
        self._all_here = asyncio.Event()
        self._endings: dict[int, RankEnding] = {}
        self._rest: list[Any] = []  # output of the first one that came with its result
        self._news = asyncio.Event()
        self._is_cancelled = self._is_closing = False
        self._task = asyncio.ensure_future(self._run())

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for its end: return what a trial's task returns, or raise what Ray raises if it was cancelled."""
        return asyncio.shield(self._task).__await__()

    def cancel(self) -> None:
        """End all its processes."""
        self._is_cancelled = True
        self._news.set()

    @property
    def nodes(self) -> list[str | None]:
        """The node of each process; None for one that has been submitted and has not begun."""
        return [at.node if (at := self._arrivals.get(index)) else None for index in range(len(self._refs))]

    # ---- what its processes say

    async def hear(self, what: str, index: int, *arguments: Any) -> Any:
        """Take what a process says, by its index; return what it waits for."""
        if what == "arrive":
            return await self._arrive(index, *arguments)
        if what == "end":
            return self._end(index, *arguments)
        rank = self._rank(index)
        if what == "follow":
            self.meetings.follow(rank, *arguments)
            return Answer()
        return await (self.meetings.gather(*arguments) if what == "gather" else self.meetings.meet(rank, *arguments))

    async def _arrive(self, index: int, arrival: Arrival) -> Seat | None:
        if not self._arrivals:
            self._first_arrival = time.monotonic()
        self._arrivals[index] = arrival
        self._news.set()
        if len(self._arrivals) == self.count:
            self._seats = seats([self._arrivals[each] for each in range(self.count)])
            self._on_begun(self._arrivals[0].node)
            self._all_here.set()
        await self._all_here.wait()
        return None if self._seats is None else self._seats[index]

    def _rank(self, index: int) -> int:
        return index if self._seats is None else self._seats[index].rank

    def _end(self, index: int, occurrence: Occurrence, data: EventData) -> None:
        """Take the end of a process, of which its own word counts and not what becomes of it afterwards."""
        rank = self._rank(index)
        if rank not in self._endings and not self._is_closing:  # else it is being ended
            self._endings[rank] = RankEnding(occurrence, data, time.monotonic())
            if self._endings[rank].is_good:
                self.meetings.leave(rank)
            self._news.set()

    # ---- from the reservation to the end

    async def _run(self) -> Any:
        try:
            await self._begin()
            while not self._is_over():
                self._news.clear()
                await _within(self._news.wait(), self._patience())
        finally:
            await self._clear()
        if self._is_cancelled:
            raise ray.exceptions.TaskCancelledError
        occurrence, data = ending_of_all(self._endings, self.count)
        return occurrence, data, *self._rest

    async def _begin(self) -> None:
        loop, asked, has_noted = asyncio.get_running_loop(), time.monotonic(), False
        async with self._admission:
            if self._is_cancelled:
                return
            self._group = self._reserve()
            while not self._is_cancelled and not await loop.run_in_executor(
                None, is_reserved, self._group, WAIT_SECONDS
            ):
                if not has_noted and time.monotonic() > asked + NOTICE_SECONDS:
                    has_noted = True
                    self._note(f"waits until Ray has room for its {self.count} processes together")
        if self._is_cancelled:
            return
        self.is_placed = True
        self._on_placed()
        for index in range(self.count):
            self._refs.append(self._submit(self._group, index))
            self._watched.append(asyncio.ensure_future(self._watch(index)))

    async def _watch(self, index: int) -> None:
        """Wait for the end of a process's task."""
        try:
            occurrence, data, rest = await self._refs[index]
            if index == 0:
                self._rest = [rest]
        except ray.exceptions.RayError as error:
            occurrence, data = self._outcome_of_error(error)
        self._end(index, occurrence, data)

    def _is_over(self) -> bool:
        """True if no process is waited for any longer; those that are left are ended."""
        if self._is_cancelled or len(self._endings) == self.count:
            return True
        if self._patience() > 0:
            return False
        if not self._endings:
            reason = f"it had not begun {ARRIVAL_SECONDS:g} s after the others"
            for index in set(range(self.count)) - set(self._arrivals):
                self._endings[index] = RankEnding(Occurrence.WORKER_LOST, {"reason": reason}, time.monotonic())
        elif all(ending.is_good for ending in self._endings.values()):
            late = ", ".join(str(rank) for rank in range(self.count) if rank not in self._endings)
            self._note(f"rank {late} had not ended {LEAVE_SECONDS:g} s after rank 0, and was killed")
        return True

    def _patience(self) -> float:
        """Return for how many seconds more the other processes are waited for; infinite if nothing presses."""
        now = time.monotonic()
        bad = [ending for ending in self._endings.values() if not ending.is_good]
        if bad:
            if all(ending.is_echo for ending in bad):
                seconds = ECHO_SECONDS
            elif all(ending.occurrence is Occurrence.LEFT for ending in bad) and self.meetings.has_ended:
                seconds = LEAVE_SECONDS
            else:
                seconds = OTHERS_SECONDS
            return min(ending.at for ending in bad) + seconds - now
        if 0 in self._endings:
            return self._endings[0].at + LEAVE_SECONDS - now
        if self._arrivals and not self._all_here.is_set():
            return self._first_arrival + ARRIVAL_SECONDS - now
        return float("inf")

    async def _clear(self) -> None:
        """End what is left of its processes, and give back its resources."""
        self._is_closing = True
        self._all_here.set()
        self.meetings.close()
        if self._endings and not self._is_cancelled and len(self._endings) == self.count:
            is_good = all(ending.is_good for ending in self._endings.values())
            # they have said their last, and clean up: for which a broken one may wait for ever
            await _all_done(self._watched, LEAVE_SECONDS if is_good else OTHERS_SECONDS)
        for ref, watched in zip(self._refs, self._watched, strict=True):
            if not watched.done():
                ray.cancel(ref, force=True)
        await _all_done(self._watched, KILL_SECONDS)
        if self._group is not None:  # not before: what waits in a group that is removed waits for ever
            release(self._group)
        await _all_done(self._watched, GIVE_UP_SECONDS)
        for watched in self._watched:
            watched.cancel()


async def _within(awaited: Any, seconds: float) -> None:
    """Wait for something, at most so long."""
    task = asyncio.ensure_future(awaited)
    await asyncio.wait([task], timeout=None if seconds == float("inf") else max(0.0, seconds))
    task.cancel()


async def _all_done(tasks: Sequence[asyncio.Task[None]], seconds: float) -> None:
    if pending := [task for task in tasks if not task.done()]:
        await asyncio.wait(pending, timeout=seconds)
