"""One trial in Ray's hands: submitted, awaited, cancelled. Whatever happens to its task becomes an occurrence."""

from __future__ import annotations

import asyncio
import errno
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import ray

from raybo.common.messages import first_line
from raybo.engine.lifecycle import Life, Occurrence, Phase
from raybo.engine.study.gang import Gang
from raybo.engine.trial.shortages import MAKE_ROOM, NO_MEMORY
from raybo.engine.trial.task import TRACEBACK_CHARACTERS
from raybo.record.events import EventData

if TYPE_CHECKING:
    from raybo.engine.ray.nodes import NodeLosses
    from raybo.engine.trial.captured_output import Chunk
    from raybo.engine.trial.report_sender import Answer

UNLOADED = "failed to import on the worker"  # Ray's message if it cannot load a function that it sent
LOG_FILE = "/logs/worker-"  # a worker opens one before a task; it is missing if Ray is being removed

FULL = re.compile(rf"^OSError: \[Errno ({errno.ENOSPC}|{errno.EDQUOT})\]")

Outcome = tuple[Occurrence, EventData]  # with the data of the event that records it


@dataclass
class DispatchedTrial:
    """A trial in the engine: its life so far, and the task that runs it.

    Attributes:
        life: its phase, its attempt, how often it lost its worker.
        task: Ray's reference to the running attempt, once it is submitted; a gang if it has several processes.
        submitted: when it was submitted, by the monotonic clock, in seconds.
        processes: how many this attempt has.
        node: the node that it runs on; None until it has begun.
        worker: Ray's name of its process; None until it has begun.
        grace: how many seconds it has to end by itself, with what it has started, before it is ended by force.
        node_lost: set when this attempt's node is lost; the next attempt has an event of its own.
        reason: why it is to stop; empty if it is not.
        unsent_output: the output that came with the result; None if there is no result.
        answer: the verdict by which it was pruned or paused; None if it was not.
    """

    life: Life
    task: Any = None
    submitted: float = 0.0
    processes: int = 1
    node: str | None = None
    worker: str | None = None
    grace: float = 0.0
    node_lost: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    reason: str = ""
    unsent_output: list[Chunk] | None = field(default=None, init=False)
    answer: Answer | None = field(default=None, init=False)
    _started: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _over_limit: bool = field(default=False, init=False)

    def submit(self, task: Any, *arguments: Any) -> None:
        """Submit this attempt to Ray, as a task with these arguments."""
        self.submitted = time.monotonic()
        self.task = task.remote(*arguments)

    def submit_gang(self, gang: Gang) -> None:
        """Take the processes as which this attempt runs, if it has several."""
        self.submitted = time.monotonic()
        self.task = gang

    @property
    def gang(self) -> Gang | None:
        """The processes of this attempt, if it may have several."""
        return self.task if isinstance(self.task, Gang) else None

    @property
    def nodes(self) -> Sequence[str | None]:
        """The nodes that it runs on; None for one that is not known, as it has not begun there."""
        return [self.node] if self.gang is None else self.gang.nodes

    @property
    def has_begun(self) -> bool:
        """True if this attempt has begun on a node."""
        return self._started.is_set()

    @property
    def holds_room(self) -> bool:
        """True if all processes of this attempt have their place on the cluster."""
        return self.has_begun if self.gang is None else self.gang.is_placed

    def start(self, node: str) -> None:
        """Note that it has begun on a node; its time limit counts from here."""
        self.node = node
        self._started.set()

    def may_be_lost(self, losses: NodeLosses) -> bool:
        """True if a node of this attempt was lost, or may be, as it has not begun there."""
        now = time.monotonic()
        is_out = self.life.phase is not Phase.WAITING
        return is_out and any(losses.affect(node, self.submitted, now) for node in self.nodes)

    def give_up_if_lost(self, losses: NodeLosses, event: asyncio.Event) -> None:
        """Set the event of an attempt, unless another runs or it has meanwhile begun on nodes that were not lost."""
        if event is self.node_lost and self.may_be_lost(losses):
            event.set()

    def stop(self, reason: str) -> None:
        """Stop it, whatever it does."""
        self.reason = reason
        if self.task is not None:
            self._cancel()

    def reset(self) -> None:
        """Forget this attempt, so that another can be submitted."""
        self.node, self.worker = None, None
        self._started, self.node_lost = asyncio.Event(), asyncio.Event()
        self.unsent_output, self._over_limit = None, False

    async def outcome(self, limit: float | None, on_cluster: bool) -> Outcome:
        """Wait for this attempt's end, its limit in seconds or, on a cluster, the loss of its node."""
        watch = asyncio.ensure_future(self._watch(limit)) if limit is not None else None
        try:
            occurrence, data, *rest = await (self._unless_node_lost() if on_cluster else self.task)
            self.unsent_output = rest[0] if rest else None
            if self.grace and occurrence is not Occurrence.RETURNED:  # perhaps because it was cancelled
                return self._outcome_of_cancelling(limit) or (occurrence, data)
            return occurrence, data
        except ray.exceptions.RayError as error:
            return self._outcome_of_cancelling(limit) or outcome_of_error(error)
        finally:
            if watch is not None:
                watch.cancel()

    def _outcome_of_cancelling(self, limit: float | None) -> Outcome | None:
        """Return the outcome if it has been cancelled; None if it has not."""
        if self._over_limit and limit is not None:
            reason = f"it ran longer than its limit of {limit:g} seconds"
            return Occurrence.OVER_LIMIT, {"reason": reason, "seconds": limit}
        return (Occurrence.STOPPED, {"reason": self.reason}) if self.reason else None

    def _cancel(self) -> None:
        if self.gang is not None:
            self.gang.cancel()
            return
        # anything less than force waits for a long call into C to return
        ray.cancel(self.task, force=not self.grace)
        if self.grace:
            asyncio.get_running_loop().call_later(self.grace, partial(ray.cancel, self.task, force=True))

    async def _watch(self, limit: float) -> None:
        """Cancel it when it has run longer than its limit."""
        await self._started.wait()
        await asyncio.sleep(limit)
        self._over_limit = True
        self._cancel()

    async def _unless_node_lost(self) -> Any:
        """Return its result, or that its node was lost: Ray may wait for such a trial for ever."""
        returned: asyncio.Future[Any] = asyncio.ensure_future(_returned(self.task))
        lost = asyncio.ensure_future(self.node_lost.wait())
        try:
            await asyncio.wait([returned, lost], return_when=asyncio.FIRST_COMPLETED)
            if returned.done():
                return returned.result()
            self._cancel()  # a result that still comes is ignored
            if None in self.nodes:
                return Occurrence.NEVER_BEGAN, {"reason": "a node was lost before it started"}
            return Occurrence.WORKER_LOST, {"reason": "its node was lost"}
        finally:
            returned.cancel()
            lost.cancel()


async def _returned(task: Any) -> Any:
    return await task


def outcome_of_error(error: Exception) -> Outcome:
    """Classify a failure that Ray reports: the loss of a worker, unless the job caused it."""
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return Occurrence.OUT_OF_MEMORY, {"reason": f"{NO_MEMORY}: Ray killed its worker: {first_line(error)}"}
    if isinstance(error, ray.exceptions.RayTaskError):  # before the objective began: its code could not be loaded
        last = str(error).strip().splitlines()[-1]
        if UNLOADED in str(error) and not last.startswith(("ImportError", "ModuleNotFoundError")):
            return Occurrence.WORKER_LOST, {"reason": f"its worker could not be given its code ({last})"}
        if FULL.search(last):  # its directory could not be made
            return Occurrence.WORKER_LOST, {"reason": f"{last}; {MAKE_ROOM}"}
        if last.startswith("FileNotFoundError") and LOG_FILE in last:
            return Occurrence.NEVER_BEGAN, {"reason": "the Ray that it was to run on is being removed"}
        return Occurrence.RAISED, {"reason": last, "traceback": str(error)[-TRACEBACK_CHARACTERS:]}
    if isinstance(error, ray.exceptions.NodeDiedError):
        return Occurrence.WORKER_LOST, {"reason": "its node was lost"}
    return Occurrence.WORKER_LOST, {"reason": f"its worker died ({type(error).__name__})"}
