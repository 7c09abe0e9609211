"""Search near points that a climb has found, in a space where not every point can be run.

A climb does not know about rules: it ends where the function is highest, and its end is then led back to a point that
can be run, which need not be the best one there. So the best ends are improved by random moves, judged where they can
be run, at a scale that grows with success and shrinks without: Rechenberg's evolution strategy with many children.
"""

from __future__ import annotations

import numpy as np

from raybo.solvers.domain import Array, climbable
from raybo.solvers.solution import ROWS_AT_ONCE, Search

IMPROVED = 3  # so many of the best points are improved
CHILDREN = 40  # random moves of a point in a round
ROUNDS = 16  # rounds of moves
FIRST_SCALE = 0.05  # standard deviation of the first round's moves, in sides of the cube
GROWTH = 1.5  # factor on the scale after a success
SHRINKAGE = 0.5  # factor on the scale after a failure


def search_within(
    search: Search, X: Array, values: Array, rng: np.random.Generator
) -> tuple[Array, Array]:  # (k, d), (k,)
    """Return runnable points with their values, the best of them improved; as they are if every point can be run."""
    axes = climbable(search.domain)
    if not search.domain.is_ruled or not axes.any():
        return X, values
    X, values = X.copy(), values.copy()
    top = np.argsort(-values, kind="stable")[:IMPROVED]
    k, d = len(top), search.domain.d
    scale = np.full(k, FIRST_SCALE)
    for _ in range(ROUNDS):
        steps = scale[:, None, None] * rng.standard_normal((k, CHILDREN, d)) * axes
        steps[:, ::2] *= rng.random((k, len(range(0, CHILDREN, 2)), d)) < max(0.3, 1.0 / axes.sum())
        tried, reached = search.try_points(np.clip(X[top][:, None] + steps, 0.0, 1.0).reshape(-1, d), ROWS_AT_ONCE)
        tried, reached = tried.reshape(k, CHILDREN, d), reached.reshape(k, CHILDREN)
        best = np.argmax(reached, axis=1)
        gained = reached[np.arange(k), best] > values[top]
        X[top[gained]], values[top[gained]] = tried[gained, best[gained]], reached[gained, best[gained]]
        scale *= np.where(gained, GROWTH, SHRINKAGE)
    return X, values
