"""Hugging Face's Trainer that reports as it trains: a callback, and the checkpoint from which a trial continues."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from raybo.common.errors import MissingExtra, install_command
from raybo.integrations.trainer_reports import TrainerReports, keeps_checkpoints, number_called
from raybo.job.reports import checkpoint

try:
    from transformers import TrainerCallback
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
except ImportError:
    raise MissingExtra(f"reports of the Trainer need transformers: {install_command('transformers')}") from None


class Report(TrainerCallback):
    """Reports a metric of each evaluation as a step of the trial, with the checkpoint that the Trainer saves after it.

    In an objective::

        settings = TrainingArguments(directory, eval_strategy="epoch", save_strategy="epoch", num_train_epochs=5)
        trainer = Trainer(model, settings, train_dataset=train, eval_dataset=valid, callbacks=[Report("eval_loss")])
        trainer.train(resume_from_checkpoint=going_on())

    Steps are counted by evaluations. Outside a trial the callback does nothing. If the trial has to end, the Trainer
    stops, and `train` raises `raybo.TrialPruned`.

    Args:
        metric: as `Trainer.evaluate` calls it.
        name: the name to report it under, that of the objective's metric; by default the same as `metric`.
        save: whether the Trainer's checkpoints are kept with the reports, for `going_on`.
    Raises:
        ObjectiveError: during training, if an evaluation has no such metric.
    Example:
        >>> from raybo.integrations.transformers import Report
        >>> Report("eval_loss", name="loss").metric
        'eval_loss'
    """

    def __init__(self, metric: str = "eval_loss", *, name: str | None = None, save: bool = True) -> None:
        super().__init__()
        self.metric, self.save = metric, save
        self._reports = TrainerReports(metric, name)
        self._training = False
        self._evaluated: dict[str, Any] | None = None  # waits for the checkpoint that follows
        self._without: dict[str, Any] | None = (
            None  # other numbers of the last evaluation, if it lacks the metric so far
        )
        self._found_at = 0  # the step of the last evaluation that has it

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Called first: from here on evaluations are steps."""
        self._training, self._evaluated = True, None
        self._without, self._found_at = None, 0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Called before a step: the evaluation before it, of one set or several, is complete."""
        self._require_metric()

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        """Called after an evaluation: reports it, or waits for its checkpoint."""
        if not self._training or not state.global_step or self._reports.pruned is not None:
            return
        found = dict(metrics or {})
        if self.metric not in found:
            if self._found_at != state.global_step:  # another of the evaluation sets may have it
                self._without = {**(self._without or {}), **found}
            return
        self._evaluated, self._without, self._found_at = found, None, state.global_step
        if not (self.save and control.should_save):
            self._report(control, None)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Called after the Trainer has saved a checkpoint: it goes with the evaluation before it."""
        if self._evaluated is not None:
            self._report(control, Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Called last: raises TrialPruned if that is why the Trainer has stopped."""
        self._training = False
        self._require_metric()
        self._reports.end()

    def _require_metric(self) -> None:
        """Raise ObjectiveError if the last evaluation is over and had no such metric."""
        if self._without is not None:
            number_called(self.metric, self._without, "the evaluation")

    def _report(self, control: Any, saved: Path | None) -> None:
        def save(directory: Path) -> None:
            assert saved is not None
            shutil.copytree(saved, directory, dirs_exist_ok=True)

        found, self._evaluated = self._evaluated or {}, None
        is_kept = saved is not None and keeps_checkpoints()  # large: only the first process copies it
        if self._reports.report(found, None, save if is_kept else None, "the evaluation"):
            control.should_training_stop = True


def going_on() -> str | None:
    """Return the `resume_from_checkpoint` with which `Trainer.train` continues this trial; None from scratch.

    Example:
        >>> from raybo.integrations.transformers import going_on
        >>> going_on() is None  # if there is no checkpoint
        True
    """
    kept = checkpoint()
    return None if kept is None else str(kept)
