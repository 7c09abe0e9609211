"""Keras that reports as it trains: a callback, with which a trial also continues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raybo.common.errors import MissingExtra, ObjectiveError, install_command
from raybo.integrations.trainer_reports import TrainerReports
from raybo.job.reports import checkpoint, is_received

try:
    import keras
except ImportError as error:  # also where its backend is missing
    raise MissingExtra(
        f"reports of Keras need keras and the backend that KERAS_BACKEND names ({error}): {install_command('keras')}"
    ) from None

WEIGHTS, EPOCH = "model.weights.h5", "epoch.txt"  # in a checkpoint


class Report(keras.callbacks.Callback):
    """Reports a metric after each epoch as a step of the trial, and saves weights and optimiser with it.

    In an objective::

        model.fit(x, y, epochs=20, validation_data=(x_valid, y_valid), callbacks=[Report("val_loss")])

    A trial that has a checkpoint continues from it: `fit` begins at the epoch that follows. Outside a trial the
    callback does nothing. If the trial has to end, the training stops, and `fit` raises `raybo.TrialPruned`.

    Args:
        metric: as the logs of Keras call it.
        name: the name to report it under, that of the objective's metric; by default the same as `metric`.
        save: whether a checkpoint is saved with each report.
    Raises:
        ObjectiveError: during training, if the logs have no such metric; before, if checkpoints are saved and the model
            is not built, as with the backend TensorFlow without a `keras.Input`.
    Example:
        >>> from raybo.integrations.keras import Report
        >>> Report("val_loss", name="loss").metric
        'val_loss'
    """

    def __init__(self, metric: str, *, name: str | None = None, save: bool = True) -> None:
        super().__init__()
        self.metric, self.save = metric, save
        self._reports = TrainerReports(metric, name)

    def on_train_begin(self, logs: Any = None) -> None:
        """Called before the first epoch: restores the trial's checkpoint."""
        kept = checkpoint()
        if self.save and is_received() and not self.model.built:
            raise ObjectiveError(
                "Report: the model is not built before fit, so no checkpoint could be loaded into it; begin it with a "
                "keras.Input, or call its build, or set save=False"
            )
        if kept is not None:
            optimizer = self.model.optimizer
            if not optimizer.built:  # TensorFlow's before the first step: nothing would be loaded into it
                optimizer.build(self.model.trainable_variables)
            self.model.load_weights(kept / WEIGHTS)
            self.model._initial_epoch = int((kept / EPOCH).read_text())  # as BackupAndRestore of Keras does

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Called after an epoch: reports it."""

        def save(directory: Path) -> None:
            self.model.save_weights(directory / WEIGHTS)
            (directory / EPOCH).write_text(str(epoch + 1))

        if self._reports.report(logs or {}, epoch + 1, save if self.save else None, "what Keras logs"):
            self.model.stop_training = True

    def on_train_end(self, logs: Any = None) -> None:
        """Called last: raises TrialPruned if that is why the training has stopped."""
        self._reports.end()
