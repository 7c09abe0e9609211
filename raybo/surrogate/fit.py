"""Maximum a posteriori hyperparameters by L-BFGS-B from a few starts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from raybo.common.errors import NumericalError
from raybo.surrogate.kernels import Array
from raybo.surrogate.likelihood import Likelihood
from raybo.surrogate.model import Model
from raybo.surrogate.observations import Observations

IMPOSSIBLE = 1e10  # nats lost if the covariance cannot be factorised
FLAT = 1e-2  # nats for a factor of e in a hyperparameter: a slope below it is none
TOLERANCE = 1e-3  # nats; a climb ends when a step gains less
ITERATIONS = 100  # of L-BFGS-B from each start, at most
FITTED_POINTS = 500  # above this many the hyperparameters are those of a subset; predictions always use all points


def fit_map(
    observations: Observations, model: Model, starts: Sequence[Array] = (), *, at_most: int = FITTED_POINTS
) -> Array:  # (p,)
    """Return the theta that maximises log likelihood plus log prior within the model's bounds.

    Args:
        observations: at least one.
        model: kernel, mean, priors and ranges.
        starts: values of theta to start from, the last fit's first; the model's own if there are none.
        at_most: fit to a subset of so many points if there are more, see `Observations.thinned`.
    Raises:
        NumericalError: the likelihood is not finite at any start.
    """
    d = observations.X.shape[1]
    points = starts or [model.start(d)]
    if not model.free(d).any():
        bounds = model.bounds(d)
        return np.clip(points[0], bounds[:, 0], bounds[:, 1])
    return most_likely(Likelihood(observations.thinned(at_most), model), points)[0]


def most_likely(likelihood: Likelihood, starts: Sequence[Array]) -> tuple[Array, float]:  # (p,)
    """Return the highest of the local maxima of the log posterior above the starts, and its value there.

    Raises:
        NumericalError: the likelihood is not finite at any start.
    """
    bounds, free = likelihood.model.bounds(likelihood.d), likelihood.model.free(likelihood.d)
    points = [np.clip(start, bounds[:, 0], bounds[:, 1]) for start in starts]
    ends = [_climb(likelihood, point, bounds, free) for point in points]
    best, highest = max(ends, key=lambda end: end[1])
    if not math.isfinite(highest):
        raise NumericalError(f"the likelihood of {likelihood.n} points is not finite at any start")
    return best, highest


def _climb(likelihood: Likelihood, start: Array, bounds: Array, free: NDArray[np.bool_]) -> tuple[Array, float]:
    """Return the local maximum above a start, and the log posterior there."""
    ascent = _Ascent(likelihood, start.copy(), free)
    found = minimize(
        ascent,
        start[free],
        jac=True,
        method="L-BFGS-B",
        bounds=bounds[free],
        callback=ascent.stop_when_flat,
        options={"maxiter": ITERATIONS, "ftol": 0.0, "gtol": FLAT},
    )
    ascent.theta[free] = found.x
    reached = -float(found.fun)
    return ascent.theta, reached if reached > -IMPOSSIBLE else -math.inf


class _Ascent:
    """The function that is minimised, and its tolerances."""

    def __init__(self, likelihood: Likelihood, theta: Array, free: NDArray[np.bool_]) -> None:
        self.likelihood, self.theta, self.free, self.lowest = likelihood, theta, free, math.inf

    def __call__(self, u: Array) -> tuple[float, Array]:
        self.theta[self.free] = u
        value, gradient = self.likelihood.log_posterior(self.theta)
        if not math.isfinite(value):
            return IMPOSSIBLE, np.zeros_like(u)
        return -value, -gradient[self.free]

    def stop_when_flat(self, intermediate_result: OptimizeResult) -> None:
        """Stop after a step that gained little; the minimiser's own test is relative to the value."""
        gained = self.lowest - intermediate_result.fun
        self.lowest = intermediate_result.fun
        if gained < TOLERANCE:
            raise StopIteration
