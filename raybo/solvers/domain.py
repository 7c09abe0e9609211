"""Describes the unit cube to solvers: the coordinates of each axis that can really be run.

An axis is continuous (`levels` None), ordered and discrete, or categorical (discrete, and only equality has meaning).
An axis with very many values may also be given as continuous; `snap` still moves points along it.
"""

from __future__ import annotations

import math
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Axes: TypeAlias = NDArray[np.bool_]

LISTED = 24  # levels of an axis that are all tried; of more, as many


class Domain(Protocol):
    """[0,1]^d with the points of it that can be run; `raybo.space.Cube` is one."""

    @property
    def d(self) -> int:
        """Number of axes."""
        ...

    @property
    def levels(self) -> tuple[Array | None, ...]:
        """Per axis, the ascending coordinates that can be run; None for a continuum."""
        ...

    @property
    def categorical(self) -> tuple[bool, ...]:
        """A mask of the axes on which only equality of coordinates has meaning."""
        ...

    def snap(self, X: Array) -> Array:
        """Return the runnable points nearest to the rows of X, (m, d); a fixed point of itself."""
        ...

    @property
    def is_ruled(self) -> bool:
        """True if some points inside the cube cannot be run, whatever their coordinates are rounded to."""
        ...

    def allows(self, X: Array) -> Axes:
        """Return which rows of X, (m, d), can be run as they would be rounded, (m,)."""
        ...

    def uniform(self, rng: np.random.Generator, n: int) -> Array:
        """Return uniform points, (n, d), of those that can be run: coordinates are not rounded."""
        ...


def climbable(domain: Domain) -> Axes:  # (d,)
    """Return the axes along which gradients may move a relaxed point: those with an order and two values or more."""
    return np.array(
        [
            not categorical and (levels is None or len(levels) > 1)
            for levels, categorical in zip(domain.levels, domain.categorical, strict=True)
        ]
    )


def continuous(domain: Domain) -> Axes:  # (d,)
    """Return the axes given as continua, with an order."""
    return np.array(
        [
            levels is None and not categorical
            for levels, categorical in zip(domain.levels, domain.categorical, strict=True)
        ]
    )


def count_points(domain: Domain) -> float:
    """Return how many points can be run, as far as the levels tell; infinite with a continuous axis."""
    return math.prod(math.inf if levels is None else len(levels) for levels in domain.levels)


def all_points(domain: Domain) -> Array:  # (count_points, d)
    """Return every point of a wholly discrete domain, the last axis fastest."""
    grids = np.meshgrid(*[_listed(levels) for levels in domain.levels], indexing="ij")
    return np.stack([grid.ravel() for grid in grids], axis=1)


def one_axis_moves(domain: Domain, X: Array, rng: np.random.Generator) -> Array:  # (k, d) -> (k, r, d)
    """Return every row of X with one discrete axis changed.

    It is changed to each of its levels if they are at most LISTED, else to its nearest levels on both sides and to some
    at random.

    A row's present level may be among them, so r is one number for all rows; it is 0 without discrete axes.
    """
    moves = []
    for axis, (levels, categorical) in enumerate(zip(domain.levels, domain.categorical, strict=True)):
        if levels is None or len(levels) == 1:
            continue
        if len(levels) <= LISTED:
            values = np.broadcast_to(levels, (len(X), len(levels)))
        else:
            values = levels[_some_levels(levels, categorical, X[:, axis], rng)]
        moved = np.repeat(X[:, None, :], values.shape[1], axis=1)
        moved[:, :, axis] = values
        moves.append(moved)
    return np.concatenate(moves, axis=1) if moves else np.empty((len(X), 0, domain.d))


def _some_levels(
    levels: Array, categorical: bool, present: Array, rng: np.random.Generator
) -> NDArray[np.int64]:  # (k, LISTED)
    random = rng.integers(len(levels), size=(len(present), LISTED))
    if not categorical:
        near = np.array([-4, -3, -2, -1, 1, 2, 3, 4])
        here = np.searchsorted(levels, present)
        random[:, : len(near)] = np.clip(here[:, None] + near, 0, len(levels) - 1)
    return random


def _listed(levels: Array | None) -> Array:
    assert levels is not None, "only a wholly discrete domain can be listed"
    return levels
