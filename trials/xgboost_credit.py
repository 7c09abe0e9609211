"""XGBoost that decides on credit applications: four hyperparameters, accuracy on a held-out third.

    raybo tune trials/xgboost_credit.py
    raybo tune trials/xgboost_credit.py --set trees=2000 --set data=my_applications.csv

The space is that of HPOBench's XGBoostBenchmark (Eggensperger et al., NeurIPS 2021), which has 2000 trees; the data are
Statlog's Australian credit approval, see data/README.md. One evaluation takes 0.03 to 0.15 s on one core.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from xgboost import XGBClassifier

import raybo

AUSTRALIAN = Path(__file__).parent / "data" / "australian.csv"
FEATURES = [f"A{i}" for i in range(1, 15)]
CODES = [FEATURES.index(name) for name in ("A1", "A4", "A5", "A6", "A8", "A9", "A11", "A12")]  # categories as integers

space = raybo.Space(
    {
        "eta": raybo.Float(2**-10, 1.0, log=True),  # learning rate
        "max_depth": raybo.Integer(1, 50, log=True),
        "colsample_bytree": raybo.Float(0.1, 1.0),
        "reg_lambda": raybo.Float(2**-10, 2**10, log=True),
    }
)


@raybo.objective(space=space, metric="accuracy", mode="max", num_cpus=1)
def xgboost_credit(config: dict[str, Any], *, trees: int = 200, data: Path = AUSTRALIAN) -> dict[str, float]:
    """Accuracy on a stratified third of the rows; the same configuration always scores the same."""
    X, classes = load(data)
    y = np.unique(classes, return_inverse=True)[1]  # XGBoost wants numbers
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=1)
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), CODES), remainder=StandardScaler()
    )
    booster = XGBClassifier(**config, n_estimators=trees, n_jobs=1, random_state=0)
    model = make_pipeline(columns, booster).fit(X_train, y_train)
    return {"accuracy": float(model.score(X_test, y_test))}


def load(path: Path) -> tuple[NDArray[np.float64], NDArray[np.str_]]:  # (n, 14), (n,)
    """Features and classes of a CSV with the columns of the shipped one, in any order."""
    table = np.loadtxt(path, dtype=str, delimiter=",", ndmin=2)
    header, rows = table[0].tolist(), table[1:]
    columns, wanted = set(header), {*FEATURES, "target"}
    if columns != wanted:
        differing = f"missing {sorted(wanted - columns)}, unknown {sorted(columns - wanted)}"
        raise ValueError(f"{path}: its columns must be those of {AUSTRALIAN.name}; {differing}")
    return rows[:, [header.index(name) for name in FEATURES]].astype(np.float64), rows[:, header.index("target")]
