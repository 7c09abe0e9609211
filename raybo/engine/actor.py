"""The study actor: performs what `lifecycle` instructs, and turns whatever happens to a trial into an occurrence.

One coroutine a worker: ask, commit, submit, await, commit, again. The Gaussian process runs in a thread of its own, one
proposal at a time, so that the event loop always answers. A restarted actor rebuilds everything from the journal and
submits again what was in flight.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, cast

import ray

from raybo.engine.lifecycle import Occurrence, Phase, Step, step
from raybo.engine.plan import Plan, Status
from raybo.engine.task import TRACEBACK_CHARACTERS, run_trial, unpickled
from raybo.errors import JournalError
from raybo.history import Event, Kind, State
from raybo.journal import Journal
from raybo.objectives import Objective
from raybo.searcher import Searcher
from raybo.space import Config

HURRY = 0.01  # of a trial's time: suggestions that take longer are prepared ahead
SWITCH_SECONDS = 0.0005  # the thread that proposes must not keep the event loop waiting for Python's usual 5 ms
SHARE_SECONDS = 0.002  # a result waits this long for the proposal that follows it, to be committed with it
STOP_REASON = "stopped by the user"


@dataclass
class _Flight:
    """A trial in the engine: its phase, how often it lost its worker, and the task that runs it."""

    phase: Phase = Phase.WAITING
    attempt: int = 1
    losses: int = 0
    task: Any = None
    started: asyncio.Event = field(default_factory=asyncio.Event)
    over_limit: bool = False


class StudyActor:
    """Runs one study. Made as a Ray actor by the driver; every method is called remotely."""

    def __init__(self, plan: Plan, objective: Objective) -> None:
        self.plan = plan
        self.objective = objective
        self.journal: Journal | None = None
        self.reason = ""
        self.notes: list[str] = []
        self.flights: dict[int, _Flight] = {}
        self.counts = dict.fromkeys(State, 0)
        self.best: tuple[int, float] | None = None
        self.suggest_seconds: deque[float] = deque(maxlen=100)
        self.trial_seconds: deque[float] = deque(maxlen=100)

    async def run(self, function: bytes) -> None:
        """Run the study to its end, or until it is stopped. Called again by Ray after a restart.

        Args:
            function: the user's function as Ray pickles it; only the workers unpickle it.
        """
        sys.setswitchinterval(SWITCH_SECONDS)
        self.thinker = ThreadPoolExecutor(1, thread_name_prefix="propose")
        self.asking = asyncio.Lock()
        self.unwritten: list[Event] = []
        self.prepared: asyncio.Future[Event] | None = None
        self.begun = time.monotonic()
        self.ended_before = 0
        self._open()
        self.task = ray.remote(max_retries=0, **self._resources())(self._trial(function))
        assert self.journal is not None
        slots = [asyncio.ensure_future(self._slot()) for _ in range(self.plan.workers)]
        deadline = None
        if self.plan.max_seconds is not None:
            left = self.plan.max_seconds
            deadline = asyncio.get_running_loop().call_later(left, self._stop, f"time limit of {left / 60:g} minutes")
        try:
            await asyncio.gather(*slots)
            self._flush()
        finally:
            if deadline is not None:
                deadline.cancel()
            for slot in slots:
                slot.cancel()
            self.thinker.shutdown(wait=False)
            self.journal.close()

    async def status(self, note: int = 0) -> Status | None:
        """The study now, with the notes from number `note` on; None until the journal is open."""
        if self.journal is None:
            return None
        ended = self.counts[State.FINISHED] + self.counts[State.FAILED] + self.counts[State.LOST]
        elapsed = time.monotonic() - self.begun
        here = ended - self.ended_before
        return Status(
            planned=self.plan.trials,
            finished=self.counts[State.FINISHED],
            failed=self.counts[State.FAILED] + self.counts[State.LOST],
            running=sum(flight.phase is Phase.RUNNING for flight in self.flights.values()),
            best=self.best,
            suggest_seconds=statistics.median(self.suggest_seconds) if self.suggest_seconds else None,
            elapsed=elapsed,
            left=elapsed / here * (self.plan.trials - ended) if here else None,
            notes=self.notes[note:],
            reason=self.reason,
        )

    async def stop(self) -> None:
        """Ask no more, and stop what runs; `run` returns when all of it is recorded."""
        self._stop(STOP_REASON)

    async def started(self, number: int, attempt: int) -> None:
        """A trial says that it begins."""
        flight = self.flights.get(number)
        if flight is not None and flight.attempt == attempt:
            flight.started.set()

    # ---- one worker

    async def _slot(self) -> None:
        while (number := await self._next()) is not None:
            await self._carry(number)

    async def _next(self) -> int | None:
        """The next trial to submit, committed; None when there is none."""
        async with self.asking:
            if self.interrupted:
                return self.interrupted.popleft()
            if self.reason or self._asked_enough():
                return None
            asked = await self._proposal()
            if self.reason:
                return None
            self.suggest_seconds.append(asked.data["suggest_seconds"])
            number = cast(int, self._record(asked).trial)
            self.flights[number] = _Flight()
            self._flush()
            return number

    async def _proposal(self) -> Event:
        """The proposal that was prepared while trials ran, or a fresh one."""
        prepared, self.prepared = self.prepared, None
        return await (prepared or self._think())

    def _prepare(self) -> None:
        """Begin the next proposal while trials run, where workers would wait for it."""
        if self._is_hurried() and self.prepared is None and not (self.asking.locked() or self._asked_enough()):
            self.prepared = self._think()

    def _think(self) -> asyncio.Future[Event]:
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self.thinker, self.searcher.propose, self.searcher.history.copy())

    def _is_hurried(self) -> bool:
        """Whether workers would wait for proposals: then each is prepared ahead, without the result that frees one.

        A sequential study always knows everything, and so does one whose trials are long beside its suggestions.
        """
        if self.plan.workers == 1 or not self.suggest_seconds or not self.trial_seconds:
            return False
        return statistics.median(self.suggest_seconds) > HURRY * statistics.median(self.trial_seconds)

    def _asked_enough(self) -> bool:
        return len(self.searcher.trials) - self.counts[State.STOPPED] >= self.plan.trials

    async def _carry(self, number: int) -> None:
        """Take a trial from its first submission to its end."""
        flight = self.flights[number]
        while True:
            if self.reason:
                occurrence, data = Occurrence.STOPPED, {"reason": self.reason}
            else:
                self._submit(number, flight)
                flight.phase = step(flight.phase, Occurrence.SUBMITTED).phase
                asyncio.get_running_loop().call_soon(self._prepare)  # not before the trial is on its way
                occurrence, data = await self._outcome(number, flight)
            flight.losses += occurrence is Occurrence.WORKER_LOST
            following = step(flight.phase, occurrence, losses=flight.losses, retries=self.plan.retries)
            self._perform(number, flight, following, data)
            if following.free:
                return

    def _perform(self, number: int, flight: _Flight, following: Step, data: dict[str, Any]) -> None:
        flight.phase = following.phase
        if following.submit:
            flight.attempt += 1
            flight.started = asyncio.Event()
        if following.phase is Phase.LOST:
            data = {**data, "kind": "lost"}
        assert following.record is not None
        self._record(Event(following.record, number, {**data, "attempt": flight.attempt}))
        if following.submit:
            self._flush()
        if following.free:
            del self.flights[number]
            asyncio.get_running_loop().call_later(SHARE_SECONDS, self._flush_in_background)

    def _submit(self, number: int, flight: _Flight) -> None:
        limited = self.plan.trial_seconds is not None
        listener = (ray.get_runtime_context().current_actor, number, flight.attempt) if limited else None
        config = self.searcher.trials[number].config
        flight.task = self.task.remote(config, listener)

    async def _outcome(self, number: int, flight: _Flight) -> tuple[Occurrence, dict[str, Any]]:
        watch = asyncio.ensure_future(self._watch(flight)) if self.plan.trial_seconds is not None else None
        try:
            return cast("tuple[Occurrence, dict[str, Any]]", await flight.task)
        except ray.exceptions.RayError as error:
            if flight.over_limit:
                reason = f"it ran longer than its limit of {self.plan.trial_seconds:g} seconds"
                return Occurrence.OVER_LIMIT, {"reason": reason, "seconds": self.plan.trial_seconds}
            if self.reason:
                return Occurrence.STOPPED, {"reason": self.reason}
            return _of_ray_error(error)
        finally:
            if watch is not None:
                watch.cancel()

    async def _watch(self, flight: _Flight) -> None:
        """Cancel a trial that runs longer than its limit, counted from when it began."""
        await flight.started.wait()
        await asyncio.sleep(cast(float, self.plan.trial_seconds))
        flight.over_limit = True
        ray.cancel(flight.task, force=True)  # anything less waits for a long call into C to return

    def _stop(self, reason: str) -> None:
        if not self.reason:
            self.reason = reason
            for flight in self.flights.values():
                if flight.task is not None:
                    ray.cancel(flight.task, force=True)

    # ---- what is recorded

    def _open(self) -> None:
        """Open the journal, rebuild the searcher from it, and find out what was in flight."""
        description = self.plan.description
        journal = Journal(self.plan.path, description, driver=self.plan.driver)
        space = self.objective.space
        mode = cast(Any, description.mode)
        self.searcher = Searcher(space, description.method, mode, description.seed, **description.options)
        for event in journal.events():
            self.searcher.apply(event)
        self.counts = {state: self.searcher.history.count(state) for state in State}
        self.ended_before = self.counts[State.FINISHED] + self.counts[State.FAILED] + self.counts[State.LOST]
        for trial in self.searcher.trials:
            self._consider_best(trial.number)
        self.journal = journal
        if self.searcher.history.planned != self.plan.trials:
            self._record(Event(Kind.PLANNED, None, {"trials": self.plan.trials}))
        self.interrupted: deque[int] = deque()
        self.flights = {}
        for trial in self.searcher.trials:
            if trial.state is State.PENDING:
                flight = self.flights[trial.number] = _Flight(attempt=trial.attempt)
                data = {"reason": "the study was interrupted"}
                self._perform(trial.number, flight, step(Phase.WAITING, Occurrence.STUDY_LOST), data)
                self.interrupted.append(trial.number)
        self._flush()

    def _record(self, event: Event) -> Event:
        """Take in an event; it is committed by the next flush, before anybody outside hears of it."""
        numbered = self.searcher.apply(event)
        self.unwritten.append(numbered)
        return numbered

    def _flush(self) -> None:
        """Commit what is recorded, in one transaction, and only then announce it."""
        if self.unwritten:
            assert self.journal is not None
            self.journal.append(self.unwritten)
            for event in self.unwritten:
                self._announce(event)
            self.unwritten = []

    def _flush_in_background(self) -> None:
        try:
            self._flush()
        except JournalError as error:  # nobody awaits this call: the next flush raises it where it is heard
            self.notes.append(str(error))

    def _announce(self, event: Event) -> None:
        if event.trial is None:
            return
        trial = self.searcher.trials[event.trial]
        if event.kind in (Kind.TOLD, Kind.FAILED, Kind.STOPPED):
            self.counts[trial.state] += 1
        if event.kind is Kind.TOLD:
            self._consider_best(event.trial)
            self.trial_seconds.append(event.data["seconds"])
        elif event.kind is Kind.FAILED:
            self.notes.append(f"trial {event.trial} {trial.state}: {event.data['reason']}")
        elif event.kind is Kind.RETRIED:
            self.notes.append(
                f"trial {event.trial} starts again (attempt {event.data['attempt']}): {event.data['reason']}"
            )

    def _consider_best(self, number: int) -> None:
        value = self.searcher.trials[number].value
        sign = self.searcher.history.sign
        if value is not None and (self.best is None or sign * value > sign * self.best[1]):
            self.best = number, value

    def _trial(self, function: bytes) -> Any:
        """The remote function. What does not change is in its closure, which Ray sends to a worker once."""
        settings, metric = dict(self.objective.settings), self.objective.metric
        threads = max(1, int(self.objective.num_cpus))

        def trial(config: Config, listener: tuple[Any, int, int] | None) -> tuple[Occurrence, dict[str, Any]]:
            if listener is not None:  # the limit counts from here, not from when the trial was submitted
                actor, number, attempt = listener
                actor.started.remote(number, attempt)
            return run_trial(unpickled(function), config, settings, metric, threads)

        return trial

    def _resources(self) -> dict[str, Any]:
        objective = self.objective
        resources: dict[str, Any] = {"num_cpus": objective.num_cpus, "num_gpus": objective.num_gpus}
        if objective.memory is not None:
            resources["memory"] = objective.memory
        if objective.resources:
            resources["resources"] = dict(objective.resources)
        return resources


def _of_ray_error(error: Exception) -> tuple[Occurrence, dict[str, Any]]:
    """What a failure that Ray reports was: the loss of a worker, unless it was the job's own doing."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return Occurrence.OVER_LIMIT, {"reason": f"it was killed for want of memory: {text}"}
    if isinstance(error, ray.exceptions.RayTaskError):  # before the objective began: its code could not be loaded
        last = str(error).strip().splitlines()[-1]
        return Occurrence.RAISED, {"reason": last, "traceback": str(error)[-TRACEBACK_CHARACTERS:]}
    if isinstance(error, ray.exceptions.NodeDiedError):
        return Occurrence.WORKER_LOST, {"reason": "its node was lost"}
    return Occurrence.WORKER_LOST, {"reason": f"its worker died ({type(error).__name__})"}
