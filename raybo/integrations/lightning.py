"""Lightning that reports as it trains: a callback, and the checkpoint from which a trial continues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raybo.common.errors import MissingExtra, install_command
from raybo.integrations.trainer_reports import TrainerReports
from raybo.job.reports import checkpoint

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    raise MissingExtra(f"reports of Lightning need lightning: {install_command('lightning')}") from None

CHECKPOINT = "trainer.ckpt"  # in a checkpoint of raybo's


class Report(Callback):
    """Reports a logged metric after each epoch as a step of the trial, and saves the trainer's checkpoint with it.

    In an objective::

        trainer = Trainer(max_epochs=20, callbacks=[Report("val_loss")])
        trainer.fit(model, train, valid, ckpt_path=going_on())

    An epoch that the trainer does not validate (`check_val_every_n_epoch`) is not reported. Outside a trial the
    callback does nothing. If the trial has to end, the trainer stops, and `fit` raises `raybo.TrialPruned`.

    Args:
        metric: as the module logs it.
        name: the name to report it under, that of the objective's metric; by default the same as `metric`.
        save: whether a checkpoint is saved with each report, for `going_on`.
    Raises:
        ObjectiveError: during training, if nothing of the name was logged.
    Example:
        >>> from raybo.integrations.lightning import Report
        >>> Report("val_loss", name="loss").metric
        'val_loss'
    """

    def __init__(self, metric: str, *, name: str | None = None, save: bool = True) -> None:
        super().__init__()
        self.metric, self.save = metric, save
        self._reports = TrainerReports(metric, name)
        self._validated = False

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Called before an epoch."""
        self._validated = False

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Called after a validation, which is within the epoch."""
        self._validated = True

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Called after an epoch: reports it."""
        if trainer.enable_validation and not self._validated:
            return

        def save(directory: Path) -> None:
            trainer.save_checkpoint(directory / CHECKPOINT)

        if self._reports.report(
            trainer.callback_metrics, trainer.current_epoch + 1, save if self.save else None, "what the module logs"
        ):
            trainer.should_stop = True

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Called last: raises TrialPruned if that is why the trainer has stopped."""
        self._reports.end()


def going_on() -> Path | None:
    """Return the `ckpt_path` with which `Trainer.fit` continues this trial; None if it starts from scratch.

    Example:
        >>> from raybo.integrations.lightning import going_on
        >>> going_on() is None  # where there is no checkpoint
        True
    """
    kept = checkpoint()
    return None if kept is None else kept / CHECKPOINT
