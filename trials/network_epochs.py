"""A small network that tells vehicles apart, trained epoch by epoch: seven hyperparameters, accuracy after every epoch.

    raybo tune trials/network_epochs.py --scheduler curve
    raybo tune trials/network_epochs.py --scheduler asha --scheduler-option variant=promote

The space is LCBench's (Zimmer, Lindauer, Hutter 2021), with an L2 penalty in place of dropout; the data are Statlog's
vehicle silhouettes, see data/README.md. Every epoch is reported with a checkpoint, so that a trial that lost its
worker, or waited, goes on where it was. An epoch takes 2 to 60 ms on one core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

import raybo
from raybo.integrations.sklearn_steps import fit_in_steps

VEHICLE = Path(__file__).parent / "data" / "vehicle.csv"

space = raybo.Space(
    {
        "batch_size": raybo.Integer(16, 512, log=True),
        "learning_rate": raybo.Float(1e-4, 1e-1, log=True),
        "momentum": raybo.Float(0.1, 0.99),
        "alpha": raybo.Float(1e-5, 1e-1, log=True),  # L2 penalty
        "layers": raybo.Integer(1, 3),
        "units": raybo.Integer(8, 128, log=True),
        "activation": raybo.Categorical(["relu", "tanh"]),
    }
)


@raybo.objective(space=space, metric="accuracy", mode="max", num_cpus=1, steps=lambda epochs=52: epochs)
def network_epochs(config: dict[str, Any], *, epochs: int = 52) -> Iterator[Mapping[str, float]]:
    """Accuracy on a stratified third after every epoch; the same configuration always has the same curve."""
    X_train, X_test, y_train, y_test = split()
    yield from fit_in_steps(
        network(config), X_train, y_train, epochs, lambda model: {"accuracy": float(model.score(X_test, y_test))}
    )


def network(config: dict[str, Any]) -> MLPClassifier:
    """Not trained yet."""
    return MLPClassifier(
        hidden_layer_sizes=(config["units"],) * config["layers"],
        activation=config["activation"],
        solver="sgd",
        batch_size=config["batch_size"],
        learning_rate_init=config["learning_rate"],
        momentum=config["momentum"],
        alpha=config["alpha"],
        random_state=0,
    )


def split() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.str_], NDArray[np.str_]]:
    """Features, scaled by those of the training rows, and classes: two thirds to train, one to test."""
    table = np.loadtxt(VEHICLE, dtype=str, delimiter=",", skiprows=1)
    X, y = table[:, :-1].astype(np.float64), table[:, -1]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=1)
    scaler = StandardScaler().fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test), y_train, y_test
