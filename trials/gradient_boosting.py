"""Gradient boosting on breast-cancer diagnoses: eleven hyperparameters, cross-validated accuracy.

    raybo tune trials/gradient_boosting.py

The AutoML task of Kim, Liu and Chen (UAI 2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search
Sufficient?", on the 569 diagnostic cases that scikit-learn brings along (Wolberg, Mangasarian and Street, UCI).
One evaluation takes 0.1 to 0.7 s on one core.
"""

from __future__ import annotations

from typing import Any

import sklearn
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

import raybo

# the paper's open intervals (0, 1) and (0, 0.5) are closed a thousandth inside
space = raybo.Space(
    {
        "loss": raybo.Categorical(["log_loss", "exponential"]),
        "learning_rate": raybo.Float(0.001, 0.999),
        "n_estimators": raybo.Integer(20, 200),
        "subsample": raybo.Float(0.001, 0.999),
        "criterion": raybo.Categorical(["friedman_mse", "squared_error"]),  # without effect from scikit-learn 1.9 on
        "min_samples_split": raybo.Integer(2, 10),
        "min_samples_leaf": raybo.Integer(1, 10),
        "min_weight_fraction_leaf": raybo.Float(0.0005, 0.4995),
        "max_depth": raybo.Integer(1, 10),
        "max_features": raybo.Categorical(["sqrt", "log2"]),
        "max_leaf_nodes": raybo.Integer(2, 10),
    }
)


@raybo.objective(space=space, metric="accuracy", mode="max", num_cpus=1)
def gradient_boosting(config: dict[str, Any], *, folds: int = 5) -> dict[str, float]:
    """Mean accuracy over stratified folds; the same configuration always scores the same."""
    X, y = load_breast_cancer(return_X_y=True)
    parameters = dict(config)
    if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9):
        del parameters["criterion"]  # deprecated and ignored there; the space keeps it, to stay the paper's
    model = GradientBoostingClassifier(**parameters, random_state=0)
    # no shuffling: the folds are those of the rows' order
    scores = cross_val_score(model, X, y, cv=StratifiedKFold(folds), scoring="accuracy", error_score="raise")
    return {"accuracy": float(scores.mean())}
