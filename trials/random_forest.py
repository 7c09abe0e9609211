"""A random forest that finds diseased trees in satellite images: four hyperparameters, accuracy on a held-out third.

    raybo tune trials/random_forest.py
    raybo tune trials/random_forest.py --set trees=512 --set data=my_trees.csv

The space is that of HPOBench's RandomForestBenchmark (Eggensperger et al., NeurIPS 2021), which has 512 trees; the data
are Wilt (Johnson, Tateishi and Hoan 2013), see data/README.md. One evaluation takes 0.1 to 0.5 s on one core.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import raybo

WILT = Path(__file__).parent / "data" / "wilt.csv"
FEATURES = ["GLCM_pan", "Mean_Green", "Mean_Red", "Mean_NIR", "SD_pan"]

space = raybo.Space(
    {
        "max_depth": raybo.Integer(1, 50, log=True),
        "min_samples_split": raybo.Integer(2, 128, log=True),
        "max_features": raybo.Float(0.0, 1.0),  # an exponent: the model sees round(features ** max_features)
        "min_samples_leaf": raybo.Integer(1, 20),
    }
)


@raybo.objective(space=space, metric="accuracy", mode="max", num_cpus=1)
def random_forest(config: dict[str, Any], *, trees: int = 100, data: Path = WILT) -> dict[str, float]:
    """Accuracy on a stratified third of the rows; the same configuration always scores the same."""
    X, y = load(data)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=1)
    parameters = {**config, "max_features": round(len(FEATURES) ** config["max_features"])}
    forest = RandomForestClassifier(**parameters, n_estimators=trees, n_jobs=1, random_state=0)
    model = make_pipeline(StandardScaler(), forest).fit(X_train, y_train)
    return {"accuracy": float(model.score(X_test, y_test))}


def load(path: Path) -> tuple[NDArray[np.float64], NDArray[np.str_]]:  # (n, 5), (n,)
    """Features and classes of a CSV with the columns of the shipped one, in any order."""
    table = np.loadtxt(path, dtype=str, delimiter=",", ndmin=2)
    header, rows = table[0].tolist(), table[1:]
    columns, wanted = set(header), {*FEATURES, "target"}
    if columns != wanted:
        differing = f"missing {sorted(wanted - columns)}, unknown {sorted(columns - wanted)}"
        raise ValueError(f"{path}: its columns must be those of {WILT.name}; {differing}")
    return rows[:, [header.index(name) for name in FEATURES]].astype(np.float64), rows[:, header.index("target")]
