"""The front of several metrics, and the reference point above which its hypervolume counts.

The front is that of the posterior means at the feasible trials, which noise does not flatter; pending trials count at
their means too, so that no two workers look for the same gain.

For each metric the reference is the lower of two values. One lies a tenth of the front's extent below the front's
worst. The other is, in turn, the worst or the lower quartile of what feasible trials are expected to have: the worst
reaches for the ends of the front, the quartile fills it. A reference just below the front would count only improvements
of a front that is still too short. The ends of a front of three metrics or more are fronts themselves, and easily
missed: every fourth time the reference lies so far below the front that its ends are most of the volume.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from raybo.acquisition import Surrogate, random_weights
from raybo.record.history import History
from raybo.record.pareto import non_dominated
from raybo.record.states import OPEN, State
from raybo.space import Array

MARGIN = 0.1  # of the front's extent: how far the reference lies below its worst values at least
LEVELS = 0.0, 0.25  # quantiles of the feasible trials' values that limit the reference, in turn
FAR = 3.0  # extents by which a far reference lies below the front
FAR_EVERY = 4  # feasible trials, with each of which the reference of three metrics or more is a far one
LEAST_EXTENT = 0.1  # standard deviations; the extent of a front that is flat or a single point
NEAR = 10  # points of the front around which the search begins
DIRECTIONS = 24  # random ones, in which the best points of many trials are chosen
EACH = 4  # points chosen in each direction


def front_and_reference(
    surrogates: Sequence[Surrogate], feasible: Array, pending: Array, values: Array | None
) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return the front, its reference, and which feasible points are on the front.

    Args:
        surrogates: k, one of each metric.
        feasible: (n, d), points of feasible trials.
        pending: (m, d), points of trials that may still turn out to be feasible.
        values: (v, k), of all feasible trials in the surrogates' units; if None, their posterior means.
    Returns:
        The front (f, k) and the reference (k,), in the surrogates' units; and rows of `feasible`, at most 10, spread
        over the front.
    """
    k = len(surrogates)
    points = np.vstack([feasible, pending]) if len(feasible) else feasible
    Y = np.stack([gp.posterior(points)[0] for gp in surrogates], axis=1) if len(points) else np.empty((0, k))
    rows = np.flatnonzero(non_dominated(Y))
    front = Y[rows]
    if not len(front):
        return front, np.zeros(k), rows
    values = Y[: len(feasible)] if values is None else values
    low, high = front.min(axis=0), front.max(axis=0)
    level = LEVELS[len(values) % len(LEVELS)]
    at_level = np.quantile(values, level, axis=0)
    extent = np.maximum(high - low, LEAST_EXTENT)
    reference = np.minimum(low - MARGIN * extent, at_level)
    if k > 2 and len(values) % FAR_EVERY == FAR_EVERY - 1:
        reference = low - FAR * extent
    observed = rows[rows < len(feasible)]
    if not len(observed):  # pending trials are expected to be better in every metric
        observed = np.flatnonzero(non_dominated(Y[: len(feasible)]))
    order = observed[np.argsort(Y[observed, 0], kind="stable")]
    spread = np.unique(np.linspace(0, len(order) - 1, NEAR).round().astype(int)) if len(order) else order
    return front, reference, order[spread]


def still_feasible(history: History) -> Array:  # (m, d)
    """Return the points of the open and pruned trials, without those whose reports broke a constraint."""
    points = [
        record.x
        for record in history.records
        if record.state in (*OPEN, State.PRUNED)
        and not history.goals.violations(history.goals.worst_margins(record.curves))
    ]
    return np.array(points, dtype=np.float64).reshape(-1, history.d)


def best_points(history: History) -> Array:  # (b, d)
    """Return the feasible points, the best first if there is one metric; else the one closest to being feasible."""
    feasible = history.feasible
    if not feasible.any():
        return history.X[[int(np.argmin(history.violation))]]
    points = history.X[feasible]
    return points[np.argsort(-history.y[feasible], kind="stable")] if history.goals.k == 1 else points


def best_points_of_many(history: History, rng: np.random.Generator) -> Array:  # (b, d)
    """Return some of the best feasible points, of several metrics the best in random directions.

    If no point is feasible, those closest to being feasible.
    """
    from scipy.stats import rankdata  # slow to import

    feasible = history.feasible
    if not feasible.any():
        return history.X[np.argsort(history.violation, kind="stable")[:NEAR]]
    X, Y = history.X[feasible], history.Y[feasible]
    if history.goals.k == 1:
        return X[np.argsort(-Y[:, 0], kind="stable")[:NEAR]]
    behind = 1.0 - rankdata(Y, axis=0) / len(Y)  # as a share of the trials, so that scales of metrics do not matter
    best = [
        np.argsort((weights * behind).max(axis=1), kind="stable")[:EACH]
        for weights in [*np.eye(Y.shape[1]), *(random_weights(Y.shape[1], rng) for _ in range(DIRECTIONS))]
    ]
    return X[np.unique(np.concatenate(best))]
