"""Exact GP posterior under a structured kernel.

As in `gp`, except that a trend makes the variance k(x, x) a function of x, and that gradients go through the warping:
df/dx = df/dw dw/dx.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from raybo.surrogate.blocks import FOR_SOLVES, blocks
from raybo.surrogate.factor import cholesky, half_solve, solve
from raybo.surrogate.kernels import Array
from raybo.surrogate.observations import Observations
from raybo.surrogate.structured import Structure, StructuredKernel


@dataclass(frozen=True, eq=False)
class StructuredGP:
    """A GP conditioned on observations and on points believed at their mean; never changed.

    Attributes:
        kernel: with its hyperparameters.
        W: (n, d), the points, warped. prior_mean: 0, or the estimated constant.
        L: (n, n) lower Cholesky factor of A. alpha: (n,) A^-1 (y - prior_mean).
    """

    kernel: StructuredKernel
    W: Array
    prior_mean: float
    L: Array = field(repr=False)
    alpha: Array = field(repr=False)

    @classmethod
    def of(cls, observations: Observations, structure: Structure, theta: Array, believed: Array) -> StructuredGP:
        """Condition on observations, and then on pending points (m, d) at their posterior mean (see `GP.believing`).

        Raises:
            NumericalError: the covariance cannot be factorised.
        """
        kernel, noise_variance = structure.kernel(theta), math.exp(theta[-1])
        gp = cls._with(kernel, kernel.inner(observations.X), observations.y, observations.noise(noise_variance))
        if len(believed) == 0:
            return gp
        y = np.concatenate([observations.y, gp.posterior(believed)[0]])
        noise = np.concatenate([observations.noise(noise_variance), np.full(len(believed), noise_variance)])
        return cls._with(kernel, np.vstack([gp.W, kernel.inner(believed)]), y, noise)

    @classmethod
    def _with(cls, kernel: StructuredKernel, W: Array, y: Array, noise: Array) -> StructuredGP:
        A = kernel.matrix(W, W)
        A.flat[:: len(A) + 1] = kernel.diagonal(W) + noise  # exact, whatever the rounding of distances
        L, _ = cholesky(A)
        alpha, mean = solve(L, y), 0.0
        if kernel.structure.has_mean:
            beta = solve(L, np.ones(len(y)))
            mean = float(alpha.sum() / beta.sum())
            alpha = alpha - mean * beta
        return cls(kernel, W, mean, L, alpha)

    def posterior(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m,)
        """Mean and variance of f at the rows of X."""
        V = self.kernel.inner(X)
        mean, var = np.empty(len(X)), self.kernel.diagonal(V)
        for rows in blocks(len(X), len(self.W), FOR_SOLVES):
            K = self.kernel.matrix(V[rows], self.W)
            mean[rows] = self.prior_mean + K @ self.alpha
            half = half_solve(self.L, K.T, overwrite=True)
            var[rows] -= np.einsum("nm,nm->m", half, half)
        return mean, np.maximum(var, 0.0, out=var)

    def posterior_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:  # (m,), (m,), (m, d), (m, d)
        """Mean and variance of f at the rows of X, and their gradients in x; zero along categorical axes."""
        V = self.kernel.inner(X)
        K, slopes = self.kernel.matrix_and_slopes(V, self.W)
        mean = self.prior_mean + K @ self.alpha
        half = half_solve(self.L, K.T, overwrite=True)
        var = np.maximum(self.kernel.diagonal(V) - np.einsum("nm,nm->m", half, half), 0.0)
        whole = half_solve(self.L, half, transposed=True, overwrite=True)  # A^-1 k
        dvar = self.kernel.diagonal_gradient(V) - 2.0 * slopes.contract(whole.T)
        inner = self.kernel.inner_slope(X)
        return mean, var, slopes.contract(self.alpha) * inner, dvar * inner

    def joint(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, m)
        """Mean and covariance of f at the rows of X."""
        V = self.kernel.inner(X)
        K = self.kernel.matrix(V, self.W)
        mean = self.prior_mean + K @ self.alpha
        half = half_solve(self.L, K.T, overwrite=True)
        cov = self.kernel.matrix(V, V) - half.T @ half
        return mean, 0.5 * (cov + cov.T)
