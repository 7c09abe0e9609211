"""LightGBM that reports as it boosts: a callback, and how a trial continues with the trees that it already has."""

from __future__ import annotations

from typing import Any

from raybo.common.arguments import whole_number
from raybo.common.errors import MissingExtra, ObjectiveError, install_command
from raybo.common.messages import nearest
from raybo.integrations.trainer_reports import keeps_checkpoints
from raybo.job.reports import checkpoint, report, saving

try:
    import lightgbm
except ImportError:
    raise MissingExtra(f"reports of LightGBM need lightgbm: {install_command('lightgbm')}") from None

BOOSTER = "booster.txt"  # in a checkpoint
BEFORE_EARLY_STOPPING = 25  # LightGBM calls its own in this order: 10 log, 20 record, 30 early stopping


class Report:
    """Reports a metric of the validation sets as a step of the trial, and saves the booster with it.

    In an objective::

        lightgbm.train(
            config, train, valid_sets=[test], valid_names=["test"], callbacks=[Report("test", "auc")], **going_on(400)
        )

    Outside a trial it does nothing. If the trial has to end, `raybo.TrialPruned` is raised from within the training.

    Args:
        data: the validation set, as `valid_names` calls it.
        metric: as LightGBM prints it, `binary_logloss` for instance.
        name: the name to report it under, that of the objective's metric; by default the same as `metric`.
        every: how many rounds make a step.
        save: whether the booster is saved with each report but that of the last round, for `going_on`.
    Raises:
        ObjectiveError: `every` is not a whole number from 1; or, during training, there is no such set or metric.
    Example:
        >>> import lightgbm
        >>> import numpy as np
        >>> from raybo.integrations.lightgbm import Report, going_on
        >>> settings = {"objective": "binary", "min_data_in_leaf": 1, "verbosity": -1, "num_threads": 1}
        >>> data = lightgbm.Dataset(np.arange(4.0)[:, None], label=[0, 0, 1, 1], params=settings)
        >>> report = Report("train", "binary_logloss", name="loss")
        >>> model = lightgbm.train(
        ...     settings, data, valid_sets=[data], valid_names=["train"], callbacks=[report], **going_on(5)
        ... )
        >>> model.current_iteration()
        5
    """

    before_iteration = False
    order = BEFORE_EARLY_STOPPING

    def __init__(self, data: str, metric: str, *, name: str | None = None, every: int = 1, save: bool = True) -> None:
        self.data, self.metric, self.name = data, metric, metric if name is None else name
        self.every, self.save = whole_number(every, "Report: every", error=ObjectiveError), save

    def __call__(self, env: Any) -> None:
        """Called by LightGBM after a round."""
        rounds = env.iteration + 1  # those of the checkpoint too
        if rounds % self.every:
            return
        found = {(each[0], each[1]): each[2] for each in env.evaluation_result_list}
        sets = sorted({data for data, _ in found})
        if self.data not in sets:
            raise ObjectiveError(f"Report: valid_names has no {self.data!r}{nearest(self.data, sets)}")
        metrics = [metric for data, metric in found if data == self.data]
        if self.metric not in metrics:
            raise ObjectiveError(f"Report: no metric is called {self.metric!r}{nearest(self.metric, metrics)}")
        if self.save and rounds < env.end_iteration and keeps_checkpoints():  # LightGBM refuses to train no round more
            with saving() as directory:
                env.model.save_model(directory / BOOSTER, num_iteration=-1)
        report({self.name: float(found[self.data, self.metric])}, step=rounds // self.every)


def going_on(rounds: int) -> dict[str, Any]:
    """Return arguments with which `lightgbm.train` continues from the trial's checkpoint, up to `rounds` rounds in all.

    Args:
        rounds: how many rounds a complete training has.
    Raises:
        ObjectiveError: `rounds` is not a whole number from 1.
    Example:
        >>> from raybo.integrations.lightgbm import going_on
        >>> going_on(400)  # if there is no checkpoint
        {'num_boost_round': 400, 'init_model': None}
    """
    total = whole_number(rounds, "going_on: rounds", error=ObjectiveError)
    kept = checkpoint()
    if kept is None:
        return {"num_boost_round": total, "init_model": None}
    booster = lightgbm.Booster(model_file=kept / BOOSTER)
    return {"num_boost_round": max(1, total - booster.current_iteration()), "init_model": booster}
