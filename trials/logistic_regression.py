"""Logistic regression that tells vehicles by their silhouettes: two hyperparameters, accuracy on a held-out third.

    raybo tune trials/logistic_regression.py
    raybo tune trials/logistic_regression.py --set epochs=1000 --set data=my_silhouettes.csv

The space is that of HPOBench's LRBenchmark (Eggensperger et al., NeurIPS 2021), which runs 1000 epochs; the data are
Statlog's vehicle silhouettes (Siebert 1987), see data/README.md. One evaluation takes about 0.05 s on one core.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import raybo

VEHICLE = Path(__file__).parent / "data" / "vehicle.csv"
FEATURES = [
    *("COMPACTNESS", "CIRCULARITY", "DISTANCE_CIRCULARITY", "RADIUS_RATIO", "PR.AXIS_ASPECT_RATIO"),
    *("MAX.LENGTH_ASPECT_RATIO", "SCATTER_RATIO", "ELONGATEDNESS", "PR.AXIS_RECTANGULARITY"),
    *("MAX.LENGTH_RECTANGULARITY", "SCALED_VARIANCE_MAJOR", "SCALED_VARIANCE_MINOR", "SCALED_RADIUS_OF_GYRATION"),
    *("SKEWNESS_ABOUT_MAJOR", "SKEWNESS_ABOUT_MINOR", "KURTOSIS_ABOUT_MAJOR", "KURTOSIS_ABOUT_MINOR", "HOLLOWS_RATIO"),
]

space = raybo.Space(
    {
        "alpha": raybo.Float(1e-5, 1.0, log=True),  # weight of the L2 penalty
        "eta0": raybo.Float(1e-5, 1.0, log=True),  # learning rate
    }
)


@raybo.objective(space=space, metric="accuracy", mode="max", num_cpus=1)
def logistic_regression(config: dict[str, Any], *, epochs: int = 200, data: Path = VEHICLE) -> dict[str, float]:
    """Accuracy on a stratified third of the rows; the same configuration always scores the same."""
    X, y = load(data)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=1)
    # without a tolerance "adaptive" never lowers the rate, and every epoch is run
    classifier = SGDClassifier(
        **config, loss="log_loss", learning_rate="adaptive", max_iter=epochs, tol=None, n_jobs=1, random_state=0
    )
    model = make_pipeline(StandardScaler(), classifier).fit(X_train, y_train)
    return {"accuracy": float(model.score(X_test, y_test))}


def load(path: Path) -> tuple[NDArray[np.float64], NDArray[np.str_]]:  # (n, 18), (n,)
    """Features and classes of a CSV with the columns of the shipped one, in any order."""
    table = np.loadtxt(path, dtype=str, delimiter=",", ndmin=2)
    header, rows = table[0].tolist(), table[1:]
    columns, wanted = set(header), {*FEATURES, "target"}
    if columns != wanted:
        differing = f"missing {sorted(wanted - columns)}, unknown {sorted(columns - wanted)}"
        raise ValueError(f"{path}: its columns must be those of {VEHICLE.name}; {differing}")
    return rows[:, [header.index(name) for name in FEATURES]].astype(np.float64), rows[:, header.index("target")]
