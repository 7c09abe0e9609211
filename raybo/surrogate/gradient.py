"""The posterior of the gradient of f, and its covariance with values of f.

Differentiation is linear, so the gradient g is a Gaussian process too. With G = dk(x, X), d columns of n:
    mean = G alpha        cov = ddk(x, x) - G A^-1 G'        Cov(g(x), f(z)) = dk(x, z) - G A^-1 k(X, z)

Along a categorical axis there is no gradient: its mean and covariances are 0. Matern-3/2 draws are differentiable in
mean square only; methods that need a smoother f must not use that kernel.

Rasmussen, Williams (2006), section 9.4; Mueller, von Rohr, Trimpe (2021), "Local policy search with Bayesian
optimization", eqs. (3)-(5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from raybo.surrogate.factor import half_solve
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels import Array, curvature, profile_and_slope

# a function of the covariances (m, d) and variances (m,), row by row: its values, and its derivatives in both
OfCovariances: TypeAlias = Callable[[Array, Array], tuple[Array, Array, Array]]


@dataclass(frozen=True, eq=False)
class GradientAt:
    """The gradient g of f at one point, ready to be asked how values of f elsewhere vary with it.

    Attributes:
        gp: the posterior of f. x: (d,), the point.
        V: (n, d), L^-1 dk(X, x), and B: (n, d), A^-1 dk(X, x).
    """

    gp: GP
    x: Array
    V: Array = field(repr=False)
    B: Array = field(repr=False)

    @classmethod
    def of(cls, gp: GP, x: Array) -> GradientAt:  # (d,)
        """Return the gradient at x; O(n^2 d)."""
        slope = gp.stationary.matrix_and_slope(x[None, :], gp.X)[1][0]
        V = half_solve(gp.L, slope[:, None] * (2.0 * gp.stationary.metric * (x - gp.X)))
        return cls(gp, x, V, half_solve(gp.L, V, transposed=True))

    @cached_property
    def mean(self) -> Array:  # (d,)
        """Its mean, standardised values per side of the cube."""
        x = self.x[None, :]
        slope = self.gp.stationary.matrix_and_slope(x, self.gp.X)[1]
        return np.asarray(self.gp.stationary.contract(x, self.gp.X, slope * self.gp.alpha)[0])

    @cached_property
    def cov(self) -> Array:  # (d, d)
        """Its covariance; rows of categorical axes are 0."""
        return np.asarray(np.diag(self._prior_variances) - self.V.T @ self.V)

    @cached_property
    def trace(self) -> float:
        """Of the covariance: the expected squared error of the gradient's mean."""
        return float(self._prior_variances.sum() - np.square(self.V).sum())

    @property
    def _prior_variances(self) -> Array:  # (d,)
        return np.asarray(-2.0 * self.gp.stationary.slope_at_zero * self.gp.stationary.metric)

    def covariances(self, Z: Array) -> tuple[Array, Array]:  # (m, d) -> (m, d), (m,)
        """Return the covariance c(z) of g with f at each row of Z, and the variance of f there."""
        K, _ = self.gp.stationary.matrix_and_slope(Z, self.gp.X)
        _, slope = self._near(Z)
        c, var, _ = self._from(Z, K, slope)
        return c, var

    def value_and_gradient(self, Z: Array, function: OfCovariances) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, d)
        """Return a function of c(z) and of the variance of f at z, and its gradient in z; O(m n (n + d)).

        The Jacobian of c, m d^2 numbers from m n d^2 operations, is never made: only its product with dF/dc is needed.
        """
        gp, kernel = self.gp, self.gp.stationary
        K, slope = kernel.matrix_and_slope(Z, gp.X)
        q, slope_near = self._near(Z)
        c, var, V = self._from(Z, K, slope_near)
        value, in_c, in_var = function(c, var)
        # through the data: c = ... - k(z, X) B and var = ... - k(z, X) A^-1 k(X, z)
        solved = half_solve(gp.L, V, transposed=True, overwrite=True)  # A^-1 k(X, z)
        gradient = -kernel.contract(Z, gp.X, slope * (in_c @ self.B.T + 2.0 * in_var[:, None] * solved.T))
        # through the prior: dk(x, z)/dx = 2 metric (x - z) slope
        apart = kernel.metric * (self.x - Z)
        bend = 4.0 * gp.outputscale * curvature(kernel.name, q) * (in_c * apart).sum(axis=1)
        gradient -= 2.0 * kernel.metric * slope_near[:, None] * in_c + bend[:, None] * apart
        return value, gradient

    def _near(self, Z: Array) -> tuple[Array, Array]:  # (m,), (m,)
        """Return squared scaled distances of x to the rows of Z, and the kernel's slopes there."""
        q = self.gp.stationary.squared_distances(self.x[None, :], Z)
        return q[0], self.gp.outputscale * profile_and_slope(self.gp.stationary.name, q)[1][0]

    def _from(self, Z: Array, K: Array, slope_near: Array) -> tuple[Array, Array, Array]:  # (m, d), (m,), (n, m)
        """Return c, the variance, and L^-1 k(X, Z); K (m, n), k(Z, X), is used up."""
        gp = self.gp
        c = 2.0 * gp.stationary.metric * (self.x - Z) * slope_near[:, None] - K @ self.B
        V = half_solve(gp.L, K.T, overwrite=True)
        return c, np.maximum(gp.outputscale - np.einsum("nm,nm->m", V, V), 0.0), V
