"""A box inside a domain, as a domain of its own, so that every solver can search near a point.

u in [0,1]^d  stands for  x = low + u (high - low)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raybo.solvers.domain import Array, Axes, Domain
from raybo.solvers.solution import Differentiable

REDRAWN = 16  # a box's points that cannot be run are redrawn so many times


@dataclass(frozen=True, eq=False)
class Box:
    """The points of a domain between two corners; a categorical axis, which knows no between, is whole.

    Attributes:
        domain: what it is a part of. low, high: (d,), the corners, in the domain's coordinates.
    """

    domain: Domain
    low: Array
    high: Array

    @classmethod
    def around(cls, domain: Domain, x: Array, radius: float | Array) -> Box:
        """Return the box of x -+ radius (one, or (d,)); a discrete axis reaches a level farther at least."""
        low, high = np.clip(x - radius, 0.0, 1.0), np.clip(x + radius, 0.0, 1.0)
        for j, (levels, categorical) in enumerate(zip(domain.levels, domain.categorical, strict=True)):
            if categorical:
                low[j], high[j] = 0.0, 1.0
            elif levels is not None:
                here = int(np.argmin(np.abs(levels - x[j])))
                reached = levels[(levels >= low[j]) & (levels <= high[j])]
                reached = np.append(reached, levels[max(here - 1, 0) : here + 2])
                low[j], high[j] = reached.min(), reached.max()
        return cls(domain, low, high)

    @property
    def d(self) -> int:
        """Number of axes."""
        return self.domain.d

    @property
    def categorical(self) -> tuple[bool, ...]:
        """A mask of the axes on which only equality of coordinates has meaning."""
        return self.domain.categorical

    @cached_property
    def levels(self) -> tuple[Array | None, ...]:
        """Per axis, the levels within the box, in its own coordinates; None for a continuum."""
        return tuple(
            None if levels is None else self.inwards(levels[(levels >= a) & (levels <= b), None], j)[:, 0]
            for j, (levels, a, b) in enumerate(zip(self.domain.levels, self.low, self.high, strict=True))
        )

    def snap(self, U: Array) -> Array:  # (m, d) -> (m, d)
        """Return the runnable points nearest to the rows of U, in the box's own coordinates."""
        return self.inwards(np.clip(self.domain.snap(self.outwards(np.clip(U, 0.0, 1.0))), self.low, self.high))

    @property
    def is_ruled(self) -> bool:
        """True if some points of the domain cannot be run."""
        return self.domain.is_ruled

    def allows(self, U: Array) -> Axes:  # (m, d) -> (m,)
        """Return which rows of U can be run."""
        return self.domain.allows(self.outwards(U))

    def uniform(self, rng: np.random.Generator, n: int) -> Array:  # (n, d)
        """Return uniform points of the box, drawn again a few times if they cannot be run."""
        U = rng.random((n, self.d))
        for _ in range(REDRAWN if self.is_ruled else 0):
            wrong = ~self.allows(self.snap(U))
            if not wrong.any():
                break
            U[wrong] = rng.random((int(wrong.sum()), self.d))
        return U

    def outwards(self, U: Array) -> Array:  # (m, d) -> (m, d)
        """Return points in the domain's coordinates, of points in the box's."""
        return self.low + U * self._width

    def inwards(self, X: Array, axis: int | None = None) -> Array:  # (m, d) -> (m, d)
        """Return points in the box's coordinates, of points in the domain's, of all axes or of one."""
        which = slice(None) if axis is None else slice(axis, axis + 1)
        return np.asarray((X - self.low[which]) / self._width[which])

    @cached_property
    def _width(self) -> Array:  # (d,)
        width = self.high - self.low
        return np.where(width > 0.0, width, 1.0)


@dataclass(frozen=True, eq=False)
class Within:
    """A function of the domain's points as one of the box's."""

    function: Differentiable
    box: Box

    def value(self, U: Array) -> Array:  # (m, d) -> (m,)
        """Return the function at the rows of U."""
        return self.function.value(self.box.outwards(U))

    def value_and_gradient(self, U: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return the function and its gradient in u."""
        value, gradient = self.function.value_and_gradient(self.box.outwards(U))
        return value, gradient * (self.box.high - self.box.low)
