"""One process of a trial that has several, inside its Ray worker: its place among them, and their reports together.

Each of them runs the user's function. The first one's reports and result are the trial's. At some steps, the same for
all of them, they wait for each other; only there the trial may end. These are the steps at which a verdict can be
given, and others, so that what happens in between is heard in a fraction of a second, or at the next step.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import socket
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from raybo.common import streams, systems
from raybo.common.environment import environment
from raybo.engine.lifecycle import Occurrence
from raybo.engine.trial.checkpoints import Checkpoints
from raybo.engine.trial.report_sender import (
    GONE,
    Answer,
    AttemptInfo,
    DescribeBroken,
    MakeSender,
    Read,
    ReportSender,
    TakeContext,
)
from raybo.engine.trial.seat import LOOPBACK, Arrival, Seat, seats
from raybo.record.events import EventData

INTERFACE = "GLOO_SOCKET_IFNAME"  # gloo would take the address of the host's name


class Gathering:
    """This process's line to the study, for what concerns all processes of its trial.

    Args:
        actor: the study's.
        number, attempt: of the trial.
        index: of this process, by the order in which they were submitted.
    """

    def __init__(self, actor: Any, number: int, attempt: int, index: int) -> None:
        self._actor, self._number, self._attempt, self._index = actor, number, attempt, index
        self._meets_at = 0  # the first step that is reported

    def arrive(self, arrival: Arrival) -> Seat | None:
        """Wait until all processes have begun; return this one's place, None if the trial is over."""
        seat: Seat | None = self._ask("arrive", arrival)
        return seat

    def follow(self, batch: list[EventData]) -> Answer:
        """Tell which steps another process than the first has reported, and what it has saved."""
        steps = [(data["step"], data.get("checkpoint")) for data in batch]
        return self._ask("follow", steps) or GONE

    def gather(self, step: int, name: str) -> tuple[Sequence[int], str]:
        """Wait until all have reported a step with which this one, if it is the first, has saved a checkpoint."""
        return ((), "") if self._index else self._ask("gather", step, name) or ((), "")

    def is_due(self, step: int) -> bool:
        """True if all are to meet at this step."""
        return step >= self._meets_at

    def meet(self, step: int) -> Answer:
        """Wait until all have reported this step, and return the answer to all of them."""
        answer: Answer = self._ask("meet", step) or GONE
        self._meets_at = answer.waits_at or step + 1
        return answer

    def end(self, occurrence: Occurrence, data: EventData) -> None:
        """Tell how this process ended, before whatever it still has to clean up."""
        self._ask("end", occurrence, data)

    def _ask(self, what: str, *arguments: Any) -> Any:
        import ray

        get: Any = ray.get
        try:
            return get(self._actor.gathered.remote(self._number, self._attempt, what, self._index, *arguments))
        except ray.exceptions.RayError:  # the study is gone, and this process goes soon
            return None


@contextlib.contextmanager
def seated(gathering: Gathering, index: int, info: AttemptInfo, checkpoints: Checkpoints) -> Iterator[Seat | None]:
    """Wait for the other processes, and yield this one's place, with the environment variables that say it.

    The first one holds a port meanwhile. Either all of them continue from the trial's checkpoint or none.
    """
    import ray

    context: Any = ray.get_runtime_context()
    address: Any = ray.util.get_node_ip_address
    checkpoints.begin()  # before any other process saves
    has_checkpoint = info.checkpoint is None or checkpoints.last() is not None
    with contextlib.ExitStack() as held:
        port = 0 if index else held.enter_context(_held_port())
        devices = tuple(context.get_accelerator_ids().get("GPU", ()))
        seat = gathering.arrive(Arrival(context.get_node_id(), address(), port, devices, has_checkpoint))
        if seat is not None:
            held.enter_context(environment(_variables(seat)))
            checkpoints.rank = seat.rank
            if not seat.has_checkpoint:
                checkpoints.forget()
        try:
            yield seat
        finally:
            _leave_process_group()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Set the environment variables of the only process of a trial, of which others have several, within the block."""
    with _held_port() as port, environment(_variables(seats([Arrival("", LOOPBACK, port)])[0])):
        try:
            yield
        finally:
            _leave_process_group()


@contextlib.contextmanager
def _held_port() -> Iterator[int]:
    """Yield a port that nobody else is given within the block, as it is bound here without listening."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("", 0))
        yield holder.getsockname()[1]


def _variables(seat: Seat) -> dict[str, str]:
    found = seat.variables
    if seat.address == LOOPBACK and sys.platform == "linux" and INTERFACE not in os.environ:
        found[INTERFACE] = "lo"
    return found


def _leave_process_group() -> None:
    """Destroy the process group that a job has left behind: the next one in this process could make none."""
    distributed = sys.modules.get("torch.distributed")
    with contextlib.suppress(Exception):  # the others may be gone
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            distributed.destroy_process_group()


def sender_of(
    gathering: Gathering,
    seat: Seat,
    info: AttemptInfo,
    send: Callable[[list[EventData]], Answer],
    checkpoints: Checkpoints,
) -> MakeSender:
    """Return what makes the sender of this process's reports; of others than the first only the steps count."""

    def make(read: Read, take_context: TakeContext, broken: DescribeBroken) -> ReportSender:
        if seat.rank == 0:
            return ReportSender(info, send, checkpoints, read, take_context, broken, gathering)
        steps_only = replace(info, judged=None)
        return ReportSender(
            steps_only, gathering.follow, checkpoints, _anything, lambda metrics: metrics, others=gathering
        )

    return make


def _anything(metrics: Any) -> tuple[float | None, str, dict[str, Any]]:
    return 0.0, "", {}


def without_result(job: Callable[..., Any], needed: Sequence[str]) -> Callable[..., Any]:
    """Return a job whose result is a valid one that nobody reads, for other processes than the first."""
    result = dict.fromkeys(needed, 0.0)

    def run(config: Mapping[str, Any], **settings: Any) -> Any:
        returned = job(config, **settings)
        return _to_its_end(returned, result) if inspect.isgenerator(returned) else result

    return run


def _to_its_end(steps: Any, result: Any) -> Generator[Any, None, Any]:
    yield from steps
    return result


@contextlib.contextmanager
def output_to(path: Path | None) -> Iterator[None]:
    """Write what this process prints to a file within the block; None for wherever it goes anyway."""
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    written = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | systems.NOFOLLOW | systems.CLOEXEC, 0o666)
    try:
        with streams.redirected(1, 2, to=written):
            yield
    finally:
        is_empty = os.fstat(written).st_size == 0
        os.close(written)
        if is_empty:
            path.unlink(missing_ok=True)
