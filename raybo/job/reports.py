"""Reports of a job while it runs: the result of each step, and the checkpoints from which it can continue.

If the job runs as a trial, its reports have a receiver; if it is only called, they have none.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from raybo.common.arguments import number_in, whole_number
from raybo.common.errors import ObjectiveError
from raybo.common.messages import shown
from raybo.job.launched_rank import launched_receiver

T = TypeVar("T")


class TrialPruned(BaseException):
    """The trial has to end here: raised in the job by `raybo.report`, or by a job that gives up by itself.

    It is not a subclass of `Exception`, so that a job that continues after errors does not swallow it.

    Example:
        >>> def job(config):
        ...     if config["rate"] > 1:
        ...         raise raybo.TrialPruned("it would diverge")
        >>> issubclass(raybo.TrialPruned, Exception)
        False
    """


class ProcessLost(Exception):
    """A process that the job has started has died, which is no fault of the job's: the trial starts again."""


class ReportReceiver(Protocol):
    """Receives the reports of a running trial."""

    def report(self, metrics: Any, step: int | None) -> None:
        """Take a step's metrics. Raises TrialPruned if the trial has to end."""
        ...

    def refuse(self, fault: str) -> None:
        """Have the trial fail for a report that was refused, whatever becomes of the error that says so."""
        ...

    def checkpoint(self) -> Path | None:
        """Return the directory of the trial's last checkpoint; None if there is none."""
        ...

    def saving(self) -> AbstractContextManager[Path]:
        """Yield a directory that becomes the checkpoint of the next report."""
        ...


# of the process, which runs one trial at a time: what the threads of the job report counts too
_receiver: ReportReceiver | None = None
_earlier: weakref.WeakSet[threading.Thread] = weakref.WeakSet()  # threads that an earlier trial may have left behind
_saving: list[int] = []  # the threads that are saving a checkpoint
_held: ExitStack | None = None  # what lasts as long as the trial


def report(metrics: Mapping[str, Any] | float, step: int | None = None) -> None:
    """Report the result of a step from inside an objective. A generator yields the metrics instead.

    If the objective is only called, and not run as a trial, this checks its arguments and does nothing else. A trial
    fails by a report that is refused, also if the job handles the error or reports in a thread; threads may report if
    they have begun with the trial.

    Args:
        metrics: a dict with the objective's metric under its name, and whatever else is known about the step; or the
            metric alone.
        step: which step, counted from 1 and increasing; None for `metrics["step"]`, or without that, the one after the
            last.
    Raises:
        TrialPruned: the trial has to end here.
        ObjectiveError: an argument is wrong, or this is within `raybo.saving()` or a thread of an earlier trial.
    Example:
        >>> raybo.report({"loss": 0.5}, step=1)
        >>> raybo.report("half")
        Traceback (most recent call last):
            ...
        raybo.common.errors.ObjectiveError: report: ...'half'
    """
    require_own_thread("report")
    receiver = _receiving()
    try:
        if not isinstance(metrics, Mapping) and number_in(metrics) is None:
            raise ObjectiveError(f"report: metrics must be a number or a dict of them, got {shown(metrics)}")
        if step is not None:
            require_step(step)
        require_saved()
    except ObjectiveError as error:
        if receiver is not None:
            receiver.refuse(str(error))
        raise
    if receiver is not None:
        receiver.report(metrics, step)


def require_own_thread(call: str) -> None:
    """Raise ObjectiveError in a thread that began before the trial that runs here, as an earlier trial leaves some."""
    if _receiver is not None and threading.current_thread() in _earlier:
        raise ObjectiveError(f"{call}: this thread began before the trial that runs now; begin a thread in each trial")


def require_saved() -> None:
    """Raise ObjectiveError inside a `saving` block: its checkpoint would go with the report after this one."""
    if threading.get_ident() in _saving:
        raise ObjectiveError(
            "report: a step is reported within raybo.saving(); report (or yield) after the block, when its checkpoint "
            "is whole"
        )


def require_step(step: Any) -> int:
    """Return the step as a whole number. Raises ObjectiveError if it is not one from 1."""
    return whole_number(step, "report: step", error=ObjectiveError)


def checkpoint() -> Path | None:
    """Return the directory of this trial's last checkpoint, to continue from; None without one or a trial.

    Do not change its contents. Steps reported without a number are counted on from the step of this checkpoint.

    Raises:
        TrialPruned: this process was started by `raybo.integrations.launch`, and its trial is over.
    Example:
        >>> raybo.checkpoint() is None
        True
    """
    receiver = _receiving()
    return None if receiver is None else receiver.checkpoint()


@contextmanager
def saving() -> Iterator[Path]:
    """Yield a new directory to save into, which becomes the checkpoint that goes with the next report.

    It is kept whole or not at all: if the block raises or the process dies, there is no such checkpoint. If the
    objective is only called, and not run as a trial, the directory is thrown away.

    Raises:
        ObjectiveError: this thread began before the trial that runs now, or this process was started by
            `raybo.integrations.launch` and is not rank 0.
        OSError: the checkpoint cannot be written.
        TrialPruned: this process was started by `raybo.integrations.launch`, and its trial is over.
    Example:
        >>> with raybo.saving() as directory:
        ...     _ = (directory / "weights.txt").write_text("0.1 0.2")
        >>> raybo.report({"loss": 0.5})
    """
    require_own_thread("saving")
    receiver = _receiving()
    with _temporary() if receiver is None else receiver.saving() as directory:
        here = threading.get_ident()
        _saving.append(here)
        try:
            yield directory
        finally:
            _saving.remove(here)


def is_received() -> bool:
    """True if somebody receives what this process reports: it runs a trial."""
    return _receiving() is not None


def _receiving() -> ReportReceiver | None:
    """Return the receiver of the reports of this process, which a launcher of a trial may have started."""
    return launched_receiver(TrialPruned) if _receiver is None else _receiver


@contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="raybo-checkpoint-") as name:
        yield Path(name)


@contextmanager
def reports_sent_to(receiver: ReportReceiver | None) -> Iterator[None]:
    """Send the reports of this process to a receiver within the block; None for nowhere."""
    global _receiver, _earlier, _held
    outer = _receiver, _earlier, _held
    here = threading.current_thread()
    _receiver, _earlier = receiver, weakref.WeakSet(each for each in threading.enumerate() if each is not here)
    try:
        with ExitStack() as _held:
            yield
    finally:
        _receiver, _earlier, _held = outer


def held_by_trial(context: AbstractContextManager[T]) -> T:
    """Enter a context that the trial which runs here leaves at its end, with the exception that ends it if one does."""
    assert _held is not None
    return _held.enter_context(context)
