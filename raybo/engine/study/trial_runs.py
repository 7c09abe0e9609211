"""Runs trials as Ray tasks: performs the steps of `lifecycle`, and turns whatever happens into an occurrence."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable

import ray

from raybo.common.errors import ObjectiveError, RayError
from raybo.engine.lifecycle import Life, Occurrence, Phase, Step, event_after
from raybo.engine.plan import Plan
from raybo.engine.ray.connection import logs_directory
from raybo.engine.ray.liveness import OwnRaylet
from raybo.engine.ray.trainers import end_left
from raybo.engine.study.capacity import Capacity
from raybo.engine.study.dispatch import DispatchedTrial
from raybo.engine.study.ending import Ending
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.gang import Gang
from raybo.engine.study.launcher import Launcher
from raybo.engine.study.trial_output import TrialOutput
from raybo.engine.study.verdicts import Judge
from raybo.engine.trial.captured_output import read_unsent
from raybo.engine.trial.report_sender import GONE, Answer
from raybo.engine.trial.task import PackedFunction
from raybo.job.objective import Objective
from raybo.record.events import ContextObserved, EventData
from raybo.record.origin import Origin

TRAINER_SECONDS = 60.0  # for what is left of a trainer to end: a cleaner that is still being started ends only then
LOOK_SECONDS = 0.2  # between two looks whether it has
WATCH_SECONDS = 10.0  # between two looks for trainers of which nothing is known
SHARE_SECONDS = 0.002  # a result waits this long for the proposal that follows it, to be committed with it


class TrialRuns:
    """Carries each trial of a study from its first submission to its end.

    Args:
        plan: what is run.
        objective: what is tuned, without its function.
        function: the user's function as it travels; only the workers unpickle it.
        log: the study's events.
        ending: whether the study is to end.
        capacity: how many trials run at a time.
        on_cluster: whether nodes may be lost.
    Attributes:
        dispatched: the trials that have not ended, by number; some are yet to be submitted.
        judge: gives the verdicts on their reports.
        output: what they print.
    """

    def __init__(
        self,
        plan: Plan,
        objective: Objective,
        function: PackedFunction,
        *,
        log: EventLog,
        ending: Ending,
        capacity: Capacity,
        on_cluster: bool,
    ) -> None:
        self.plan, self.log, self.ending, self.capacity, self.on_cluster = plan, log, ending, capacity, on_cluster
        self.dispatched: dict[int, DispatchedTrial] = {}
        self.judge = Judge(log, self.apply)
        self.output = TrialOutput(plan.path if plan.is_kept else None, log.note, plan.artifacts)
        self._name = secrets.token_hex(8)
        self.leaving: set[str] = set()  # nodes of which the cluster has said that they are to go
        self._own_raylet = OwnRaylet()
        self._moved = asyncio.Event()  # a trial that may have waited for room has it, or is over
        self.launcher = Launcher(
            objective,
            function,
            name=self._name,
            journal=plan.path,
            seed=plan.description.seed,
            notifies=(
                plan.options.trial_seconds is not None
                or on_cluster
                or log.searcher.context is not None
                or not objective.is_single
            ),
            fresh_workers=plan.options.fresh_workers,
            artifacts=plan.artifacts,
            keep=plan.options.keep_checkpoints,
            cost=log.searcher.history.cost,
            is_kept=plan.is_kept,
            may_grow=plan.grows,
            judge=self.judge,
            placed=self._note_move,
            note=log.note,
        )

    @property
    def running(self) -> int:
        """Number of trials that run; a cluster that is to grow has some more that wait."""
        count = sum(dispatched.life.phase is Phase.RUNNING for dispatched in self.dispatched.values())
        return min(count, self.capacity.room)

    def _processes_running(self) -> int:
        """Return how many processes the trials have that run, and not those that wait for room."""
        running = [each for each in self.dispatched.values() if each.life.phase is Phase.RUNNING]
        if self.launcher.objective.is_single:  # those beyond the room wait in Ray's queue
            return len(running[: self.capacity.room])
        return sum(each.processes for each in running if each.holds_room)

    def _note_move(self) -> None:
        """Note that a trial that may have waited for room has it, or is over."""
        if self.log.clock is not None:
            self.log.clock.set_processes(self._processes_running())
        self._moved.set()

    def add(self, life: Life) -> DispatchedTrial:
        """Return a trial that is to be submitted."""
        self.dispatched[life.trial] = dispatched = DispatchedTrial(life)
        return dispatched

    def stop(self, reason: str) -> None:
        """Ask for no more trials, and stop those that run."""
        if self.ending.stop(reason):
            for dispatched in self.dispatched.values():
                dispatched.stop(reason)

    def check_budget(self) -> None:
        """End the study if its budget is used."""
        if reason := self.ending.over_budget():
            self.stop(reason)

    def announce(self, leaving: set[str]) -> None:
        """Note which nodes are about to go, and say which trials run on one that was not known to."""
        news, self.leaving = leaving - self.leaving, self.leaving | leaving
        for number, dispatched in self.dispatched.items():
            if not news.isdisjoint(filter(None, dispatched.nodes)):
                self.log.note(f"trial {number}: its node is about to be removed")

    # ---- what trials send, of an attempt that may be over

    def started(self, number: int, attempt: int, node: str, worker: str) -> None:
        """Count the time limit of an attempt that begins on a node."""
        if (dispatched := self._current(number, attempt)) is not None:
            dispatched.worker = worker
            dispatched.start(node)
            self._note_move()

    def context_observed(self, number: int, attempt: int, data: EventData) -> None:
        """Record the context that a trial has observed before its end."""
        if self._current(number, attempt) is not None:
            self.log.commit_in_background(self.log.add(ContextObserved.of(number, data)).number)

    async def reported(self, number: int, attempt: int, batch: list[EventData]) -> Answer:
        """Record the reports of an attempt, and answer whether it is to continue."""
        dispatched = self._current(number, attempt)
        if dispatched is None:
            return GONE
        return await self.judge.receive(dispatched, batch)

    def gang(self, number: int, attempt: int) -> Gang | None:
        """Return the processes of an attempt; None if it is over, or has only one."""
        dispatched = self._current(number, attempt)
        return None if dispatched is None else dispatched.gang

    async def all_placed(self) -> None:
        """Wait until no trial waits for room for all its processes."""
        while self._is_any_waiting():
            self._moved.clear()
            await self._moved.wait()

    def _is_any_waiting(self) -> bool:
        if not self.launcher.objective.is_gang:
            return False
        running = [each for each in self.dispatched.values() if each.task is not None]
        is_full = sum(each.processes for each in running) > self.capacity.room
        return any(not each.holds_room and (each.gang is not None or is_full) for each in running)

    def _current(self, number: int, attempt: int) -> DispatchedTrial | None:
        dispatched = self.dispatched.get(number)
        return dispatched if dispatched is not None and dispatched.life.attempt == attempt else None

    # ---- from the submission to the end

    async def carry(self, dispatched: DispatchedTrial, prepare: Callable[[], None]) -> None:
        """Take a trial from its first submission to its end.

        Args:
            dispatched: the trial.
            prepare: called when an attempt is on its way, to have ready what comes next.
        """
        while True:
            if not self.ending.stopped:
                occurrence, data = await self._attempt(dispatched, prepare)
            elif dispatched.task is None and self._waits_for_next_loop(dispatched):
                return
            else:
                occurrence, data = Occurrence.STOPPED, {"reason": self.ending.stopped}
            if self.apply(dispatched, occurrence, data).free:
                return

    async def _attempt(self, dispatched: DispatchedTrial, prepare: Callable[[], None]) -> tuple[Occurrence, EventData]:
        number = dispatched.life.trial
        self.output.begin(number, dispatched.life.attempt)
        trial, refusal = self.log.searcher.trials[number], ""
        try:
            self.launcher.submit(dispatched, {**trial.config, **trial.fidelity}, self.judge.attempt_info(number))
        except (ObjectiveError, RayError) as error:  # its number of processes
            refusal = str(error)
        self.apply(dispatched, Occurrence.SUBMITTED, {})
        if refusal:
            self.output.end(number)
            return Occurrence.BAD_RESULT, {"reason": refusal}
        asyncio.get_running_loop().call_soon(prepare)  # not before the trial is on its way
        occurrence, data = await dispatched.outcome(self.plan.options.trial_seconds, self.on_cluster)
        nodes = dispatched.nodes
        if self.launcher.objective.nested:
            await self._end_trainer(dispatched)
        if occurrence in (Occurrence.WORKER_LOST, Occurrence.NEVER_BEGAN):
            await self._own_raylet.end_with_it()
        if occurrence is Occurrence.WORKER_LOST and not self.leaving.isdisjoint(filter(None, nodes)):
            occurrence, data = Occurrence.PREEMPTED, {"reason": "its node was preempted"}
        self._collect_output(dispatched)
        return self.judge.outcome(number, occurrence, data)

    async def _end_trainer(self, dispatched: DispatchedTrial) -> None:
        """Wait until nothing is left of the trainer that an attempt has run: it would hold the next one's resources."""
        loop, until = asyncio.get_running_loop(), time.monotonic() + TRAINER_SECONDS
        while not await loop.run_in_executor(None, end_left, dispatched.worker) and time.monotonic() < until:
            await asyncio.sleep(LOOK_SECONDS)

    async def watch_trainers(self) -> None:
        """End what is left of trainers whose trials this loop does not know: those of this study's last process."""
        while True:
            await asyncio.get_running_loop().run_in_executor(None, end_left)
            await asyncio.sleep(WATCH_SECONDS)

    def apply(self, dispatched: DispatchedTrial, occurrence: Occurrence, data: EventData) -> Step:
        """Perform what follows an occurrence by the table of a trial's life.

        Args:
            dispatched: the trial.
            occurrence: what has happened to it.
            data: what the event holds of it, if one is recorded.
        """
        dispatched.life, following = dispatched.life.after(occurrence, retries=self.plan.options.retries)
        life = dispatched.life
        if following.free:
            del self.dispatched[life.trial]
        self._note_move()
        event = event_after(life, following, occurrence, data, dispatched.processes)
        if event is None:
            return following
        added = self.log.add(event)
        if following.submit:
            dispatched.reset()
            self.log.commit()
        if reason := self.ending.hopeless(self.capacity.room):
            self.stop(reason)
        self.ending.check_enough()
        self.check_budget()
        if following.free:
            loop = asyncio.get_running_loop()
            loop.call_later(SHARE_SECONDS, self.log.commit_in_background, added.number)
        return following

    def _waits_for_next_loop(self, dispatched: DispatchedTrial) -> bool:
        """True if a trial that this loop has not submitted stays pending, as no other takes its place."""
        is_enqueued = self.log.searcher.trials[dispatched.life.trial].origin is Origin.ENQUEUED
        return dispatched.life.attempt > 1 or is_enqueued

    def _collect_output(self, dispatched: DispatchedTrial) -> None:
        """Add the rest of what an attempt has printed; it is in its worker's file if the worker died."""
        trial, attempt = dispatched.life.trial, dispatched.life.attempt
        rest = dispatched.unsent_output
        if rest is None:
            rest = [read_unsent(logs_directory(ray), (self._name, trial, attempt), self.output.received(trial))]
        for chunk in rest:
            self.output.receive(trial, attempt, chunk)
        self.output.end(trial)
