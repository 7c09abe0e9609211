"""XGBoost that reports as it boosts: a callback, and how a trial continues with the trees that it already has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raybo.common.arguments import whole_number
from raybo.common.errors import MissingExtra, ObjectiveError, install_command
from raybo.common.messages import nearest
from raybo.integrations.trainer_reports import keeps_checkpoints
from raybo.job.reports import checkpoint, report, saving

try:
    import xgboost
except ImportError:
    raise MissingExtra(f"reports of XGBoost need xgboost: {install_command('xgboost')}") from None

BOOSTER = "booster.ubj"  # in a checkpoint


class Report(xgboost.callback.TrainingCallback):
    """Reports a metric of the evaluation sets as a step of the trial, and saves the booster with it.

    In an objective::

        xgboost.train(config, train, evals=[(test, "test")], callbacks=[Report("test", "logloss")], **going_on(400))

    Outside a trial it does nothing. If the trial has to end, `raybo.TrialPruned` is raised from within the training.

    Args:
        data: the evaluation set, as `evals` calls it.
        metric: as `eval_metric` calls it.
        name: the name to report it under, that of the objective's metric; by default the same as `metric`.
        every: how many rounds make a step.
        save: whether the booster is saved with each report, for `going_on`.
    Raises:
        ObjectiveError: `every` is not a whole number from 1; or, during training, there is no such set or metric.
    Example:
        >>> import xgboost
        >>> from raybo.integrations.xgboost import Report, going_on
        >>> data = xgboost.DMatrix([[0.0], [1.0], [2.0], [3.0]], label=[0, 0, 1, 1])
        >>> settings = {"objective": "binary:logistic", "verbosity": 0, "nthread": 1}
        >>> report = Report("train", "logloss", name="loss")
        >>> evals = [(data, "train")]
        >>> model = xgboost.train(settings, data, evals=evals, verbose_eval=False, callbacks=[report], **going_on(5))
        >>> model.num_boosted_rounds()
        5
    """

    def __init__(self, data: str, metric: str, *, name: str | None = None, every: int = 1, save: bool = True) -> None:
        super().__init__()
        self.data, self.metric, self.name = data, metric, metric if name is None else name
        self.every, self.save = whole_number(every, "Report: every", error=ObjectiveError), save

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Called after a round; returns False, as it never stops the training in XGBoost's own way."""
        rounds = model.num_boosted_rounds()  # those of the checkpoint too, which epoch does not count
        if rounds % self.every:
            return False
        if self.data not in evals_log:
            raise ObjectiveError(f"Report: evals has no set {self.data!r}{nearest(self.data, list(evals_log))}")
        found = evals_log[self.data]
        if self.metric not in found:
            raise ObjectiveError(f"Report: eval_metric has no {self.metric!r}{nearest(self.metric, list(found))}")
        last = found[self.metric][-1]
        if self.save and keeps_checkpoints():
            with saving() as directory:
                model.save_model(directory / BOOSTER)
        report({self.name: float(last[0] if isinstance(last, tuple) else last)}, step=rounds // self.every)
        return False


def going_on(rounds: int) -> dict[str, Any]:
    """Arguments with which `xgboost.train` continues from the trial's checkpoint, up to `rounds` rounds in total.

    Args:
        rounds: how many rounds a complete training has.
    Raises:
        ObjectiveError: `rounds` is not a whole number from 0.
    Example:
        >>> from raybo.integrations.xgboost import going_on
        >>> going_on(400)  # where there is no checkpoint
        {'num_boost_round': 400, 'xgb_model': None}
    """
    total = whole_number(rounds, "going_on: rounds", at_least=0, error=ObjectiveError)
    booster = booster_kept()
    done = 0 if booster is None else booster.num_boosted_rounds()
    return {"num_boost_round": max(0, total - done), "xgb_model": booster}


def booster_kept() -> Any:
    """The booster of this trial's last checkpoint; None if it starts from scratch."""
    kept: Path | None = checkpoint()
    return None if kept is None else xgboost.Booster(model_file=kept / BOOSTER)
