"""The meetings of a trial's processes: at steps that all of them know beforehand, each waits until all have come.

There they get the study's answer, the same for all, so that a verdict ends all of them at one step. The next meeting is
at the next step at which a verdict can be given, and not later than a fraction of a second, by the mean duration of all
steps so far, as other things are heard only there: that the study is being stopped, or a constraint was broken.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from raybo.engine.trial.report_sender import GONE, Answer

MEETING_SECONDS = 0.25  # between two meetings; one costs a few milliseconds
NOTICE_SECONDS = 60.0  # a wait as long as this is told
LIMIT_SECONDS = 1800.0  # as gloo waits by default
ALIKE = "every rank must report the same steps"
SAVE = "save on all ranks at the same steps, or on rank 0 only"


class Meetings:
    """The meetings of one attempt of a trial.

    Args:
        count: how many processes it has.
        answer: the study's answer to a report at a step.
        note: tells who watches something.
    Attributes:
        has_ended: whether the last answer was that the trial is to end.
    """

    def __init__(self, count: int, answer: Callable[[int], Answer], note: Callable[[str], None]) -> None:
        self.has_ended = False
        self._count, self._answer, self._note = count, answer, note
        self._here: dict[int, int] = {}  # by rank: the step that it has reported, and waits at
        self._met: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._timers: list[asyncio.TimerHandle] = []
        self._left: set[int] = set()  # the ranks that have ended without a fault
        self._steps: dict[int, int] = {}  # by rank but the first: the last step that it has reported
        self._saved: dict[tuple[int, int], str] = {}  # by rank and step: the checkpoint of which it has saved a part
        self._gathered: set[int] = set()  # the steps with which rank 0 has saved one
        self._news = asyncio.Event()
        self._first: tuple[int, float] | None = None  # the step and the time of the first meeting
        self._interval = 1
        self._has_noted = False
        self._is_closed = False

    async def meet(self, rank: int, step: int) -> Answer:
        """Wait until all have come, and return the answer to all."""
        if self._is_closed:
            return GONE
        self._here[rank] = step
        if not self._timers:
            loop = asyncio.get_running_loop()
            self._timers = [
                loop.call_later(NOTICE_SECONDS, self._notice),
                loop.call_later(LIMIT_SECONDS, self._give_up),
            ]
        met = self._met
        self._look()
        return await asyncio.shield(met)

    def follow(self, rank: int, steps: list[tuple[int, str | None]]) -> None:
        """Note which steps a rank but the first has reported, and the checkpoints of which it has saved a part."""
        for step, saved in steps:
            self._steps[rank] = step
            if saved is not None:
                self._saved[rank, step] = saved
        self._news.set()

    async def gather(self, step: int, name: str) -> tuple[list[int], str]:
        """Wait until all have reported a step with which rank 0 has saved a checkpoint.

        Returns:
            the ranks that have saved a part of it, and why it is none; empty if it is one.
        """
        begun = time.monotonic()
        self._gathered.add(step)
        while late := [
            rank for rank in range(1, self._count) if self._steps.get(rank, 0) < step and rank not in self._left
        ]:
            self._news.clear()
            waiting = asyncio.ensure_future(self._news.wait())
            await asyncio.wait([waiting], timeout=NOTICE_SECONDS)
            waiting.cancel()
            if self._is_closed:
                return [], GONE.why
            if time.monotonic() > begun + LIMIT_SECONDS:
                return [], f"{_missing(late, step)}; {ALIKE}"
            if time.monotonic() > begun + NOTICE_SECONDS:
                self._say(late, step)
        ranks = [rank for rank in range(1, self._count) if (rank, step) in self._saved]
        for rank in ranks:
            if self._saved[rank, step] != name:
                return [], f"rank {rank} has saved another number of checkpoints than rank 0; {SAVE}"
        return ranks, ""

    def leave(self, rank: int) -> None:
        """Note that a rank has ended without a fault, and comes to no more meetings."""
        self._left.add(rank)
        self._news.set()
        self._look()

    def close(self) -> None:
        """Answer who still waits, or comes later, as the trial is over."""
        self._is_closed = True
        self._news.set()
        self._end(GONE)

    def _look(self) -> None:
        """End the meeting if all have come, or if one of them cannot come any more."""
        if not self._here:
            return
        if fault := _difference(self._here, self._left):
            self._end(Answer("fault", f"{fault}; {ALIKE}"))
        elif len(self._here) == self._count:
            step = next(iter(self._here.values()))
            strays = [(at, rank) for rank, at in self._saved if at <= step and at not in self._gathered]
            if strays:
                at, rank = min(strays)
                self._end(Answer("fault", f"rank {rank} has saved a checkpoint at step {at}, and rank 0 none; {SAVE}"))
                return
            answer = self._answer(step)
            self.has_ended = answer.action != "go"
            self._end(replace(answer, waits_at=self._next(step, answer.waits_at)))

    def _next(self, step: int, waits_at: int | None) -> int:
        """Return the step of the next meeting."""
        now = time.monotonic()
        if self._first is None:
            self._first = step, now
        elif now > self._first[1]:
            mean = (now - self._first[1]) / (step - self._first[0])
            self._interval = max(1, min(2 * self._interval, int(MEETING_SECONDS / mean)))
        soon = step + self._interval
        return soon if waits_at is None or waits_at <= step else min(soon, waits_at)

    def _end(self, answer: Answer) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers, self._here = [], {}
        met, self._met = self._met, asyncio.get_running_loop().create_future()
        met.set_result(answer)

    def _late(self) -> list[int]:
        return [rank for rank in range(self._count) if rank not in self._here]

    def _notice(self) -> None:
        self._say(self._late(), next(iter(self._here.values())))

    def _say(self, late: list[int], step: int) -> None:
        if not self._has_noted:
            self._has_noted = True
            self._note(f"{_missing(late, step)}, for which the other ranks have waited {NOTICE_SECONDS:g} s")

    def _give_up(self) -> None:
        self._end(Answer("fault", f"{_missing(self._late(), next(iter(self._here.values())))}; {ALIKE}"))


def _difference(here: dict[int, int], left: set[int]) -> str:
    """Return how the steps at which ranks wait differ, or that one of them has ended; empty if all is well."""
    first, *others = sorted(here)
    for rank in others:
        if here[rank] != here[first]:
            return f"rank {rank} reported step {here[rank]} while rank {first} reported step {here[first]}"
    if left:
        return f"rank {min(left)} ended while rank {first} reported step {here[first]}"
    return ""


def _missing(late: list[int], step: int) -> str:
    ranks = ", ".join(map(str, late))
    return (
        f"rank {ranks} has not reported step {step}"
        if len(late) == 1
        else f"ranks {ranks} have not reported step {step}"
    )
