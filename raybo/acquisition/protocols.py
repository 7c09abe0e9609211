"""Protocols: the surrogate that an acquisition needs, and the function that it offers to a solver.

surrogate    the posterior of f: mean and variance at points of the unit cube, on the standardised, maximised scale
draw         one function drawn from that posterior
acquisition  the value of trying a point; maximised by a solver, batched over rows
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


class Surrogate(Protocol):
    """A posterior over functions on [0,1]^d."""

    def posterior(self, X: Array) -> tuple[Array, Array]:  # (m,), (m,)
        """Return mean and variance (of f, without noise) at the rows of X, (m, d)."""
        ...

    def posterior_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:  # (m,), (m,), (m, d), (m, d)
        """Return mean, variance and the gradients of both at the rows of X."""
        ...

    def joint(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, m)
        """Return mean and covariance at the rows of X together."""
        ...


class Draw(Protocol):
    """A function on [0,1]^d with its gradient."""

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the function at the rows of X."""
        ...

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return the function and its gradient at the rows of X; each value depends on its own row alone."""
        ...


class Acquisition(Draw, Protocol):
    """The worth of trying each point, larger is better. The gradient is the analytic one of the value."""
