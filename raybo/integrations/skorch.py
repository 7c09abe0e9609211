"""skorch that reports as it trains: a callback, with which a trial also continues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raybo.common.errors import MissingExtra, install_command
from raybo.integrations.trainer_reports import TrainerReports
from raybo.job.reports import checkpoint

try:
    from skorch.callbacks import Callback
except ImportError:
    raise MissingExtra(f"reports of skorch need skorch: {install_command('skorch')}") from None

FILES = {"f_params": "params.pt", "f_optimizer": "optimizer.pt", "f_history": "history.json"}  # in a checkpoint


class Report(Callback):
    """Reports an entry of the net's history after each epoch as a step of the trial, and saves the net with it.

    In an objective::

        net = NeuralNetClassifier(module, max_epochs=20, lr=config["lr"], callbacks=[Report("valid_loss")])
        net.fit(X, y)

    A trial that has a checkpoint continues from it: `fit` trains the epochs that are left of `max_epochs`. Outside a
    trial the callback does nothing. If the trial has to end, the training stops, and `fit` raises `raybo.TrialPruned`.

    Args:
        metric: as the history calls it.
        name: the name to report it under, that of the objective's metric; by default the same as `metric`.
        save: whether a checkpoint is saved with each report.
    Raises:
        ObjectiveError: during training, if the history has no such entry.
    Example:
        >>> from raybo.integrations.skorch import Report
        >>> Report("valid_loss", name="loss").metric
        'valid_loss'
    """

    def __init__(self, metric: str = "valid_loss", *, name: str | None = None, save: bool = True) -> None:
        self.metric, self.name, self.save = metric, name, save  # as they are: skorch clones callbacks by them

    def initialize(self) -> Report:
        """Called by skorch when the net is made."""
        self.reports_ = TrainerReports(self.metric, self.name)
        self.max_epochs_: int | None = None  # of the user, while fewer are left
        return self

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Called before the first epoch: restores the trial's checkpoint into a new net."""
        kept = checkpoint()
        if kept is not None and not net.history:
            net.load_params(**_files(kept))
            self.max_epochs_ = net.max_epochs
            net.max_epochs = max(0, net.max_epochs - len(net.history))

    def on_epoch_end(self, net: Any, dataset_train: Any = None, dataset_valid: Any = None, **kwargs: Any) -> None:
        """Called after an epoch: reports it."""

        def save(directory: Path) -> None:
            net.save_params(**_files(directory))

        found = net.history[-1]
        if self.reports_.report(found, len(net.history), save if self.save else None, "the net's history"):
            raise KeyboardInterrupt  # skorch's own way to stop; it goes on to on_train_end

    def on_train_end(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Called last: raises TrialPruned if that is why the training has stopped."""
        if self.max_epochs_ is not None:
            net.max_epochs, self.max_epochs_ = self.max_epochs_, None
        self.reports_.end()


def _files(directory: Path) -> dict[str, str]:
    return {what: str(directory / file) for what, file in FILES.items()}
