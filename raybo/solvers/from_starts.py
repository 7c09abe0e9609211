"""Climbs from starts given by the caller, instead of the best of many raw candidates."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from raybo.solvers.ascent import ascend
from raybo.solvers.constrained import search_within
from raybo.solvers.domain import Array, Domain, climbable, continuous
from raybo.solvers.mixed import is_small, polish, try_all
from raybo.solvers.solution import Differentiable, Search, Solution

ROUNDS = 100  # rounds of `ascent_from`, more than a multi-start's climbs have
TOLERANCE = 1e-5  # relative tolerance of `ascent_from`, finer than a multi-start's
ITERATIONS = 200  # iterations of `joint_ascent`, at most


def ascent_from(
    starts: Array, function: Differentiable, domain: Domain, rng: np.random.Generator
) -> tuple[Solution, Array]:
    """Return the best point that climbs from the starts (k, d) reach, never worse than a start; and all ends, (k, d).

    Discrete axes are searched from the best end; a wholly discrete domain of few points is searched completely.
    """
    search = Search(function, domain)
    points, values = search.try_points(starts)
    if is_small(domain):
        try_all(search)
        return search.solution(rng), points
    axes, converged = climbable(domain), 0
    if axes.any():
        climbs = ascend(search, points, axes, rounds=ROUNDS, tolerance=TOLERANCE)
        points, values = search.settle(climbs.X, climbs.values)
        points, values = search_within(search, points, values, rng)
        converged = int(climbs.converged.sum())
    if not continuous(domain).all():
        top = [int(np.argmax(values))]
        polish(search, points[top], values[top], rng, tolerance=TOLERANCE)
    return search.solution(rng, climbs=len(starts), converged=converged), points


class Copies(Protocol):
    """A function of many variables, evaluated for independent copies at once."""

    def __call__(self, U: Array) -> tuple[Array, Array]:
        """Return values (r,) and gradients (r, k) at the rows of U (r, k)."""
        ...


def joint_ascent(function: Copies, starts: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Climb from r starts at once, as one L-BFGS-B run on the sum of their values: one batched call per step.

    Args:
        function: maximised. starts: (r, k). low, high: (k,), bounds.
    Returns:
        The ends (r, k) and their values (r,); if a copy ended below its start, the start.
    Source: Balandat et al. (2020), "BoTorch", whose restarts are optimised so.
    """
    shape = starts.shape
    first, _ = function(starts)

    def loss(u: Array) -> tuple[float, Array]:
        values, gradients = function(u.reshape(shape))
        return -float(values.sum()), -gradients.reshape(-1)

    bounds = np.tile(np.stack([low, high], axis=1), (shape[0], 1))
    options = {"maxiter": ITERATIONS, "maxfun": 2 * ITERATIONS, "ftol": 1e-7, "gtol": 1e-6}
    found = minimize(loss, starts.reshape(-1), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    ends = np.asarray(found.x, dtype=np.float64).reshape(shape)
    values, _ = function(ends)
    worse = ~(values >= first)
    return np.where(worse[:, None], starts, ends), np.where(worse, first, values)
