"""The study actor: performs what `lifecycle` instructs, and turns whatever happens to a trial into an occurrence.

One coroutine a worker: ask, commit, submit, await, commit, again. The Gaussian process runs in a thread of its own, one
proposal at a time, so that the event loop always answers. A restarted actor rebuilds everything from the journal and
submits again what was in flight. On a cluster another coroutine looks at the nodes: a trial whose node Ray counts as
dead is given up, for Ray itself waits for ever for what a node does that was cut off from the network.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import ray

from raybo.engine.connection import workers_available
from raybo.engine.forks import part_with_forks
from raybo.engine.lifecycle import Occurrence, Phase, Step, step
from raybo.engine.plan import Plan, Status
from raybo.engine.task import TRACEBACK_CHARACTERS, run_trial, unpickled
from raybo.errors import JournalError, RayError, first_line
from raybo.history import ENDED, Event, Kind, Origin, State, end_of
from raybo.journal import Journal
from raybo.objectives import Objective
from raybo.searcher import NO_CONTEXT, Searcher
from raybo.space import Config

HURRY = 0.01  # of a trial's time: what takes longer, of what is done between two trials, is done ahead
DISPATCH_SECONDS = 0.003  # from the end of a trial to the start of the next, by Ray alone
INSTANT = 0.001  # seconds: a suggestion that takes less is made on the spot, as a thread would cost as much
REPLACEABLE = 0.25  # of a trial's time: prepared proposals that took longer are used, whatever has come since
SWITCH_SECONDS = 0.0005  # the thread that proposes must not keep the event loop waiting for Python's usual 5 ms
SHARE_SECONDS = 0.002  # a result waits this long for the proposal that follows it, to be committed with it
NODE_SECONDS = 2.0  # between looks at the nodes of a cluster
GRACE_SECONDS = 2.0  # a result may still be on its way when its node is counted as dead
NOTES = 1_000  # of the last things that happened to single trials
FAREWELL_SECONDS = 10.0  # a detached study answers so long after its end
STOP_REASON = "stopped by the user"


@dataclass
class _Flight:
    """A trial in the engine: its phase, how often it lost its worker, and the task that runs it."""

    phase: Phase = Phase.WAITING
    attempt: int = 1
    losses: int = 0
    task: Any = None
    submitted: float = 0.0  # when, by the monotonic clock
    node: str | None = None  # where it runs; None until it says so
    started: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # its node was lost
    over_limit: bool = False


class StudyActor:
    """Runs one study, from the moment it is made, and again when Ray restarts it. Every method is called remotely.

    Args:
        plan: what to run.
        objective: what is tuned, without its function.
        function: the user's function as Ray pickles it; only the workers unpickle it.
    """

    def __init__(self, plan: Plan, objective: Objective, function: bytes) -> None:
        self.plan = plan
        self.objective = objective
        self.function = function
        self.journal: Journal | None = None
        self.ended = asyncio.Event()
        self.error: BaseException | None = None
        self.reason = ""
        self.notes: deque[tuple[int, str]] = deque(maxlen=NOTES)
        self.flights: dict[int, _Flight] = {}
        self.counts = dict.fromkeys(State, 0)
        self.best: tuple[int, float] | None = None
        self.missed = False  # whether a trial came without a declared context
        self.suggest_seconds: deque[float] = deque(maxlen=100)
        self.trial_seconds: deque[float] = deque(maxlen=100)
        # called by itself and not by the driver, who may be gone when a detached study's actor is restarted
        ray.get_runtime_context().current_actor.run.remote()

    async def run(self) -> None:
        """Run the study to its end, or until it is stopped. Whoever waits in `outcome` hears of it."""
        try:
            await self._run()
        except Exception as error:  # noqa: BLE001  # whatever it is, it is told to who asks for the outcome
            self.error = error
        self.ended.set()
        if self.plan.detached:
            await asyncio.sleep(FAREWELL_SECONDS)
            ray.kill(ray.get_runtime_context().current_actor)

    async def outcome(self) -> None:
        """Wait for the end of the study; raises what ended it early."""
        await self.ended.wait()
        if self.error is not None:
            raise self.error

    async def _run(self) -> None:
        sys.setswitchinterval(SWITCH_SECONDS)
        self.thinker = ThreadPoolExecutor(1, thread_name_prefix="propose")
        self.asking = asyncio.Lock()
        self.unwritten: list[Event] = []
        self.prepared: asyncio.Future[Event] | None = None
        self._open()
        assert self.journal is not None
        self.task = self._task()
        self.on_cluster = len(cast(Any, ray).nodes()) > 1 or self.plan.elastic
        self.room = self.plan.workers
        self.slots: dict[int, asyncio.Task[None]] = {}
        self.slot_ended = asyncio.Event()
        watch = asyncio.ensure_future(self._watch_nodes()) if self.on_cluster else None
        deadline = None
        if self.plan.max_seconds is not None:
            left = self.plan.begun + self.plan.max_seconds - time.monotonic()
            reason = f"time limit of {self.plan.max_seconds / 60:g} minutes"
            deadline = asyncio.get_running_loop().call_later(max(0.0, left), self._stop, reason)
        try:
            self._open_slots()
            while self.slots:  # more may be opened while these run
                await self.slot_ended.wait()
                self.slot_ended.clear()
                for index, slot in list(self.slots.items()):
                    if slot.done():
                        del self.slots[index]
                        slot.result()
            self._flush()
        finally:
            for running in [*self.slots.values(), watch, deadline]:
                if running is not None:
                    running.cancel()
            self.thinker.shutdown(wait=False)
            self.journal.close()

    async def what(self) -> Plan:
        """What it was told to run."""
        return self.plan

    async def status(self, after: int = 0) -> Status | None:
        """The study now, with what happened to single trials after an event; None until the journal is open."""
        if self.journal is None:
            return None
        ended = sum(self.counts[state] for state in ENDED)
        elapsed = time.monotonic() - self.plan.begun
        here = ended - self.ended_before
        return Status(
            metric=self.plan.description.metric,
            planned=self.plan.trials,
            finished=self.counts[State.FINISHED],
            failed=self.counts[State.FAILED] + self.counts[State.LOST],
            running=min(sum(flight.phase is Phase.RUNNING for flight in self.flights.values()), self.room),
            best=self.best,
            suggest_seconds=statistics.median(self.suggest_seconds) if self.suggest_seconds else None,
            elapsed=elapsed,
            left=elapsed / here * (self.plan.trials - ended) if here else None,
            notes=[text for number, text in self.notes if number > after],
            last_event=self.searcher.history.last_event if not self.unwritten else self.unwritten[0].number - 1,
            reason=self.reason,
            has_context=self.context is not None,
        )

    async def stop(self) -> None:
        """Ask no more, and stop what runs; `outcome` returns when all of it is recorded."""
        self._stop(STOP_REASON)

    async def started(self, number: int, attempt: int, node: str) -> None:
        """A trial says that it begins, and where."""
        flight = self.flights.get(number)
        if flight is not None and flight.attempt == attempt:
            flight.node = node
            flight.started.set()

    async def met(self, number: int, attempt: int, data: dict[str, Any]) -> None:
        """A trial says which context it has met, before it ends."""
        flight = self.flights.get(number)
        if flight is not None and flight.attempt == attempt:
            self._flush_in_background(self._record(Event(Kind.MET, number, data)).number)

    # ---- the nodes

    def _open_slots(self) -> None:
        for index in range(self._in_flight()):
            if index not in self.slots:
                self.slots[index] = asyncio.ensure_future(self._slot(index))
                self.slots[index].add_done_callback(lambda _: self.slot_ended.set())

    async def _watch_nodes(self) -> None:
        """Give up trials whose node was lost, and use all the room that there is, where nobody said how much."""
        loop = asyncio.get_running_loop()
        dead: set[str] | None = None  # unknown as yet: those that were lost before this study are no news
        lost_at = -math.inf  # when a node was last found dead
        while True:
            await asyncio.sleep(NODE_SECONDS)
            nodes = await loop.run_in_executor(None, ray.nodes)
            dead_before, dead = dead, {node["NodeID"] for node in nodes if not node["Alive"]}
            now = time.monotonic()
            if dead_before is not None and dead - dead_before:
                lost_at = now
                self.task = self._task()  # the old one's requests to the lost node are never answered, and block others
            for flight in self.flights.values():
                # one that has not begun may be on its way to a lost node, and Ray may not have noticed when it was sent
                on_its_way = flight.submitted < min(lost_at + NODE_SECONDS, now - NODE_SECONDS)
                if flight.node in dead or (flight.node is None and on_its_way):
                    loop.call_later(GRACE_SECONDS, flight.gone.set)  # this attempt's event: the next has its own
            if self.plan.elastic:
                self.room = self._room(nodes)
                self._open_slots()

    def _room(self, nodes: list[dict[str, Any]]) -> int:
        objective = self.objective
        try:
            room = workers_available(
                nodes, objective.num_cpus, objective.num_gpus, objective.memory, dict(objective.resources)
            )
        except RayError:  # not one at the moment: what is submitted waits for a node to come back
            room = 1
        return min(room, self.plan.trials)

    # ---- one worker

    async def _slot(self, index: int) -> None:
        while index < self._in_flight() and (number := await self._next()) is not None:
            await self._carry(number)

    def _in_flight(self) -> int:
        """How many trials are given to Ray at a time: one more than run, where workers would wait for the next."""
        return self.room + self._is_short()

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
        """The proposal that was prepared while trials ran, or a fresh one where a better best has come since."""
        prepared, self.prepared = self.prepared, None
        if prepared is None:
            return self.searcher.propose(self.searcher.history) if self._is_instant() else await self._think()
        asked = await prepared
        if asked.data["seen"] < self.improved and self._is_soon_replaced():
            return await self._think()
        return asked

    def _prepare(self) -> None:
        """Begin the next proposal while trials run, where workers would wait for it."""
        if self._is_short():
            self._open_slots()
        elif self._is_hurried() and self.prepared is None and not (self.asking.locked() or self._asked_enough()):
            self.prepared = self._think()

    def _think(self) -> asyncio.Future[Event]:
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self.thinker, self.searcher.propose, self.searcher.history.copy())

    def _is_soon_replaced(self) -> bool:
        """Whether a worker loses less by waiting for a fresh proposal than a trial by knowing less."""
        return statistics.median(self.suggest_seconds) < REPLACEABLE * statistics.median(self.trial_seconds)

    def _is_short(self) -> bool:
        """Whether trials are so short that workers would wait for Ray: then one is always in its queue.

        Not where Ray has more room than this study is to use, as that one would run.
        """
        if self.plan.workers == 1 or not self.plan.fills or not self.trial_seconds:
            return False
        return statistics.median(self.trial_seconds) < DISPATCH_SECONDS / HURRY

    def _is_instant(self) -> bool:
        recent = self.suggest_seconds
        return len(recent) == recent.maxlen and max(recent) < INSTANT  # beyond any initial design

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
            flight.node, flight.started, flight.gone = None, asyncio.Event(), asyncio.Event()
            data = {**data, "losses": flight.losses}
        if following.phase is Phase.LOST:
            data = {**data, "kind": "lost"}
        assert following.record is not None
        self._record(Event(following.record, number, {**data, "attempt": flight.attempt}))
        if following.submit:
            self._flush()
        if following.free:
            del self.flights[number]
            asyncio.get_running_loop().call_later(SHARE_SECONDS, self._flush_in_background, self.unwritten[-1].number)

    def _submit(self, number: int, flight: _Flight) -> None:
        listened = self.plan.trial_seconds is not None or self.on_cluster or self.context is not None
        listener = (ray.get_runtime_context().current_actor, number, flight.attempt) if listened else None
        config = self.searcher.trials[number].config
        flight.submitted = time.monotonic()
        flight.task = self.task.remote(config, listener)

    async def _outcome(self, number: int, flight: _Flight) -> tuple[Occurrence, dict[str, Any]]:
        watch = asyncio.ensure_future(self._watch(flight)) if self.plan.trial_seconds is not None else None
        try:
            return await (self._unless_gone(flight) if self.on_cluster else flight.task)
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

    async def _unless_gone(self, flight: _Flight) -> tuple[Occurrence, dict[str, Any]]:
        """What comes of a trial, or that its node was lost: Ray may wait for such a trial without end."""
        returned: asyncio.Future[Any] = asyncio.ensure_future(_returned(flight.task))
        gone = asyncio.ensure_future(flight.gone.wait())
        try:
            await asyncio.wait([returned, gone], return_when=asyncio.FIRST_COMPLETED)
            if returned.done():
                return cast("tuple[Occurrence, dict[str, Any]]", returned.result())
            ray.cancel(flight.task, force=True)  # whatever it still delivers, nobody listens to this attempt any more
            if flight.node is None:
                return Occurrence.NEVER_BEGAN, {"reason": "a node was lost before it began"}
            return Occurrence.WORKER_LOST, {"reason": "its node was lost"}
        finally:
            returned.cancel()
            gone.cancel()

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
        journal = Journal(self.plan.path, description, driver=None if self.plan.detached else self.plan.driver)
        space = self.objective.space
        mode = cast(Any, description.mode)
        self.context = self.objective.context
        self.searcher = Searcher(
            space, description.method, mode, description.seed, context=self.context, **description.options
        )
        losses: dict[int, int] = {}
        self.ended_before = 0
        self.improved = 0  # the last event that brought a better best
        for event in journal.events():
            self.searcher.apply(event)
            self._note(event)
            if event.kind is Kind.RETRIED:
                losses[cast(int, event.trial)] = int(event.data.get("losses", 0))
            elif event.kind in (Kind.TOLD, Kind.FAILED) and event.number <= self.plan.after:
                self.ended_before += 1
        self.counts = {state: self.searcher.history.count(state) for state in State}
        for trial in self.searcher.trials:
            self._consider_best(trial.number)
        self.journal = journal
        if self.searcher.history.planned != self.plan.trials:
            self._record(Event(Kind.PLANNED, None, {"trials": self.plan.trials}))
        self.interrupted: deque[int] = deque()
        self.flights = {}
        for trial in self.searcher.trials:
            if trial.state is State.PENDING:
                flight = _Flight(attempt=trial.attempt, losses=losses.get(trial.number, 0))
                self.flights[trial.number] = flight
                if trial.origin is Origin.ENQUEUED and trial.attempt == 1:  # it has yet to begin
                    self.interrupted.append(trial.number)
                    continue
                data = {"reason": "the study was interrupted"}
                self._perform(trial.number, flight, step(Phase.WAITING, Occurrence.STUDY_LOST), data)
                self.interrupted.append(trial.number)
        self._flush()

    def _record(self, event: Event) -> Event:
        """Take in an event; it is committed by the next flush, before anybody outside hears of it."""
        numbered = self.searcher.apply(event)
        if event.kind is Kind.TOLD:
            sign, value = self.searcher.history.sign, event.data["value"]
            if self.best is None or sign * value > sign * self.best[1]:
                self.improved = numbered.number
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

    def _flush_in_background(self, number: int) -> None:
        if not self.unwritten or self.unwritten[0].number > number:  # a proposal has taken that event with it
            return
        try:
            self._flush()
        except JournalError as error:  # nobody awaits this call: the next flush raises it where it is heard
            self.notes.append((self.unwritten[-1].number, str(error)))

    def _announce(self, event: Event) -> None:
        if event.trial is None:
            return
        if event.kind in (Kind.TOLD, Kind.FAILED, Kind.STOPPED):
            self.counts[self.searcher.trials[event.trial].state] += 1
        if event.kind is Kind.TOLD:
            self._consider_best(event.trial)
            self.trial_seconds.append(event.data["seconds"])
        self._note(event)

    def _note(self, event: Event) -> None:
        """What the user should hear of at once: a trial that failed or starts again."""
        text = event.data.get("reason", "")
        if event.kind is Kind.FAILED:
            self.notes.append((event.number, f"trial {event.trial} {end_of(event)}: {text}"))
        if note := event.data.get("context_note"):
            self.notes.append((event.number, f"trial {event.trial}: {note}"))
        if event.kind is Kind.TOLD and "context_missing" in event.data and not self.missed:
            self.missed = True
            self.notes.append((event.number, f"trial {event.trial}: {NO_CONTEXT}"))
        if event.kind is Kind.RETRIED:
            again = f"trial {event.trial} starts again (attempt {event.data['attempt']}): {text}"
            self.notes.append((event.number, again))

    def _consider_best(self, number: int) -> None:
        value = self.searcher.trials[number].value
        sign = self.searcher.history.sign
        if value is not None and (self.best is None or sign * value > sign * self.best[1]):
            self.best = number, value

    def _task(self) -> Any:
        return ray.remote(max_retries=0, **self._resources())(self._trial(self.function))

    def _trial(self, function: bytes) -> Any:
        """The remote function. What does not change is in its closure, which Ray sends to a worker once."""
        settings, metric, context = dict(self.objective.settings), self.objective.metric, self.context
        threads = max(1, int(self.objective.num_cpus))

        def trial(config: Config, listener: tuple[Any, int, int] | None) -> tuple[Occurrence, dict[str, Any]]:
            part_with_forks()
            send = None
            if listener is not None:  # the limit counts from here, not from when the trial was submitted
                actor, number, attempt = listener
                actor.started.remote(number, attempt, ray.get_runtime_context().get_node_id())
                send = partial(actor.met.remote, number, attempt)
            return run_trial(unpickled(function), config, settings, metric, threads, context, send)

        return trial

    def _resources(self) -> dict[str, Any]:
        objective = self.objective
        resources: dict[str, Any] = {"num_cpus": objective.num_cpus, "num_gpus": objective.num_gpus}
        if objective.memory is not None:
            resources["memory"] = objective.memory
        if objective.resources:
            resources["resources"] = dict(objective.resources)
        return resources


async def _returned(task: Any) -> Any:
    return await task


def _of_ray_error(error: Exception) -> tuple[Occurrence, dict[str, Any]]:
    """What a failure that Ray reports was: the loss of a worker, unless it was the job's own doing."""
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return Occurrence.OVER_LIMIT, {"reason": f"it was killed for want of memory: {first_line(error)}"}
    if isinstance(error, ray.exceptions.RayTaskError):  # before the objective began: its code could not be loaded
        last = str(error).strip().splitlines()[-1]
        return Occurrence.RAISED, {"reason": last, "traceback": str(error)[-TRACEBACK_CHARACTERS:]}
    if isinstance(error, ray.exceptions.NodeDiedError):
        return Occurrence.WORKER_LOST, {"reason": "its node was lost"}
    return Occurrence.WORKER_LOST, {"reason": f"its worker died ({type(error).__name__})"}
