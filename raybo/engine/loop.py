"""The loop of a study: performs what `lifecycle` instructs, and turns whatever happens to a trial into an occurrence.

One coroutine a worker: ask, commit, submit, await, commit, again. On a cluster another coroutine looks at the nodes: a
trial whose node Ray counts as dead is given up. What was in flight when the last loop of this study was lost is
submitted again first.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any, cast

import ray

from raybo.engine.flight import Flight
from raybo.engine.lifecycle import Occurrence, Phase, Step, step
from raybo.engine.nodes import GRACE_SECONDS, LOOK_SECONDS, Losses
from raybo.engine.pace import Pace
from raybo.engine.plan import Plan, Status
from raybo.engine.proposals import Proposals
from raybo.engine.record import Record
from raybo.engine.resources import workers_available
from raybo.engine.task import trial_task
from raybo.errors import RayError
from raybo.history import Event, Kind, Origin, State
from raybo.objectives import Objective

SHARE_SECONDS = 0.002  # a result waits this long for the proposal that follows it, to be committed with it


class StudyLoop:
    """Runs one study, inside its actor.

    Args:
        plan: what to run.
        objective: what is tuned, without its function.
        function: the user's function as Ray pickles it, or a reference to that; only the workers unpickle it.
    Raises:
        JournalError: the journal cannot be opened.
    """

    def __init__(self, plan: Plan, objective: Objective, function: bytes | list[Any]) -> None:
        self.plan = plan
        self.objective = objective
        self.function = function
        self.pace = Pace(plan.workers, plan.fills)
        self.record = Record(plan, objective, self.pace)
        self.proposals = Proposals(self.record, self.pace)
        self.on_cluster = len(cast(Any, ray).nodes()) > 1 or plan.elastic
        # whether trials say that they begin, and which context they have met
        self.listens = plan.trial_seconds is not None or self.on_cluster or self.record.searcher.context is not None
        self.task = trial_task(objective, function, plan.fresh_workers)
        self.room = plan.workers
        self.reason = ""  # why the study stops before its end
        self.flights: dict[int, Flight] = {}
        self.interrupted: deque[int] = deque()  # trials in flight when the last loop was lost, to be run first
        self.asking = asyncio.Lock()
        self.slots: dict[int, asyncio.Task[None]] = {}
        self.slot_ended = asyncio.Event()

    async def run(self) -> None:
        """To the end of the study, or until it is stopped."""
        self._take_up()
        watch = asyncio.ensure_future(self._watch_nodes()) if self.on_cluster else None
        deadline = None
        if self.plan.max_seconds is not None:
            left = self.plan.begun + self.plan.max_seconds - time.monotonic()
            reason = f"time limit of {self.plan.max_seconds / 60:g} minutes"
            deadline = asyncio.get_running_loop().call_later(max(0.0, left), self.stop, reason)
        try:
            self._open_slots()
            while self.slots:  # more may be opened while these run
                await self.slot_ended.wait()
                self.slot_ended.clear()
                for index, slot in list(self.slots.items()):
                    if slot.done():
                        del self.slots[index]
                        slot.result()
            self.record.commit()
        finally:
            for running in [*self.slots.values(), watch, deadline]:
                if running is not None:
                    running.cancel()
            self.proposals.close()
            self.record.close()

    def stop(self, reason: str) -> None:
        """Ask no more, and stop what runs."""
        if not self.reason:
            self.reason = reason
            for flight in self.flights.values():
                flight.stop(reason)

    def status(self, after: int) -> Status:
        """The study now, with what happened to single trials after an event."""
        running = sum(flight.phase is Phase.RUNNING for flight in self.flights.values())
        return self.record.status(min(running, self.room), self.reason, after)

    def started(self, number: int, attempt: int, node: str) -> None:
        """A trial says that it begins, and where."""
        flight = self.flights.get(number)
        if flight is not None and flight.attempt == attempt:
            flight.start(node)

    def met(self, number: int, attempt: int, data: dict[str, Any]) -> None:
        """A trial says which context it has met, before it ends."""
        flight = self.flights.get(number)
        if flight is not None and flight.attempt == attempt:
            self.record.commit_in_background(self.record.add(Event(Kind.MET, number, data)).number)

    def _take_up(self) -> None:
        """Find out what was in flight, and record that it was interrupted."""
        for trial in self.record.searcher.trials:
            if trial.state is State.PENDING:
                flight = Flight(attempt=trial.attempt, losses=self.record.losses.get(trial.number, 0))
                self.flights[trial.number] = flight
                self.interrupted.append(trial.number)
                if trial.origin is not Origin.ENQUEUED or trial.attempt > 1:  # else it has yet to begin
                    data = {"reason": "the study was interrupted"}
                    self._perform(trial.number, flight, step(Phase.WAITING, Occurrence.STUDY_LOST), data)
        self.record.commit()

    # ---- room for trials

    def _open_slots(self) -> None:
        for index in range(self._in_flight()):
            if index not in self.slots:
                self.slots[index] = asyncio.ensure_future(self._slot(index))
                self.slots[index].add_done_callback(lambda _: self.slot_ended.set())

    def _in_flight(self) -> int:
        """How many trials are given to Ray at a time: one more than run, where workers would wait for the next."""
        return self.room + self.pace.is_short()

    async def _watch_nodes(self) -> None:
        """Give up trials whose node was lost, and use all the room that there is, where nobody said how much."""
        loop = asyncio.get_running_loop()
        losses = Losses()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            nodes = await loop.run_in_executor(None, ray.nodes)
            now = time.monotonic()
            if losses.look(nodes, now):  # the old task's requests to the lost node are never answered, and block others
                self.task = trial_task(self.objective, self.function, self.plan.fresh_workers)
            for flight in self.flights.values():
                if losses.concern(flight.node, flight.submitted, now):
                    loop.call_later(GRACE_SECONDS, flight.gone.set)  # this attempt's event: the next has its own
            if self.plan.elastic:
                self.room = self._room(nodes)
                self._open_slots()

    def _room(self, nodes: list[dict[str, Any]]) -> int:
        try:
            room = workers_available(nodes, self.objective)
        except RayError:  # not one at the moment: what is submitted waits for a node to come back
            room = 1
        return min(room, self.plan.trials)

    # ---- one worker

    async def _slot(self, index: int) -> None:
        while index < self._in_flight() and (number := await self._next()) is not None:
            await self._carry(number)

    async def _next(self) -> int | None:
        """The next trial to submit, committed; None when there is none."""
        async with self.asking:
            if self.interrupted:
                return self.interrupted.popleft()
            if self.reason or self.record.has_asked_enough():
                return None
            asked = await self.proposals.take()
            if self.reason:
                return None
            number = cast(int, self.record.add(asked).trial)
            self.flights[number] = Flight()
            self.record.commit()
            return number

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
                occurrence, data = await flight.outcome(self.plan.trial_seconds, self.on_cluster)
            flight.losses += occurrence is Occurrence.WORKER_LOST
            following = step(flight.phase, occurrence, losses=flight.losses, retries=self.plan.retries)
            self._perform(number, flight, following, data)
            if following.free:
                return

    def _submit(self, number: int, flight: Flight) -> None:
        listener = (ray.get_runtime_context().current_actor, number, flight.attempt) if self.listens else None
        flight.submit(self.task, self.record.searcher.trials[number].config, listener)

    def _prepare(self) -> None:
        """Have ready, while trials run, what workers would wait for: the next trial in Ray's queue, or its proposal."""
        if self.pace.is_short():
            self._open_slots()
        elif self.pace.is_hurried() and not (self.asking.locked() or self.record.has_asked_enough()):
            self.proposals.prepare()

    def _perform(self, number: int, flight: Flight, following: Step, data: dict[str, Any]) -> None:
        flight.phase = following.phase
        if following.submit:
            flight.again()
            data = {**data, "losses": flight.losses}
        if following.phase is Phase.LOST:
            data = {**data, "kind": "lost"}
        assert following.record is not None
        added = self.record.add(Event(following.record, number, {**data, "attempt": flight.attempt}))
        if following.submit:
            self.record.commit()
        if following.free:
            del self.flights[number]
            loop = asyncio.get_running_loop()
            loop.call_later(SHARE_SECONDS, self.record.commit_in_background, added.number)
