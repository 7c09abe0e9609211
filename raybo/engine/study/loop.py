"""The loop of a study: one coroutine per worker takes the next trial, carries it to its end, and takes the next.

On a cluster, another coroutine watches the nodes: a trial is given up if Ray counts its node as dead. Trials that were
in flight when the last loop of this study was lost are submitted first.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any, cast

import ray

from raybo.engine.plan import Plan
from raybo.engine.ray.draining import draining_nodes
from raybo.engine.ray.nodes import GRACE_SECONDS, LOOK_SECONDS, NodeLosses
from raybo.engine.status import Status
from raybo.engine.study.budget_clock import BudgetClock
from raybo.engine.study.capacity import Capacity
from raybo.engine.study.ending import Ending
from raybo.engine.study.event_log import EventLog
from raybo.engine.study.next_trials import NextTrials
from raybo.engine.study.timings import Timings
from raybo.engine.study.trial_runs import TrialRuns
from raybo.engine.study.user_requests import watch_requests
from raybo.engine.study.workers import Ahead
from raybo.engine.trial.report_sender import Answer
from raybo.engine.trial.task import PackedFunction
from raybo.job.objective import Objective
from raybo.journal import requests
from raybo.journal.requests import Request
from raybo.record.events import STOP_REASON, EventData

BUDGET_SECONDS = 0.5  # between two looks at the budget at most


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
        timings = Timings(plan.workers, plan.takes_all_room)
        self.log = EventLog(plan, objective, timings)
        self.ending = Ending(self.log)
        self.capacity = Capacity(plan, objective, timings)
        self.runs = TrialRuns(
            plan,
            objective,
            function,
            log=self.log,
            ending=self.ending,
            capacity=self.capacity,
            on_cluster=len(cast(Any, ray).nodes()) > 1 or plan.elastic,
        )
        self.next_trials = NextTrials(self.log, self.runs, self.ending, self.capacity)
        self._workers: dict[int, asyncio.Task[None]] = {}
        self._worker_left = asyncio.Event()

    async def run(self) -> None:
        """Run the study to its end, or until it is stopped.

        Raises:
            TrialError: it was given up, as its first trials all failed alike.
        """
        self.runs.judge.recover()
        self.next_trials.recover()
        self.ending.check_enough()
        beside: list[asyncio.Future[None]] = []
        if self.runs.on_cluster:
            beside.append(asyncio.ensure_future(self._watch_nodes()))
        if self.plan.is_kept:
            beside.append(asyncio.ensure_future(watch_requests(self.plan.path, self._stop_for_user, self._enqueue)))
        if self.runs.launcher.objective.nested:
            beside.append(asyncio.ensure_future(self.runs.watch_trainers()))
        self.runs.check_budget()
        if self.log.clock is not None:
            beside.append(asyncio.ensure_future(self._watch_budget(self.log.clock)))
        try:
            if self.plan.elastic:
                await self.capacity.update(await asyncio.get_running_loop().run_in_executor(None, ray.nodes))
            await self._work()
            if not self.ending.stopped:
                self.runs.judge.end_paused()
            if self.ending.reason:
                self.log.end(self.ending.reason)
            self.log.commit()
            self.ending.raise_if_hopeless()
        finally:
            for running in [*self._workers.values(), *beside]:
                running.cancel()
            self._close()

    def stop(self, reason: str) -> None:
        """Ask for no more trials, and stop those that run."""
        self.runs.stop(reason)

    def status(self, after: int, lines_seen: int = 0) -> Status:
        """Return the study now.

        Args:
            after: number of the last event whose notes have been shown.
            lines_seen: how many of the lines that trials have printed have been shown.
        """
        status = self.log.status(self.runs.running, self.ending.reason, after)
        lines, left_out, count = self.runs.output.since(lines_seen)
        return replace(status, printed=lines, unprinted=left_out, lines=count)

    async def reported(self, number: int, attempt: int, batch: list[EventData]) -> Answer:
        """Record the reports of an attempt, and answer whether it is to continue."""
        answer = await self.runs.reported(number, attempt, batch)
        self._resume_promoted()
        return answer

    # ---- workers

    async def _work(self) -> None:
        """Have workers submit trials until none is left to run."""
        self._open_workers()
        while self._workers:  # more may be opened while these run
            await self._worker_left.wait()
            self._worker_left.clear()
            for index, worker in list(self._workers.items()):
                if worker.done():
                    del self._workers[index]
                    worker.result()
            self._resume_promoted()
            if not self._workers and self.next_trials.begin_confirming():
                self._open_workers()

    def _open_workers(self) -> None:
        for index in range(self.capacity.workers):
            if index not in self._workers:
                self._workers[index] = asyncio.ensure_future(self._worker(index))
                self._workers[index].add_done_callback(lambda _: self._worker_left.set())

    async def _worker(self, index: int) -> None:
        while (dispatched := await self.next_trials.take(index)) is not None:
            await self.runs.carry(dispatched, self._prepare)

    def _resume_promoted(self) -> None:
        """Resume a promoted trial if a worker slot is idle."""
        if not self.ending.stopped and self.next_trials.can_promote():
            self._open_workers()

    def _prepare(self) -> None:
        """Have ready, while trials run, what workers would wait for: the next trial in Ray's queue, or its proposal."""
        if self.next_trials.ahead() is Ahead.TRIAL:
            self._open_workers()

    # ---- beside the workers

    def _stop_for_user(self) -> None:
        self.stop(STOP_REASON)

    async def _enqueue(self, request: Request) -> None:
        if await self.next_trials.enqueue(request):
            self._open_workers()

    async def _watch_budget(self, clock: BudgetClock) -> None:
        """End the study when its budget is used."""
        while not clock.is_over:
            await asyncio.sleep(min(clock.seconds_left, BUDGET_SECONDS))
        self.runs.check_budget()

    async def _watch_nodes(self) -> None:
        """Give up trials whose node was lost, and use all the room that there is unless the user said how much."""
        loop = asyncio.get_running_loop()
        losses = NodeLosses()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            nodes = await loop.run_in_executor(None, ray.nodes)
            self.runs.announce(await loop.run_in_executor(None, draining_nodes))
            if losses.update(nodes, time.monotonic()):
                self.runs.launcher.renew()
            for dispatched in self.runs.dispatched.values():
                if dispatched.may_be_lost(losses):  # asked again later: meanwhile it may begin, on another node
                    loop.call_later(GRACE_SECONDS, dispatched.give_up_if_lost, losses, dispatched.node_lost)
            if self.plan.elastic:
                await self.capacity.update([node for node in nodes if node["NodeID"] not in self.runs.leaving])
                self._open_workers()

    def _close(self) -> None:
        for worker in self._workers.values():  # one of them has said what went wrong
            if worker.done() and not worker.cancelled():
                worker.exception()
        self.next_trials.proposals.close()
        self.runs.judge.close()
        if self.plan.is_kept:
            requests.stop_listening(self.plan.path)
        self.log.close()
