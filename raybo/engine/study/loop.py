"""The loop of a study: performs what `lifecycle` and `workers` say, and turns whatever happens into an occurrence.

One coroutine per worker: ask, commit, submit, await, commit, again. On a cluster, another coroutine watches the nodes:
a trial is given up if Ray counts its node as dead. Trials that were in flight when the last loop of this study was lost
are submitted again first.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from dataclasses import replace
from typing import Any, cast

import ray

from raybo.common.errors import JournalError, RayError, SpaceError, TrialError
from raybo.engine.lifecycle import Life, Occurrence, Phase, Step
from raybo.engine.plan import Plan, Status
from raybo.engine.ray.connection import logs_directory
from raybo.engine.ray.named_studies import studies_here
from raybo.engine.ray.nodes import GRACE_SECONDS, LOOK_SECONDS, NodeLosses
from raybo.engine.ray.resources import share_of, waiting_for_room, workers_available
from raybo.engine.study.dispatch import DispatchedTrial
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.launcher import Launcher
from raybo.engine.study.proposals import Proposals
from raybo.engine.study.timings import Timings
from raybo.engine.study.trial_output import TrialOutput
from raybo.engine.study.verdicts import Judge
from raybo.engine.study.workers import Ahead, Situation, Turn, ahead, max_in_flight, turn
from raybo.engine.trial.captured_output import read_unsent
from raybo.engine.trial.report_sender import Answer
from raybo.engine.trial.task import PackedFunction
from raybo.job.objective import Objective
from raybo.journal import requests
from raybo.record.events import KINDS, LOST, Begun, ContextObserved, Event, EventData, Origin, State
from raybo.schedulers.rule import JOB
from raybo.study import warm_start
from raybo.study.confirmation import still_to_run

STOP_REASON = "stopped by the user"
REQUEST_SECONDS = 1.0  # between looks at what the user asks from elsewhere
SHARE_SECONDS = 0.002  # a result waits this long for the proposal that follows it, to be committed with it


class StudyLoop:
    """Runs one study, inside its actor.

    Args:
        plan: what to run.
        objective: what is tuned, without its function.
        function: the user's function as it travels; only the workers unpickle it.
    Raises:
        JournalError: the journal cannot be opened.
    """

    def __init__(self, plan: Plan, objective: Objective, function: PackedFunction) -> None:
        self.plan = plan
        self.objective = objective
        self.timings = Timings(plan.workers, plan.takes_all_room)
        self.log = EventLog(plan, objective, self.timings)
        self.proposals = Proposals(self.log, self.timings)
        self.on_cluster = len(cast(Any, ray).nodes()) > 1 or plan.elastic
        notifies = plan.trial_seconds is not None or self.on_cluster or self.log.searcher.context is not None
        self.name = secrets.token_hex(8)
        self.printed = TrialOutput(plan.path if plan.is_kept else None, self.log.note, plan.artifacts)
        self.launcher = Launcher(
            objective,
            function,
            name=self.name,
            journal=plan.path,
            seed=plan.description.seed,
            notifies=notifies,
            fresh_workers=plan.fresh_workers,
            artifacts=plan.artifacts,
            keep=plan.keep_checkpoints,
        )
        self.judge = Judge(self.log, self._meet)
        self.room = plan.workers
        self.reason = ""  # why the study stops before its end
        self.enough = ""  # why the search has found enough, where it has
        self.confirming: deque[int] | None = None  # trials whose configurations are to be run again, once that is known
        self.is_hopeless = False  # whether that is because every trial fails
        self.dispatched: dict[int, DispatchedTrial] = {}
        self.interrupted: deque[int] = deque()  # trials to be run first: enqueued, or lost with the last loop
        self.wanted: deque[int] = deque()  # trials that had failed, to be run next
        self.asking = asyncio.Lock()
        self.slots: dict[int, asyncio.Task[None]] = {}
        self.slot_ended = asyncio.Event()

    async def run(self) -> None:
        """To the end of the study, or until it is stopped.

        Raises:
            TrialError: it was given up, as its first trials all failed alike.
        """
        self._take_up()
        self._end_if_enough()
        watch = asyncio.ensure_future(self._watch_nodes()) if self.on_cluster else None
        hear = asyncio.ensure_future(self._hear_requests()) if self.plan.is_kept else None
        deadline = None
        if self.plan.max_seconds is not None:
            left = self.plan.begun + self.plan.max_seconds - time.monotonic()
            reason = f"time limit of {self.plan.max_seconds / 60:g} minutes"
            deadline = asyncio.get_running_loop().call_later(max(0.0, left), self.stop, reason)
        try:
            if self.plan.elastic:
                await self._share(await asyncio.get_running_loop().run_in_executor(None, ray.nodes))
            self._open_slots()
            while self.slots:  # more may be opened while these run
                await self.slot_ended.wait()
                self.slot_ended.clear()
                for index, slot in list(self.slots.items()):
                    if slot.done():
                        del self.slots[index]
                        slot.result()
                self._wake()
                if not self.slots and self._confirms():
                    self._open_slots()
            if not self.reason:
                self.judge.end_paused()
            if why := self.reason or self.enough:
                self.log.end(why)
            self.log.commit()
            if self.is_hopeless:
                raise TrialError(
                    f"{self.reason}; fix that and run them again with --retry-failed (retry_failed=True), or go on "
                    "with --keep-going (keep_going=True)"
                )
        finally:
            for running in [*self.slots.values(), watch, hear, deadline]:
                if running is not None:
                    running.cancel()
            for slot in self.slots.values():  # one has told what went wrong
                if slot.done() and not slot.cancelled():
                    slot.exception()
            self.proposals.close()
            self.judge.close()
            if hear is not None:
                requests.stop_listening(self.plan.path)
            self.log.close()

    def stop(self, reason: str) -> None:
        """Ask no more, and stop what runs."""
        if not self.reason:
            self.reason = reason
            for dispatched in self.dispatched.values():
                dispatched.stop(reason)

    def status(self, after: int, heard: int = 0) -> Status:
        """The study now, with what happened to trials after an event, and what they printed after so many lines."""
        running = sum(dispatched.life.phase is Phase.RUNNING for dispatched in self.dispatched.values())
        status = self.log.status(min(running, self.room), self.reason or self.enough, after)
        lines, left_out, count = self.printed.since(heard)
        return replace(status, printed=lines, unprinted=left_out, lines=count)

    def started(self, number: int, attempt: int, node: str) -> None:
        """A trial says that it begins, and where."""
        dispatched = self.dispatched.get(number)
        if dispatched is not None and dispatched.life.attempt == attempt:
            dispatched.start(node)

    def context_observed(self, number: int, attempt: int, data: EventData) -> None:
        """A trial says which context it has observed, before it ends."""
        dispatched = self.dispatched.get(number)
        if dispatched is not None and dispatched.life.attempt == attempt:
            self.log.commit_in_background(self.log.add(ContextObserved.of(number, data)).number)

    async def reported(self, number: int, attempt: int, batch: list[EventData]) -> Answer:
        """A trial has come some steps further; whether it is to go on."""
        dispatched = self.dispatched.get(number)
        if dispatched is None or dispatched.life.attempt != attempt:
            return Answer("gone", "its study has given it up")
        answer = await self.judge.receive(dispatched, batch)
        self._wake()
        return answer

    def _take_up(self) -> None:
        """Find out what was in flight, and record that it was interrupted, but for what a verdict ends."""
        self.judge.recover()
        for trial in self.log.searcher.trials:
            if trial.state is State.PENDING:
                losses = self.log.losses.get(trial.number, 0)
                dispatched = DispatchedTrial(Life(trial.number, attempt=trial.attempt, losses=losses))
                self.dispatched[trial.number] = dispatched
                self.interrupted.append(trial.number)
                if trial.origin is not Origin.ENQUEUED or trial.number in self.log.touched:  # else it has yet to begin
                    self._meet(dispatched, Occurrence.STUDY_LOST, {"reason": "the study was interrupted"})
        self.log.commit()
        if self.plan.retry_failed:
            self.wanted.extend(number for number, event in self.log.failures.items() if event <= self.plan.known)

    # ---- what the user asks from elsewhere

    async def _hear_requests(self) -> None:
        path, begun = self.plan.path, time.time() - (time.monotonic() - self.plan.begun)
        requests.forget_stops(path, begun)
        if not requests.listen(path):  # its directory cannot be written: nobody can ask
            return
        while True:
            for request in requests.waiting(path):
                if request.values is None:
                    request.done()
                    self.stop(STOP_REASON)
                elif not self.reason:
                    await self._enqueue(request)
            await asyncio.sleep(REQUEST_SECONDS)

    async def _enqueue(self, request: requests.Request) -> None:
        """Have a configuration run next, committed before it is taken off the list."""
        async with self.asking:  # no proposal is on its way
            try:
                asked = warm_start.wanted(self.log.searcher, request.values)
            except SpaceError as error:
                self.log.note(f"an enqueued configuration does not fit: {error}")
                asked = None
            if asked is not None:
                self.proposals.forget()
                number = cast(int, self.log.add(asked).trial)
                self.dispatched[number] = DispatchedTrial(Life(number))
                self.interrupted.append(number)
                try:
                    self.log.commit()
                except JournalError:  # the next commit raises it where it is heard
                    return
        request.done()
        self._open_slots()

    # ---- room for trials

    def _open_slots(self) -> None:
        for index in range(max_in_flight(self._submitted(), self.timings)):
            if index not in self.slots:
                self.slots[index] = asyncio.ensure_future(self._slot(index))
                self.slots[index].add_done_callback(lambda _: self.slot_ended.set())

    def _wake(self) -> None:
        """Have a worker go on with a paused trial, if there is one to go on and a worker that has left."""
        if not (self.reason or self.enough) and self.judge.promoted(self.dispatched) is not None:
            self._open_slots()

    def _submitted(self) -> int:
        """How many trials Ray has at a time: those that it has room for, and where it is to grow, some that wait."""
        return self.room + (waiting_for_room(self.room) if self.plan.grows else 0)

    async def _watch_nodes(self) -> None:
        """Give up trials whose node was lost, and use all the room that there is, where nobody said how much."""
        loop = asyncio.get_running_loop()
        losses = NodeLosses()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            nodes = await loop.run_in_executor(None, ray.nodes)
            now = time.monotonic()
            if losses.update(nodes, now):
                self.launcher.renew()
            for dispatched in self.dispatched.values():
                is_out = dispatched.life.phase is not Phase.WAITING
                if is_out and losses.affect(dispatched.node, dispatched.submitted, now):
                    loop.call_later(GRACE_SECONDS, dispatched.gone.set)  # this attempt's event: the next has its own
            if self.plan.elastic:
                await self._share(nodes)
                self._open_slots()

    async def _share(self, nodes: list[dict[str, Any]]) -> None:
        """Take this study's share of the room that the nodes have."""
        name = self.plan.path.stem if self.plan.detached else None
        studies, place = await asyncio.get_running_loop().run_in_executor(None, studies_here, name)
        try:
            room = workers_available(nodes, self.objective)
        except RayError:  # not one at the moment: what is submitted waits for a node to come back
            room = 1
        self.room = min(share_of(room, studies, place), self.plan.trials)
        # what waits in Ray's queue would run where the others' trials are to
        self.timings = replace(self.timings, takes_all_room=studies == 1)

    # ---- one worker

    async def _slot(self, index: int) -> None:
        while (dispatched := await self._next(index)) is not None:
            await self._carry(dispatched)

    def _situation(self) -> Situation:
        return Situation(
            room=self._submitted(),
            interrupted=len(self.interrupted) + len(self.wanted),
            is_stopping=bool(self.reason),
            has_asked_enough=not self.confirming and (bool(self.enough) or self.log.has_asked_enough()),
            is_proposing=self.asking.locked(),
            promotes=not self.enough and self.judge.promoted(self.dispatched) is not None,
        )

    async def _next(self, index: int) -> DispatchedTrial | None:
        """The next trial for this worker to submit, committed; None where it is to leave."""
        dispatched = await self._chosen(index)
        if dispatched is not None:
            begun = time.perf_counter()
            await self.log.committed_to(self.log.newest)
            self.timings.commits.append(time.perf_counter() - begun)
        return dispatched

    async def _chosen(self, index: int) -> DispatchedTrial | None:
        """The same, not committed: while the disk is waited for it is another worker's turn."""
        async with self.asking:
            what = turn(index, self._situation(), self.timings)
            if what is Turn.RESUME:
                return self._resumed() if self.interrupted else self._again()
            if what is Turn.PROMOTE:
                return self._promoted()
            if what is Turn.LEAVE:
                return None
            asked = self._to_confirm() if self.confirming else await self.proposals.take()
            if self.reason or (self.enough and self.confirming is None):
                return None
            number = cast(int, self.log.add(asked).trial)
            self.dispatched[number] = dispatched = DispatchedTrial(Life(number))
            return dispatched

    def _end_if_enough(self) -> None:
        """Ask for no further proposal once enough was found; what runs is let run."""
        self.enough = self.enough or self.log.stopping.reason

    def _confirms(self) -> bool:
        """Whether configurations are to be run again, now that the search is over."""
        if self.plan.confirm is None or self.reason or self.confirming is not None:
            return False
        searcher = self.log.searcher
        self.confirming = deque(still_to_run(self.plan.confirm, searcher.trials, searcher.history))
        return bool(self.confirming)

    def _to_confirm(self) -> Event:
        """The event of asking for a configuration once more."""
        assert self.confirming
        number = self.confirming.popleft()
        searcher = self.log.searcher
        return searcher.known(searcher.trials[number].config, Origin.CONFIRMED, {"confirms": number})

    def _resumed(self) -> DispatchedTrial:
        """A trial that was in flight when the last loop was lost, or one that the user has named."""
        dispatched = self.dispatched[self.interrupted.popleft()]
        trial = self.log.searcher.trials[dispatched.life.trial]
        if trial.origin is Origin.ENQUEUED and trial.attempt == 1:  # who finds no more than that it was asked for
            self.log.add(Begun(trial.number, attempt=1))  # may rely on it that it has not begun
        return dispatched

    def _again(self) -> DispatchedTrial:
        """A failed trial that is wanted again, committed; until its turn comes it stays failed."""
        trial = self.log.searcher.trials[self.wanted.popleft()]
        phase = Phase.LOST if trial.state is State.LOST else Phase.FAILED
        self.dispatched[trial.number] = dispatched = DispatchedTrial(Life(trial.number, phase, trial.attempt))
        self._meet(dispatched, Occurrence.WANTED_AGAIN, {"reason": "it had failed, and is retried"})
        self.log.commit()
        return dispatched

    def _promoted(self) -> DispatchedTrial:
        """A paused trial that goes on, committed."""
        number = cast(int, self.judge.promoted(self.dispatched))
        trial = self.log.searcher.trials[number]
        self.dispatched[number] = dispatched = DispatchedTrial(Life(number, Phase.PAUSED, trial.attempt))
        self._meet(dispatched, Occurrence.PROMOTED, {"step": trial.step, "seen": self.log.newest})
        return dispatched

    async def _carry(self, dispatched: DispatchedTrial) -> None:
        """Take a trial from its first submission to its end."""
        while True:
            occurrence: Occurrence
            data: EventData
            if self.reason:
                if dispatched.task is None and self._waits_for_the_next_loop(dispatched):
                    return
                occurrence, data = Occurrence.STOPPED, {"reason": self.reason}
            else:
                self.printed.begin(dispatched.life.trial, dispatched.life.attempt)
                number = dispatched.life.trial
                self.launcher.submit(
                    dispatched, self.log.searcher.trials[number].config, self.judge.attempt_info(number)
                )
                self._meet(dispatched, Occurrence.SUBMITTED, {})
                asyncio.get_running_loop().call_soon(self._prepare)  # not before the trial is on its way
                occurrence, data = await dispatched.outcome(self.plan.trial_seconds, self.on_cluster)
                self._collect_output(dispatched)
                if occurrence is Occurrence.RETURNED:
                    data = self.judge.result(number, data)
                elif occurrence is Occurrence.LEFT:
                    data = {"rule": JOB, **data}
            if self._meet(dispatched, occurrence, data).free:
                return

    def _waits_for_the_next_loop(self, dispatched: DispatchedTrial) -> bool:
        """Whether a trial that this loop has not submitted stays pending: no other takes its place."""
        return dispatched.life.attempt > 1 or self.log.searcher.trials[dispatched.life.trial].origin is Origin.ENQUEUED

    def _collect_output(self, dispatched: DispatchedTrial) -> None:
        """Take in the rest of what an attempt has printed, from its worker's file where the worker died."""
        trial, attempt = dispatched.life.trial, dispatched.life.attempt
        rest = dispatched.printed
        if rest is None:
            rest = [read_unsent(logs_directory(ray), (self.name, trial, attempt), self.printed.received(trial))]
        for piece in rest:
            self.printed.receive(trial, attempt, piece)
        self.printed.end(trial)

    def _prepare(self) -> None:
        """Have ready, while trials run, what workers would wait for: the next trial in Ray's queue, or its proposal."""
        what = ahead(self._situation(), self.timings)
        if what is Ahead.TRIAL:
            self._open_slots()
        elif what is Ahead.PROPOSAL:
            self.proposals.prepare()

    def _meet(self, dispatched: DispatchedTrial, occurrence: Occurrence, data: EventData) -> Step:
        """Do what follows an occurrence by the table of a trial's life; `data` is what the event holds of it."""
        dispatched.life, following = dispatched.life.after(occurrence, retries=self.plan.retries)
        life = dispatched.life
        if following.record is None:
            if following.free:
                del self.dispatched[life.trial]
            return following
        data = {**data, "attempt": life.attempt}
        if following.submit:
            dispatched.reset()
            data["losses"] = life.losses
        if life.phase is Phase.LOST:
            data["kind"] = LOST
        added = self.log.add(KINDS[following.record].of(life.trial, data))
        if following.submit:
            self.log.commit()
        failures, may_end = self.log.repeated_failures, not (self.is_hopeless or self.reason or self.plan.keep_going)
        if may_end and failures.is_hopeless(self.room):
            self.is_hopeless = True
            self.stop(f"the first {failures.count} trials all failed alike: {failures.reason}")
        self._end_if_enough()
        if following.free:
            del self.dispatched[life.trial]
            loop = asyncio.get_running_loop()
            loop.call_later(SHARE_SECONDS, self.log.commit_in_background, added.number)
        return following
