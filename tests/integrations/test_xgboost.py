"""XGBoost's callback reports and saves checkpoints, from which training resumes."""

from __future__ import annotations

import numpy as np
import pytest
import xgboost

import raybo
from raybo.integrations.xgboost import Report, going_on
from raybo.job.reports import reports_sent_to
from tests.integrations.listener import Listener

PARAMETERS = {"eta": 0.3, "max_depth": 3, "nthread": 1, "seed": 0, "eval_metric": ["rmse", "mae"]}


def train(rounds, callback, **more):
    rng = np.random.default_rng(0)
    X = rng.random((80, 3))
    data = xgboost.DMatrix(X, X @ [1.0, 2.0, -1.0] + 0.1 * rng.standard_normal(80))
    log = {}
    xgboost.train(
        PARAMETERS,
        data,
        evals=[(data, "train")],
        evals_result=log,
        verbose_eval=False,
        callbacks=[callback],
        **{"num_boost_round": rounds, **more},
    )
    return log["train"] if log else {}


def test_every_so_many_rounds_are_a_step(tmp_path):
    listener = Listener(tmp_path)
    with reports_sent_to(listener):
        log = train(11, Report("train", "mae", name="error", every=5))
    assert listener.reports == {1: {"error": log["mae"][4]}, 2: {"error": log["mae"][9]}}


def test_resumed_boosting_has_the_same_curve(tmp_path):
    whole, lost = Listener(tmp_path / "a"), Listener(tmp_path / "b", die_at=4)
    for listener in (whole, lost):
        listener.directory.mkdir()
    with reports_sent_to(whole):
        train(12, Report("train", "rmse", every=2), **going_on(12))
    with reports_sent_to(lost):
        with pytest.raises(KeyboardInterrupt):
            train(12, Report("train", "rmse", every=2), **going_on(12))
        assert list(lost.reports) == [1, 2, 3]
        rest = going_on(12)
        assert rest["num_boost_round"] == 6
        train(12, Report("train", "rmse", every=2), **rest)
        assert going_on(12)["num_boost_round"] == 0
    assert list(lost.reports) == [1, 2, 3, 4, 5, 6]
    for step, metrics in whole.reports.items():
        assert lost.reports[step]["rmse"] == pytest.approx(metrics["rmse"], rel=1e-5)


def test_a_pruned_trial_leaves_the_training(tmp_path):
    listener = Listener(tmp_path, prune_at=2)
    with reports_sent_to(listener), pytest.raises(raybo.TrialPruned):
        train(9, Report("train", "rmse", save=False))
    assert list(listener.reports) == [1, 2]
    assert listener.last is None


def test_outside_a_trial_it_does_nothing():
    assert len(train(3, Report("train", "rmse"), **going_on(3))["rmse"]) == 3


def test_what_is_not_there_is_named():
    with pytest.raises(raybo.ObjectiveError, match=r"evals has no set 'trian'; did you mean 'train'"):
        train(1, Report("trian", "rmse"))
    with pytest.raises(raybo.ObjectiveError, match=r"eval_metric has no 'auc'"):
        train(1, Report("train", "auc"))
    with pytest.raises(raybo.ObjectiveError, match="every must be a whole number from 1, got 0"):
        Report("train", "rmse", every=0)
