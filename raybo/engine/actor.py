"""The study actor: the process that runs a study, and what other processes may ask of it.

The Gaussian process runs in a thread of its own, so that the event loop always answers. A restarted actor rebuilds
everything from the journal.
"""

from __future__ import annotations

import asyncio

import ray

from raybo.engine.plan import Plan, Status
from raybo.engine.ray.pickling import make_importable
from raybo.engine.study.loop import STOP_REASON, StudyLoop
from raybo.engine.trial.reports import Answer
from raybo.engine.trial.task import Parcel
from raybo.job.objective import Objective
from raybo.record.events import Data

FAREWELL_SECONDS = 10.0  # a detached study answers so long after its end


class StudyActor:
    """Runs one study, from the moment it is made, and again when Ray restarts it. Every method is called remotely.

    Args:
        plan: what to run.
        objective: what is tuned, without its function.
        function: the user's function as it travels; only the workers unpickle it.
    """

    def __init__(self, plan: Plan, objective: Objective, function: Parcel) -> None:
        make_importable(plan.directories)
        self.plan = plan
        self.objective = objective
        self.function = function
        self.study: StudyLoop | None = None  # until its journal is open
        self.begun = asyncio.Event()  # the journal is open, or cannot be opened
        self.ended = asyncio.Event()
        self.error: BaseException | None = None
        # called by itself and not by the driver, who may be gone when a detached study's actor is restarted
        ray.get_runtime_context().current_actor.run.remote()

    async def run(self) -> None:
        """Run the study to its end, or until it is stopped. Whoever waits in `outcome` hears of it."""
        try:
            try:
                self.study = StudyLoop(self.plan, self.objective, self.function)
            finally:
                self.begun.set()
            await self.study.run()
        except Exception as error:  # noqa: BLE001  # whatever it is, whoever asks for the outcome is told
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

    async def has_ended(self) -> bool:
        """Whether the study has ended, however it did."""
        return self.ended.is_set()

    async def what(self) -> Plan:
        """What it was told to run."""
        return self.plan

    async def status(self, after: int = 0, heard: int = 0) -> Status | None:
        """The study now, with what happened to single trials after an event, and what they printed after so many lines.

        None until the journal is open.
        """
        return None if self.study is None else self.study.status(after, heard)

    async def stop(self) -> None:
        """Ask no more, and stop what runs; `outcome` returns when all of it is recorded."""
        await self.begun.wait()
        if self.study is not None:
            self.study.stop(STOP_REASON)

    # ---- what trials say, of an attempt that may be over

    async def started(self, number: int, attempt: int, node: str) -> None:
        """A trial begins, and where."""
        if self.study is not None:
            self.study.started(number, attempt, node)

    async def printed(self, number: int, attempt: int, where: int, data: bytes) -> None:
        """A trial has printed something, which begins so many bytes after its first."""
        if self.study is not None:
            self.study.printed.hear(number, attempt, (where, data))

    async def reported(self, number: int, attempt: int, batch: list[Data]) -> Answer:
        """A trial has come some steps further; whether it is to go on."""
        if self.study is None:
            return Answer("gone", "its study has just restarted")
        return await self.study.reported(number, attempt, batch)

    async def context_observed(self, number: int, attempt: int, data: Data) -> None:
        """A trial has observed its context, before it ends."""
        if self.study is not None:
            self.study.context_observed(number, attempt, data)
