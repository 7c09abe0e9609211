"""Maximum a posteriori hyperparameters by L-BFGS-B from a few starts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from raybo.errors import NumericalError
from raybo.surrogate.kernels import Array
from raybo.surrogate.likelihood import Likelihood, Observations
from raybo.surrogate.model import Model

FITTED_POINTS = 500  # above this many the hyperparameters are those of a subset; predictions always use all points


def fit_map(
    observations: Observations,
    model: Model,
    starts: Sequence[Array] = (),
    *,
    iterations: int = 100,
) -> Array:  # (p,)
    """theta that maximises log likelihood plus log prior within the model's bounds.

    Args:
        observations: at least one.
        model: kernel, priors and ranges.
        starts: values of theta to start from, the last fit's first; the model's own where there are none.
        iterations: at most so many of L-BFGS-B from each start.
    Raises:
        NumericalError: the likelihood is not finite at any start.
    """
    d = observations.X.shape[1]
    bounds = model.bounds(d)
    likelihood = Likelihood(thinned(observations), model)
    best, best_value = None, -np.inf

    def negative(theta: Array) -> tuple[float, Array]:
        value, gradient = likelihood.log_posterior(theta)
        return (-value, -gradient) if np.isfinite(value) else (1e30, np.zeros_like(theta))

    for start in starts or (model.start(d),):
        found = minimize(
            negative,
            np.clip(start, bounds[:, 0], bounds[:, 1]),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            # a thousandth of a nat is far below what the data can tell
            options={"maxiter": iterations, "ftol": 1e-5, "gtol": 1e-3, "maxcor": 10},
        )
        if -found.fun > best_value:
            best, best_value = found.x, -found.fun
    if best is None or best_value <= -1e29:
        raise NumericalError(f"the likelihood of {len(observations.X)} points is not finite at any start")
    return np.asarray(best, dtype=np.float64)


def thinned(observations: Observations) -> Observations:
    """At most 500 of the points: the best fifth, and every so many of the rest, in order."""
    n = len(observations.X)
    if n <= FITTED_POINTS:
        return observations
    order = np.argsort(-observations.y, kind="stable")
    top = order[: FITTED_POINTS // 5]
    rest = np.sort(order[FITTED_POINTS // 5 :])
    picked = rest[np.linspace(0, len(rest) - 1, FITTED_POINTS - len(top)).astype(int)]
    keep = np.sort(np.concatenate([top, picked]))
    return Observations(
        observations.X[keep], observations.y[keep], observations.counts[keep], 0.0, observations.categorical
    )
