"""A random forest for handwritten digits that must fit into 300 kB.

    raybo tune trials/small_forest.py --trials 60

Accuracy is cross-validated on the 1,797 digits that scikit-learn brings along; the size is that of the fitted model as
it would be stored, and is only known once it has been fitted: a constraint on what a trial returns, which is learnt as
the accuracy is. One evaluation takes 0.2 to 2 s on one core.
"""

from __future__ import annotations

import pickle
from typing import Any

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

import raybo


@raybo.objective(
    space={
        "n_estimators": raybo.Integer(2, 200, log=True),
        "max_depth": raybo.Integer(2, 20),
        "min_samples_leaf": raybo.Integer(1, 20, log=True),
        "max_features": raybo.Float(0.02, 0.6, log=True),
        "bootstrap": raybo.Categorical([True, False]),
    },
    metric="accuracy",
    constraints={"kilobytes": "<= 300"},
)
def small_forest(config: dict[str, Any], *, folds: int = 3) -> dict[str, float]:
    """Mean accuracy over stratified folds, and the size of the model fitted to all digits."""
    X, y = load_digits(return_X_y=True)
    model = RandomForestClassifier(**config, random_state=0)
    scores = cross_val_score(model, X, y, cv=StratifiedKFold(folds), scoring="accuracy", error_score="raise")
    return {"accuracy": float(scores.mean()), "kilobytes": len(pickle.dumps(model.fit(X, y))) / 1_000.0}
