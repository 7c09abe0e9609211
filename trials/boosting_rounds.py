"""XGBoost that predicts defective modules, round by round: four hyperparameters, log loss every tenth round.

    raybo tune trials/boosting_rounds.py --scheduler asha
    raybo tune trials/boosting_rounds.py --scheduler curve --set rounds=2000

Space and data are those of xgboost_defects.py. The callback reports and keeps a checkpoint, so that a trial that lost
its worker goes on with the trees that it had, and columns sampled anew. 400 rounds take 0.2 to 2 s on one core.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import raybo
from raybo.integrations.xgboost import Report, going_on

KC1 = Path(__file__).parent / "data" / "kc1.csv"
EVERY = 10  # rounds

space = raybo.Space(
    {
        "eta": raybo.Float(2**-10, 1.0, log=True),  # learning rate
        "max_depth": raybo.Integer(1, 50, log=True),
        "colsample_bytree": raybo.Float(0.1, 1.0),
        "reg_lambda": raybo.Float(2**-10, 2**10, log=True),
    }
)


@raybo.objective(space=space, metric="logloss", mode="min", num_cpus=1, steps=lambda rounds=400: rounds // EVERY)
def boosting_rounds(config: dict[str, Any], *, rounds: int = 400, data: Path = KC1) -> dict[str, float]:
    """Log loss on a stratified third of the rows; the same configuration always has the same curve."""
    table = np.loadtxt(data, dtype=str, delimiter=",", skiprows=1)
    X, y = table[:, :-1].astype(np.float64), (table[:, -1] == "true").astype(int)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=1)
    train, test = xgboost.DMatrix(X_train, y_train), xgboost.DMatrix(X_test, y_test)
    booster = xgboost.train(
        {**config, "objective": "binary:logistic", "eval_metric": "logloss", "nthread": 1, "seed": 0},
        train,
        evals=[(test, "test")],
        verbose_eval=False,
        callbacks=[Report("test", "logloss", every=EVERY)],
        **going_on(rounds),
    )
    return {"logloss": float(log_loss(y_test, booster.predict(test)))}
