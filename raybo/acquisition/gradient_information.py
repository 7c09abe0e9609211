"""Gradient information: the reduction in uncertainty about a gradient of f by a value at z.

    c       covariance of the gradient g at x with f(z)           v = var f(z) + noise
    mu, S   mean and covariance of g, and mu_z and S' = S - a a' once z is observed               a = c / sqrt(v)

    TraceReduction       c'c / v: by how much the expected squared error of g's mean falls            GIBO, MinUCB
    DirectionCertainty   E[mu_z' S'^-1 mu_z], the squared certainty of the steepest direction            MPD

Both depend on x and z alone, and are maximised over z.

Mueller, von Rohr, Trimpe (2021), "Local policy search with Bayesian optimization"; Nguyen, Wu, Gardner, Garnett
(2022), "Local Bayesian optimization via maximizing probability of descent".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raybo.acquisition.protocols import Array
from raybo.surrogate import GradientAt, cholesky
from raybo.surrogate.factor import solve

NEARLY_CERTAIN = 1e-9  # of 1 - a' S^-1 a, which noise keeps above 0 in exact arithmetic


@dataclass(frozen=True, eq=False)
class TraceReduction:
    """By how much the trace of the gradient's covariance falls when z is observed, whatever its value."""

    at: GradientAt

    def value(self, Z: Array) -> Array:  # (m, d) -> (m,)
        """Return the reduction at the rows of Z; never negative."""
        return self._of(*self.at.covariances(Z))[0]

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return the reduction and its gradient in z."""
        return self.at.value_and_gradient(Z, self._of)

    def _of(self, c: Array, var: Array) -> tuple[Array, Array, Array]:
        v = var + _noise(self.at)
        value = (c * c).sum(axis=1) / v
        return value, 2.0 * c / v[:, None], -value / v


@dataclass(frozen=True, eq=False)
class DirectionCertainty:
    """mu' S^-1 mu as expected once z is observed; the probability of ascent is Phi of its root.

    With p = a' S^-1 mu and q = a' S^-1 a it is  mu' S^-1 mu + (p^2 + q) / (1 - q).
    """

    at: GradientAt

    @cached_property
    def certainty(self) -> float:
        """mu' S^-1 mu now."""
        return float(self.at.mean @ self._direction)

    @cached_property
    def _L(self) -> Array:
        return factor_of_gradient(self.at.cov)

    @cached_property
    def _direction(self) -> Array:  # (d,)
        return solve(self._L, self.at.mean)

    def value(self, Z: Array) -> Array:  # (m, d) -> (m,)
        """Return the expected certainty at the rows of Z."""
        return self._of(*self.at.covariances(Z))[0]

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return the expected certainty and its gradient in z."""
        return self.at.value_and_gradient(Z, self._of)

    def _of(self, c: Array, var: Array) -> tuple[Array, Array, Array]:
        root = np.sqrt(var + _noise(self.at))
        a = c / root[:, None]
        whitened = solve(self._L, a.T).T  # S^-1 a
        p, q = a @ self._direction, (a * whitened).sum(axis=1)
        rest = np.maximum(1.0 - q, NEARLY_CERTAIN)
        gain = (p * p + q) / rest
        in_a = (2.0 / rest)[:, None] * (p[:, None] * self._direction + (1.0 + gain)[:, None] * whitened)
        return self.certainty + gain, in_a / root[:, None], -0.5 * (in_a * a).sum(axis=1) / root**2


def factor_of_gradient(cov: Array) -> Array:  # (d, d)
    """Return the Cholesky factor of a gradient's covariance, with jitter if needed; flat axes get variance 1."""
    flat = np.diagonal(cov) <= 0.0
    return cholesky(cov + np.diag(flat.astype(np.float64)) if flat.any() else cov)[0]


def _noise(at: GradientAt) -> float:
    return at.gp.noise_variance + at.gp.jitter
