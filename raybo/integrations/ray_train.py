"""Ray Train inside a trial: the reports of a trainer become the trial's.

A trainer's workers report to its controller, which calls back. The callback brings the numbers of rank 0, and the
checkpoint that goes with them, to the process of the trial.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from raybo.common.errors import MissingExtra, ObjectiveError, RayboError, install_command
from raybo.common.messages import in_words
from raybo.engine.ray.trainers import end_own_cleaner
from raybo.engine.study.rank_endings import is_echo
from raybo.engine.temporary_directories import private_directory
from raybo.engine.trial.shortages import lacked_memory
from raybo.integrations.launch import Ranks
from raybo.job.current_trial import current_trial
from raybo.job.launched_rank import LaunchedReceiver
from raybo.job.reports import ProcessLost, held_by_trial

try:
    import ray
    from ray.train import UserCallback
except ImportError as missing:
    raise MissingExtra(f"Ray Train cannot be imported ({missing}); {install_command('train')}") from missing


class TrainError(RayboError):
    """A trainer that a trial has run has failed: the trial fails, unless its job handles it. Names rank and cause.

    Example:
        >>> from raybo.integrations.ray_train import TrainError
        >>> def job(config, trainer):
        ...     try:
        ...         return trainer.fit().metrics["loss"]
        ...     except TrainError:  # diverged, say
        ...         return 10.0  # worse than any model
    """


class TrialOver(Exception):
    """The trial has to end, and its trainer with it: raised in the trainer's controller."""


def report_to_trial() -> Any:
    """Return a callback by which a trainer of Ray Train, inside a trial, reports to it.

    Give it to each trainer of the trial: `RunConfig(callbacks=[report_to_trial()])`. What rank 0 reports is reported by
    the trial (`raybo.report`), with the checkpoint of all ranks if there is one. A verdict ends the trainer. If a
    worker raises, the trial fails by that exception; if one is lost, the trial is, and starts again.

    In a script that is not run as a trial, the callback does nothing.

    Raises:
        ObjectiveError: the trial's objective is not declared with `nested=True`.
    Example:
        >>> from raybo.integrations.ray_train import report_to_trial
        >>> type(report_to_trial()).__name__
        'Report'
    """
    me = current_trial()
    if me is None:
        return Report(None)
    if not me._is_nested:
        raise ObjectiveError(
            "report_to_trial: the trial's process holds resources that the trainer's workers may wait for; declare "
            "@raybo.objective(nested=True, processes=...)"
        )
    return Report(str(held_by_trial(_reporting()).address))


@contextlib.contextmanager
def _reporting() -> Iterator[Ranks]:
    """Take a trainer's reports within the block, and raise the cause of its failure in place of what `fit` raises."""
    with private_directory() as directory, Ranks(directory / "socket", 0.0).listening() as ranks:
        try:
            yield ranks
        except Exception as error:
            ranks.raise_end()
            cause = cause_of(error)
            if cause is None:
                raise
            raise cause from error


def cause_of(error: BaseException) -> Exception | None:
    """Return what to raise in place of an exception of `fit`: the cause, with its rank; None for the exception itself.

    As for a trial of several processes, too little memory outranks a lost worker, that an exception of the job's own,
    and that a lost connection, which is another rank's end.
    """
    if isinstance(error, ray.exceptions.RayActorError):
        return ProcessLost(f"its trainer died ({type(error).__name__})")
    failures: Mapping[int, BaseException] = getattr(error, "worker_failures", None) or {}
    found = {rank: getattr(each, "health_check_failure", each) for rank, each in failures.items()}
    lacking = [rank for rank, each in found.items() if lacked_memory(each)]
    lost = [rank for rank, each in failures.items() if hasattr(each, "health_check_failure")]
    own = [rank for rank, each in found.items() if not is_echo(in_words(each))]
    for rank in (lacking or lost or own or list(found))[:1]:
        cause, which = found[rank], f"rank {rank} of its trainer"
        if rank in lacking:
            return MemoryError(f"{which}: {in_words(cause)}")
        if rank in lost:
            return ProcessLost(f"{which}: its worker died ({type(cause).__name__})")
        return TrainError(f"{which}: {in_words(cause)}")
    return None


class Report(UserCallback):  # type: ignore[misc, unused-ignore]  # where Ray Train is not installed, it is Any
    """Brings reports from a trainer's controller to the trial.

    Args:
        address: path of the trial's socket; None to bring them nowhere.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._line: LaunchedReceiver | None = None

    def after_report(self, run_context: Any, metrics: list[dict[str, Any]], checkpoint: Any) -> None:
        """Report what rank 0 has reported. Raises TrialOver if the trial has to end."""
        if self._address is None:
            return
        if self._line is None:
            self._line = LaunchedReceiver(self._address, TrialOver)
            end_own_cleaner()  # not before: the trainer would warn of it
        if checkpoint is not None:
            with self._line.saving() as directory:
                checkpoint.to_directory(str(directory))
        self._line.report(metrics[0], None)
