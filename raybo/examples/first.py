"""A job for a first study, of some milliseconds a trial: `raybo tune -m raybo.examples.first`.

Kernel ridge regression of a noisy function of three variables, one of which means nothing, by cross-validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import raybo


@raybo.objective(
    space={
        "kernel": raybo.Categorical(["gaussian", "laplace"]),
        "penalty": raybo.Float(1e-6, 10.0, log=True),
        "width": {name: raybo.Float(0.05, 20.0, log=True) for name in ("x", "y", "z")},
    },
    metric="rmse",
    mode="min",
)
def job(config: Mapping[str, Any], *, rows: int = 150, folds: int = 5) -> dict[str, float]:
    """Return the root mean squared error of predictions of rows that were left out."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (rows, 3))
    values = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=rows)
    scaled = X / np.array([config["width"][name] for name in ("x", "y", "z")])
    apart = np.abs(scaled[:, None, :] - scaled[None, :, :])
    is_gaussian = config["kernel"] == "gaussian"
    kernel = np.exp(-0.5 * np.square(apart).sum(axis=2)) if is_gaussian else np.exp(-apart.sum(axis=2))
    errors = np.empty(rows)
    for fold in range(folds):
        out = np.arange(rows) % folds == fold
        mean = values[~out].mean()
        penalised = kernel[np.ix_(~out, ~out)] + config["penalty"] * np.eye(int((~out).sum()))
        weights = np.linalg.solve(penalised, values[~out] - mean)
        errors[out] = mean + kernel[np.ix_(out, ~out)] @ weights - values[out]
    return {"rmse": float(np.sqrt(np.square(errors).mean()))}
