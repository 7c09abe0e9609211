"""XGBoost that reports as it boosts: a callback, and how a trial goes on with the trees that it had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raybo.error_text import nearest
from raybo.errors import MissingExtra, ObjectiveError
from raybo.reports import checkpoint, report, saving

try:
    import xgboost
except ImportError:
    raise MissingExtra("reports of XGBoost need xgboost: pip install 'raybo[xgboost]'") from None

BOOSTER = "booster.ubj"  # in a checkpoint


class Report(xgboost.callback.TrainingCallback):
    """Reports a metric of the evaluation sets as a step of the trial, and saves the booster with it.

    In an objective::

        xgboost.train(config, train, evals=[(test, "test")], callbacks=[Report("test", "logloss")], **going_on(400))

    Outside a trial it does nothing. Where the trial is to end, `raybo.TrialPruned` leaves the training.

    Args:
        data: the evaluation set, as `evals` calls it.
        metric: as `eval_metric` calls it.
        name: under which it is reported, the objective's metric; the same unless given.
        every: rounds that make a step.
        save: whether the booster is saved with each report, for `going_on`.
    Raises:
        ObjectiveError: `every` is not a whole number from 1; while it trains: there is no such set or metric.
    """

    def __init__(self, data: str, metric: str, *, name: str | None = None, every: int = 1, save: bool = True) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ObjectiveError(f"Report: every must be a whole number from 1, got {every!r}")
        super().__init__()
        self.data, self.metric, self.name = data, metric, metric if name is None else name
        self.every, self.save = every, save

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """After a round; False, as it never stops the training by XGBoost's own way."""
        rounds = model.num_boosted_rounds()  # those of the checkpoint too, which epoch does not count
        if rounds % self.every:
            return False
        if self.data not in evals_log:
            raise ObjectiveError(f"Report: evals has no set {self.data!r}{nearest(self.data, list(evals_log))}")
        found = evals_log[self.data]
        if self.metric not in found:
            raise ObjectiveError(f"Report: eval_metric has no {self.metric!r}{nearest(self.metric, list(found))}")
        last = found[self.metric][-1]
        if self.save:
            with saving() as directory:
                model.save_model(directory / BOOSTER)
        report({self.name: float(last[0] if isinstance(last, tuple) else last)}, step=rounds // self.every)
        return False


def going_on(rounds: int) -> dict[str, Any]:
    """What `xgboost.train` is told so that it boosts to so many rounds in all, from the trial's checkpoint on.

    Args:
        rounds: of a whole run.
    """
    booster = booster_kept()
    done = 0 if booster is None else booster.num_boosted_rounds()
    return {"num_boost_round": max(0, rounds - done), "xgb_model": booster}


def booster_kept() -> Any:
    """The booster of this trial's last checkpoint; None if it starts from scratch."""
    kept: Path | None = checkpoint()
    return None if kept is None else xgboost.Booster(model_file=kept / BOOSTER)
