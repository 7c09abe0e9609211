"""The training jobs on the shipped data: what they return, how they split, and what they refuse."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

import raybo
from trials.logistic_regression import logistic_regression
from trials.random_forest import random_forest
from trials.xgboost_credit import xgboost_credit
from trials.xgboost_defects import xgboost_defects

DATA = Path(__file__).parents[2] / "trials" / "data"
BOOSTER = {"eta": 0.3, "max_depth": 10, "colsample_bytree": 1.0, "reg_lambda": 1.0}
FOREST = {"max_depth": 10, "min_samples_split": 32, "max_features": 0.5, "min_samples_leaf": 1}


class Job(NamedTuple):
    objective: raybo.Objective
    config: dict[str, float]  # HPOBench's default
    data: str
    rows: int
    majority: float  # share of the largest class


JOBS = [
    Job(logistic_regression, {"alpha": 1e-3, "eta0": 1e-2}, "vehicle.csv", 846, 0.258),
    Job(random_forest, FOREST, "wilt.csv", 4839, 0.946),
    Job(xgboost_credit, BOOSTER, "australian.csv", 690, 0.555),
    Job(xgboost_defects, BOOSTER, "kc1.csv", 2109, 0.845),
]


@pytest.fixture(params=JOBS, ids=[job.data for job in JOBS])
def job(request: pytest.FixtureRequest) -> Job:
    return request.param


def test_default_configuration_beats_the_largest_class(job):
    result = job.objective(job.objective.space.accept(job.config))
    assert list(result) == ["accuracy"]
    assert type(result["accuracy"]) is float
    assert job.majority < result["accuracy"] < 1.0
    right = result["accuracy"] * math.ceil(job.rows / 3)  # rows of the held-out third
    assert right == pytest.approx(round(right), abs=1e-9)


def test_same_configuration_scores_the_same_and_another_differs(job):
    other = {**job.config, **{name: 1 for name in ("max_depth", "eta0") if name in job.config}}
    assert job.objective(job.config) == job.objective(job.config) != job.objective(other)


def test_scaling_uses_training_rows_only(job, monkeypatch):
    table = np.loadtxt(DATA / job.data, dtype=str, delimiter=",")[1:]
    train, _ = train_test_split(table, test_size=1 / 3, stratify=table[:, -1], random_state=1)
    seen = []
    original = StandardScaler.fit

    def fit(self, X, *args, **kwargs):
        seen.append(X[:, -1])  # a number in all four
        return original(self, X, *args, **kwargs)

    monkeypatch.setattr(StandardScaler, "fit", fit)
    job.objective(job.config)
    assert len(seen) == 1
    assert seen[0].tolist() == train[:, -2].astype(float).tolist()


BOOSTED = BOOSTER | {"n_estimators": 200, "n_jobs": 1, "random_state": 0, "booster": None, "subsample": None}
GROWN = FOREST | {"max_features": 2, "n_estimators": 100, "bootstrap": True, "n_jobs": 1, "random_state": 0}  # 5**0.5
DESCENT = {"loss": "log_loss", "penalty": "l2", "learning_rate": "adaptive", "max_iter": 200, "tol": None, "n_jobs": 1}


@pytest.mark.parametrize(
    ("objective", "config", "model", "expected"),
    [
        (logistic_regression, JOBS[0].config, SGDClassifier, JOBS[0].config | DESCENT | {"random_state": 0}),
        (random_forest, FOREST, RandomForestClassifier, GROWN),
        (xgboost_credit, BOOSTER, XGBClassifier, BOOSTED),
        (xgboost_defects, BOOSTER, XGBClassifier, BOOSTED),
    ],
)
def test_models_combine_configuration_and_fixed_parts(objective, config, model, expected, monkeypatch):
    seen = []
    original = model.fit

    def fit(self, *args, **kwargs):
        seen.append(self.get_params())
        return original(self, *args, **kwargs)

    monkeypatch.setattr(model, "fit", fit)
    objective(config)
    assert len(seen) == 1
    assert {name: seen[0][name] for name in expected} == expected


def test_corners_of_the_space_can_be_run(job):
    effort = "epochs" if job.objective.name == "logistic_regression" else "trees"
    cheap = job.objective.with_settings(**{effort: "5"})
    for config in cheap.space.decode(np.stack([np.zeros(cheap.space.d), np.ones(cheap.space.d)])):
        assert 0.0 < cheap(config)["accuracy"] < 1.0


def test_data_columns_may_be_reordered(job, tmp_path):
    table = np.loadtxt(DATA / job.data, dtype=str, delimiter=",")
    np.savetxt(tmp_path / "mine.csv", table[:, ::-1], fmt="%s", delimiter=",")
    mine = job.objective.with_settings(data=str(tmp_path / "mine.csv"))
    assert mine(job.config) == job.objective(job.config)


def test_data_with_unknown_columns_are_refused(job, tmp_path):
    header, body = (DATA / job.data).read_text(encoding="ascii").split("\n", 1)
    first, rest = header.split(",", 1)
    wrong = tmp_path / "mine.csv"
    wrong.write_text(f"first_one,{rest}\n{body}", encoding="ascii")
    with pytest.raises(ValueError, match="columns") as caught:
        job.objective(job.config, data=wrong)
    differing = f"missing ['{first}'], unknown ['first_one']"
    assert str(caught.value) == f"{wrong}: its columns must be those of {job.data}; {differing}"


def test_accuracy_is_maximised_on_one_processor(job):
    assert (job.objective.metric, job.objective.mode, job.objective.num_cpus) == ("accuracy", "max", 1)


def test_spaces_are_hpobench_s():
    assert logistic_regression.space == raybo.Space(
        {"alpha": raybo.Float(1e-5, 1, log=True), "eta0": raybo.Float(1e-5, 1, log=True)}
    )
    assert random_forest.space == raybo.Space(
        {
            "max_depth": raybo.Integer(1, 50, log=True),
            "min_samples_split": raybo.Integer(2, 128, log=True),
            "max_features": raybo.Float(0, 1),
            "min_samples_leaf": raybo.Integer(1, 20),
        }
    )
    boosters = raybo.Space(
        {
            "eta": raybo.Float(1 / 1024, 1, log=True),
            "max_depth": raybo.Integer(1, 50, log=True),
            "colsample_bytree": raybo.Float(0.1, 1),
            "reg_lambda": raybo.Float(1 / 1024, 1024, log=True),
        }
    )
    assert xgboost_credit.space == xgboost_defects.space == boosters
