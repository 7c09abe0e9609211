"""Pseudo-data: independent uniform points with the values of their nearest observations.

A search observes only where it went, so hyperparameters fitted to its observations need not converge to the truth.
Fitted to independent uniform points with values that the observations lend them, they do; predictions still use what
was observed.

Ha et al., "Provably Efficient Bayesian Optimization with Unknown Gaussian Process Hyperparameter Estimation",
arXiv:2306.06844, eq. (2). Ours: distances are in the unit cube, 0 or 1 on a categorical axis as in the kernels; of
equally near observations the earliest counts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from raybo.surrogate.fit import FITTED_POINTS
from raybo.surrogate.kernels import Array
from raybo.surrogate.observations import Observations

PER_VALUE = 2  # uniform points for each observed value; the theory asks for at least 1


def pseudo_data(
    observations: Observations,
    rng: np.random.Generator,
    snap: Callable[[Array], Array] = lambda X: X,  # (m, d) -> (m, d)
    *,
    at_most: int = FITTED_POINTS,
) -> Observations:
    """Return twice as many uniform points as there are values, each with the value of its nearest observation.

    Args:
        observations: at least one.
        rng: the points are drawn from it.
        snap: from points of the cube to those that can be run.
        at_most: no more points than these, which is where a fit would drop some, and not at random.
    """
    m = min(PER_VALUE * int(observations.counts.sum()), at_most)
    points = snap(rng.random((m, len(observations.categorical))))
    return lent(observations, points)


def lent(observations: Observations, points: Array) -> Observations:  # (m, d)
    """Return the points, each with the value of its nearest observation; equal points are merged."""
    distance = np.zeros((len(points), len(observations.X)))
    for j, is_categorical in enumerate(observations.categorical):
        difference = points[:, j, None] - observations.X[:, j]
        distance += difference != 0.0 if is_categorical else np.square(difference)
    nearest = np.argmin(distance, axis=1)  # the lowest index of equals
    added = None if observations.added is None else observations.added[nearest]
    return Observations.of(points, observations.y[nearest], observations.categorical, added)
