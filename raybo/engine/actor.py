"""The study actor: the process that runs a study, and what other processes may ask of it.

The Gaussian process runs in a thread of its own, so that the event loop always answers. A restarted actor rebuilds
everything from the journal.
"""

from __future__ import annotations

import asyncio
from typing import Any

import ray

from raybo.engine.plan import Plan
from raybo.engine.ray.pickling import make_importable
from raybo.engine.ray.signals import end_on_sigterm
from raybo.engine.status import Status
from raybo.engine.study.loop import StudyLoop
from raybo.engine.trial.report_sender import Answer
from raybo.engine.trial.task import PackedFunction
from raybo.job.objective import Objective
from raybo.record.events import STOP_REASON, EventData

LINGER_SECONDS = 10.0  # a detached study still answers for so long after its end


class StudyActor:
    """Runs one study, from the moment it is made, and again when Ray restarts it. Every method is called remotely.

    Args:
        plan: what to run.
        objective: what is tuned, without its function.
        function: the user's function, packed; only the workers unpickle it.
    """

    def __init__(self, plan: Plan, objective: Objective, function: PackedFunction) -> None:
        end_on_sigterm()  # and another process goes on with the study
        make_importable(plan.directories)
        self.plan = plan
        self.objective = objective
        self.function = function
        self.study: StudyLoop | None = None  # until its journal is open
        self.begun = asyncio.Event()  # the journal is open, or cannot be opened
        self.ended = asyncio.Event()
        self.error: BaseException | None = None
        # not by the driver, which may have ended when a detached study's actor is restarted
        ray.get_runtime_context().current_actor.run.remote()

    async def run(self) -> None:
        """Run the study to its end, or until it is stopped; then `outcome` returns."""
        try:
            try:
                self.study = StudyLoop(self.plan, self.objective, self.function)
            finally:
                self.begun.set()
            await self.study.run()
        except Exception as error:  # noqa: BLE001  # whatever it is, `outcome` raises it
            self.error = error
        self.ended.set()
        if self.plan.options.detach:
            await asyncio.sleep(LINGER_SECONDS)
            ray.kill(ray.get_runtime_context().current_actor)

    async def outcome(self) -> None:
        """Wait for the end of the study. Raises what ended it early."""
        await self.ended.wait()
        if self.error is not None:
            raise self.error

    async def has_ended(self) -> bool:
        """True if the study has ended, with or without an error."""
        return self.ended.is_set()

    async def get_plan(self) -> Plan:
        """Return the description of its study."""
        return self.plan

    async def status(self, after: int = 0, lines_seen: int = 0) -> Status | None:
        """Return the study now; None until the journal is open.

        Args:
            after: number of the last event whose notes have been shown.
            lines_seen: how many of the lines that trials have printed have been shown.
        """
        return None if self.study is None else self.study.status(after, lines_seen)

    async def stop(self) -> None:
        """Ask for no more trials, and stop those that run; `outcome` returns when that is recorded."""
        await self.begun.wait()
        if self.study is not None:
            self.study.stop(STOP_REASON)

    # ---- what trials send, of an attempt that may be over

    async def started(self, number: int, attempt: int, node: str, worker: str) -> None:
        """Note that an attempt begins on a node, in the worker of a name of Ray's."""
        if self.study is not None:
            self.study.runs.started(number, attempt, node, worker)

    async def printed(self, number: int, attempt: int, offset: int, data: bytes) -> None:
        """Take a chunk of what an attempt has printed, which begins at a byte of its output."""
        if self.study is not None:
            self.study.runs.output.receive(number, attempt, (offset, data))

    async def reported(self, number: int, attempt: int, batch: list[EventData]) -> Answer:
        """Record the reports of an attempt, and answer whether it is to continue."""
        if self.study is None:
            return Answer("gone", "its study has just restarted")
        return await self.study.reported(number, attempt, batch)

    async def gathered(self, number: int, attempt: int, what: str, index: int, *arguments: Any) -> Any:
        """Take what one of an attempt's processes says, and return what it waits for; None if the trial is over."""
        gang = None if self.study is None else self.study.runs.gang(number, attempt)
        return None if gang is None else await gang.hear(what, index, *arguments)

    async def context_observed(self, number: int, attempt: int, data: EventData) -> None:
        """Record the context that an attempt has observed before its end."""
        if self.study is not None:
            self.study.runs.context_observed(number, attempt, data)
