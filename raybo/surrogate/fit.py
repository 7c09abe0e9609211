"""Maximum a posteriori hyperparameters by L-BFGS-B from a few starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from raybo.errors import NumericalError
from raybo.surrogate.kernels import Array
from raybo.surrogate.likelihood import Likelihood
from raybo.surrogate.model import Model
from raybo.surrogate.observations import Observations

IMPOSSIBLE = 1e10  # nats lost where the covariance cannot be factorised
FLAT = 1e-2  # nats for a factor of e in a hyperparameter: a slope below it is none
FITTED_POINTS = 500  # above this many the hyperparameters are those of a subset; predictions always use all points


@dataclass(frozen=True, eq=False)
class Fit:
    """Where a fit ended.

    Attributes:
        theta: (p,). log_posterior: there, up to a constant of the prior.
        evaluations: of the posterior with its gradient, over all starts.
    """

    theta: Array
    log_posterior: float
    evaluations: int


def fit_map(
    observations: Observations,
    model: Model,
    starts: Sequence[Array] = (),
    *,
    restarts: int = 0,
    rng: np.random.Generator | None = None,
    tolerance: float = 1e-3,
    iterations: int = 100,
    at_most: int = FITTED_POINTS,
) -> Array:  # (p,)
    """theta that maximises log likelihood plus log prior within the model's bounds; `maximise_posterior` says more."""
    found = maximise_posterior(
        observations,
        model,
        starts,
        restarts=restarts,
        rng=rng,
        tolerance=tolerance,
        iterations=iterations,
        at_most=at_most,
    )
    return found.theta


def maximise_posterior(
    observations: Observations,
    model: Model,
    starts: Sequence[Array] = (),
    *,
    restarts: int = 0,
    rng: np.random.Generator | None = None,
    tolerance: float = 1e-3,
    iterations: int = 100,
    at_most: int = FITTED_POINTS,
) -> Fit:
    """theta that maximises log likelihood plus log prior within the model's bounds.

    Args:
        observations: at least one.
        model: kernel, mean, priors and ranges.
        starts: values of theta to start from, the last fit's first; the model's own where there are none.
        restarts: so many starts more, the model's own with each free entry moved by a normal of sd 1.
        rng: for the restarts.
        tolerance: nats; a climb ends when a step gains less.
        iterations: at most so many of L-BFGS-B from each start.
        at_most: fit to a subset of so many points where there are more, see `Observations.thinned`.
    Raises:
        NumericalError: the likelihood is not finite at any start.
    """
    d = observations.X.shape[1]
    bounds, free = model.bounds(d), model.free(d)
    likelihood = Likelihood(observations.thinned(at_most), model)
    points = list(starts) or [model.start(d)]
    if restarts:
        if rng is None:
            raise ValueError("restarts need an rng")
        points += list(model.start(d) + rng.standard_normal((restarts, len(free))))
    best: Fit | None = None
    evaluations = 0
    for point in points:
        theta = np.clip(point, bounds[:, 0], bounds[:, 1])
        climbed = _climb(likelihood, theta, bounds, free, tolerance, iterations)
        evaluations += climbed.evaluations
        if best is None or climbed.log_posterior > best.log_posterior:
            best = climbed
    if best is None or not np.isfinite(best.log_posterior):
        raise NumericalError(f"the likelihood of {likelihood.n} points is not finite at any start")
    return Fit(best.theta, best.log_posterior, evaluations)


def _climb(
    likelihood: Likelihood, theta: Array, bounds: Array, free: NDArray[np.bool_], tolerance: float, iterations: int
) -> Fit:
    """The local maximum above theta."""
    if not free.any():
        return Fit(theta, likelihood.log_density(theta), 1)
    ascent = _Ascent(likelihood, theta.copy(), free, tolerance)
    found = minimize(
        ascent,
        theta[free],
        jac=True,
        method="L-BFGS-B",
        bounds=bounds[free],
        callback=ascent.stop_when_flat,
        options={"maxiter": iterations, "ftol": 0.0, "gtol": FLAT},
    )
    ascent.theta[free] = found.x
    reached = -float(found.fun)
    return Fit(ascent.theta, reached if reached > -IMPOSSIBLE else -math.inf, ascent.evaluations)


class _Ascent:
    """What is minimised, and when it is enough."""

    def __init__(self, likelihood: Likelihood, theta: Array, free: NDArray[np.bool_], tolerance: float) -> None:
        self.likelihood, self.theta, self.free, self.tolerance = likelihood, theta, free, tolerance
        self.evaluations, self.lowest = 0, math.inf

    def __call__(self, u: Array) -> tuple[float, Array]:
        self.theta[self.free] = u
        value, gradient = self.likelihood.log_posterior(self.theta)
        self.evaluations += 1
        if not math.isfinite(value):
            return IMPOSSIBLE, np.zeros_like(u)
        return -value, -gradient[self.free]

    def stop_when_flat(self, intermediate_result: OptimizeResult) -> None:
        """Called after every step; the minimiser's own test is relative to the value, which has no natural zero."""
        gained = self.lowest - intermediate_result.fun
        self.lowest = intermediate_result.fun
        if gained < self.tolerance:
            raise StopIteration
