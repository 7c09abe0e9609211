"""The AutoML task: its eleven parameters, and accuracies computed independently from the published table of maps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn
from scipy.stats import qmc
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

from trials.gradient_boosting import gradient_boosting

# the accuracies were computed with scikit-learn 1.9.1
TOLERANCE = 1e-9 if sklearn.__version__.startswith("1.9.") else 0.01


def table_map(u: np.ndarray) -> dict[str, object]:
    """A configuration from a point of the cube, by the maps that the accuracies below were computed with."""

    def inside(v: float) -> float:
        return float(np.clip(v, 1e-3, 1 - 1e-3))

    def whole(low: int, high: int, v: float) -> int:
        return math.floor(low + (high - low) * v + 0.5)

    return {
        "loss": "log_loss" if u[0] < 0.5 else "exponential",
        "learning_rate": inside(u[1]),
        "n_estimators": whole(20, 200, u[2]),
        "subsample": inside(u[3]),
        "criterion": "friedman_mse" if u[4] < 0.5 else "squared_error",
        "min_samples_split": whole(2, 10, u[5]),
        "min_samples_leaf": whole(1, 10, u[6]),
        "min_weight_fraction_leaf": 0.5 * inside(u[7]),
        "max_depth": whole(1, 10, u[8]),
        "max_features": "sqrt" if u[9] < 0.5 else "log2",
        "max_leaf_nodes": whole(2, 10, u[10]),
    }


def accuracy(u: np.ndarray) -> float:
    config = gradient_boosting.space.accept(table_map(u))  # which must fit the space, ends included
    return gradient_boosting(config)["accuracy"]


def test_space_has_the_table_s_parameters_and_ends():
    assert list(gradient_boosting.space.names) == list(table_map(np.zeros(11)))
    low, high = gradient_boosting.space.decode(np.stack([np.zeros(11), np.ones(11)]))
    assert low == pytest.approx(table_map(np.zeros(11)), abs=1e-12)
    assert high == pytest.approx(table_map(np.ones(11)), abs=1e-12)


@pytest.mark.parametrize(
    ("u", "expected"),
    [(0.0, 0.627418102779), (0.25, 0.968390001553), (0.5, 0.966604564509), (1.0, 0.867768979972)],
)
def test_accuracy_on_the_diagonal(u, expected):
    assert accuracy(np.full(11, u)) == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        pytest.param(DummyClassifier(), 0.627418102779, id="majority"),
        pytest.param(GradientBoostingClassifier(random_state=0), 0.963126843658, id="default", marks=pytest.mark.slow),
    ],
)
def test_folds_and_rows_are_those_of_the_table(model, expected):
    X, y = load_breast_cancer(return_X_y=True)
    assert cross_val_score(model, X, y, cv=StratifiedKFold(5)).mean() == pytest.approx(expected, abs=TOLERANCE)


def test_folds_are_a_keyword():
    config = table_map(np.full(11, 0.25))
    X, y = load_breast_cancer(return_X_y=True)
    parameters = {name: value for name, value in config.items() if name != "criterion"}
    model = GradientBoostingClassifier(**parameters, random_state=0)
    three = cross_val_score(model, X, y, cv=StratifiedKFold(3)).mean()
    assert gradient_boosting.with_settings(folds="3")(config) == {"accuracy": pytest.approx(three, abs=TOLERANCE)}


@pytest.mark.slow
@pytest.mark.timeout(900)  # it computes for minutes where processors are slow and shared
def test_accuracy_over_a_sobol_sample():
    sample = qmc.Sobol(11, scramble=True, seed=0).random(64)
    accuracies = np.array([accuracy(u) for u in sample])
    assert accuracies.mean() == pytest.approx(0.917, abs=0.01)
    assert accuracies.max() == pytest.approx(0.9737, abs=0.003)
    assert (accuracies < 0.70).mean() == pytest.approx(0.08, abs=0.02)
