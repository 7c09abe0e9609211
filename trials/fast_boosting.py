"""Gradient boosting on breast-cancer diagnoses that should be accurate, and quick to predict.

    raybo tune trials/fast_boosting.py --trials 60

Two goals at once: accuracy, cross-validated on the 569 cases that scikit-learn brings along, and the time in which the
model predicts all of them. Many deep trees are accurate and slow, a few stumps are quick; the front shows what a
millisecond costs. One evaluation takes 0.1 to 2 s on one core.
"""

from __future__ import annotations

import time
from typing import Any

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

import raybo

REPEATS = 9  # predictions, of which the quickest counts: others were disturbed


@raybo.objective(
    space={
        "n_estimators": raybo.Integer(2, 400, log=True),
        "max_depth": raybo.Integer(1, 8),
        "learning_rate": raybo.Float(0.01, 1.0, log=True),
        "subsample": raybo.Float(0.3, 1.0),
        "max_features": raybo.Categorical(["sqrt", "log2", "all"]),
    },
    metrics={"accuracy": "max", "milliseconds": "min"},
)
def fast_boosting(config: dict[str, Any], *, folds: int = 3) -> dict[str, float]:
    """Mean accuracy over stratified folds, and the processor time of one prediction of all cases."""
    X, y = load_breast_cancer(return_X_y=True)
    features = None if config["max_features"] == "all" else config["max_features"]
    model = GradientBoostingClassifier(**{**config, "max_features": features}, random_state=0)
    scores = cross_val_score(model, X, y, cv=StratifiedKFold(folds), scoring="accuracy", error_score="raise")
    model.fit(X, y)
    took = []
    for _ in range(REPEATS):
        begun = time.process_time()
        model.predict(X)
        took.append(time.process_time() - begun)
    return {"accuracy": float(scores.mean()), "milliseconds": 1_000.0 * min(took)}
