"""Exact GP posterior under given hyperparameters.

    A = K + diag((noise + added) / counts)     L = chol(A)     alpha = A^-1 (y - m)     m the prior mean
    mean(x) = m + k(x, X) alpha      var(x) = k(x, x) - |L^-1 k(X, x)|^2      (of f, without noise)

Rasmussen, Williams (2006), algorithm 2.1. Gradients in x:
    dmean/dx = dk(x, X)/dx alpha      dvar/dx = dk(x, x)/dx - 2 dk(x, X)/dx A^-1 k(X, x)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from raybo.surrogate.blocks import FOR_SOLVES, blocks
from raybo.surrogate.factor import cholesky, grown, half_solve, solve
from raybo.surrogate.kernels import Array, Kernel, StationaryKernel
from raybo.surrogate.model import Model
from raybo.surrogate.observations import Observations


@dataclass(frozen=True, eq=False)
class GP:
    """A GP conditioned on observations; ready when made, and never changed.

    Attributes:
        model, theta: assumptions and hyperparameters.
        observations: n >= 0 of them, of d axes.
        kernel: with the hyperparameters of theta.
        prior_mean: 0, or the estimated constant.
        jitter: what was added to A's diagonal; 0 unless A could not be factorised without.
        L: (n, n) lower Cholesky factor of A. alpha: (n,) A^-1 (y - prior_mean).
    """

    model: Model
    theta: Array
    observations: Observations
    kernel: Kernel
    prior_mean: float
    jitter: float
    L: Array = field(repr=False)
    alpha: Array = field(repr=False)

    @classmethod
    def of(cls, observations: Observations, model: Model, theta: Array, earlier: GP | None = None) -> GP:
        """Condition on observations.

        Args:
            observations: also none; then this is the prior.
            model: what is assumed of f.
            theta: (p,), logs of its hyperparameters.
            earlier: a GP whose factor is used again as far as its first points are these, under an equal theta, if
                these are at least half of all; the result differs by rounding alone.
        Raises:
            NumericalError: the covariance cannot be factorised, with all the jitter of `factor.JITTERS`.
        """
        if earlier is not None:
            L = earlier._factor_for(observations, model, theta)
            if L is not None:
                return cls._with(observations, model, theta, earlier.kernel, earlier.jitter, L)
        kernel = model.kernel_at(theta, observations.categorical)
        W = kernel.inner(observations.X)
        A = kernel.matrix(W, W)
        # the diagonal is exact, whatever the rounding of distances
        A.flat[:: len(A) + 1] = kernel.diagonal(W) + observations.noise(math.exp(theta[-1]))
        L, jitter = cholesky(A)
        return cls._with(observations, model, theta, kernel, jitter, L)

    @classmethod
    def _with(
        cls, observations: Observations, model: Model, theta: Array, kernel: Kernel, jitter: float, L: Array
    ) -> GP:
        alpha, mean = solve(L, observations.y), 0.0
        if model.mean == "constant" and len(alpha):
            beta = solve(L, np.ones(len(alpha)))
            mean = float(alpha.sum() / beta.sum())  # generalised least squares: 1'A^-1 y / 1'A^-1 1
            alpha = alpha - mean * beta
        return cls(model, theta, observations, kernel, mean, jitter, L, alpha)

    @property
    def X(self) -> Array:  # (n, d)
        """The points it is conditioned on."""
        return self.observations.X

    @property
    def y(self) -> Array:  # (n,)
        """Their values."""
        return self.observations.y

    @property
    def n(self) -> int:
        """The number of points that it is conditioned on."""
        return len(self.X)

    @property
    def d(self) -> int:
        """Number of axes."""
        return len(self.observations.categorical)

    @cached_property
    def W(self) -> Array:  # (n, d)
        """Their inner points, between which the kernel is computed."""
        return self.kernel.inner(self.X)

    @property
    def stationary(self) -> StationaryKernel:
        """The kernel, if it is known to be stationary."""
        assert isinstance(self.kernel, StationaryKernel)
        return self.kernel

    @property
    def lengthscale(self) -> Array:  # (d,)
        """Length-scales of a stationary kernel, in sides of the cube."""
        return self.stationary.lengthscale

    @property
    def outputscale(self) -> float:
        """Prior variance of f under a stationary kernel."""
        return self.stationary.outputscale

    @property
    def noise_variance(self) -> float:
        """Variance of the noise on a single value."""
        return math.exp(self.theta[-1])

    @cached_property
    def information_gain(self) -> float:
        """0.5 log det(I + K / noise_variance) of the single values, repeats one by one; in nats."""
        noise = self.observations.noise(self.noise_variance)
        return float(np.log(np.diagonal(self.L)).sum() - 0.5 * np.log(noise).sum())

    def leave_one_out(self, n: int | None = None) -> Array:  # (n,)
        """Return the mean at each of the first n points given the others, y_i - alpha_i / (A^-1)_ii; ibid., eq. 5.12.

        Args:
            n: without points that are only believed; None for all.
        """
        y, inverse = self.y[:n], np.linalg.inv(self.L[:n, :n])
        alpha = inverse.T @ (inverse @ (y - self.prior_mean))
        return np.asarray(y - alpha / np.square(inverse).sum(axis=0))

    def mean(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the mean of f at the rows of X, without the solves that a variance takes."""
        V, mean = self.kernel.inner(X), np.empty(len(X))
        for rows in blocks(len(X), self.n, FOR_SOLVES):
            mean[rows] = self.prior_mean + self.kernel.matrix(V[rows], self.W) @ self.alpha
        return mean

    def posterior(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m,)
        """Return mean and variance of f at the rows of X."""
        V = self.kernel.inner(X)
        mean, var = np.empty(len(X)), self.kernel.diagonal(V)
        for rows in blocks(len(X), self.n, FOR_SOLVES):
            K = self.kernel.matrix(V[rows], self.W)
            mean[rows] = self.prior_mean + K @ self.alpha
            half = half_solve(self.L, K.T, overwrite=True)  # K.T is Fortran-ordered: nothing is copied
            var[rows] -= np.einsum("nm,nm->m", half, half)
        return mean, np.maximum(var, 0.0, out=var)

    def posterior_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:  # (m,), (m,), (m, d), (m, d)
        """Return mean and variance of f at the rows of X, and their gradients in x; zero along categorical axes."""
        kernel, V = self.kernel, self.kernel.inner(X)
        mean, var = np.empty(len(X)), kernel.diagonal(V)
        dmean, dvar = np.empty(X.shape), kernel.diagonal_gradient(V)
        for rows in blocks(len(X), self.n, FOR_SOLVES):
            K, gradients = kernel.matrix_and_gradients(V[rows], self.W)
            mean[rows] = self.prior_mean + K @ self.alpha
            half = half_solve(self.L, K.T, overwrite=True)
            var[rows] -= np.einsum("nm,nm->m", half, half)
            B = half_solve(self.L, half, transposed=True, overwrite=True)  # A^-1 k
            dmean[rows] = gradients.contract(self.alpha)
            dvar[rows] -= 2.0 * gradients.contract(B.T)
        dmean, dvar = kernel.chained(X, dmean, dvar)
        return mean, np.maximum(var, 0.0, out=var), dmean, dvar

    def joint(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, m)
        """Return mean and covariance of f at the rows of X."""
        V = self.kernel.inner(X)
        K = self.kernel.matrix(V, self.W)
        mean = self.prior_mean + K @ self.alpha
        half = half_solve(self.L, K.T, overwrite=True)
        cov = self.kernel.matrix(V, V) - half.T @ half
        return mean, 0.5 * (cov + cov.T)

    def believing(self, X: Array) -> GP:  # (m, d)
        """Condition on pending points at their posterior mean: the mean stays, the variance shrinks around them.

        The factor is grown in O(n^2 m), or made anew if growing it was inaccurate (see `factor.grown`). Points that
        repeat others are not merged with them.

        Source: Desautels, Krause, Burdick (2014), "Parallelizing Exploration-Exploitation Tradeoffs in Gaussian
        Process Bandit Optimization" (GP-BUCB).
        """
        if len(X) == 0:
            return self
        if self.model.structure is not None:  # made anew: it is of few points, and grown the last digits would differ
            return GP.of(self.observations.with_more(X, self.mean(X)), self.model, self.theta)
        y = self.prior_mean + self.kernel.matrix(self.kernel.inner(X), self.W) @ self.alpha
        more = self.observations.with_more(X, y)
        L = self._grown_factor(more, self.n)
        if L is None:
            return GP.of(more, self.model, self.theta)
        alpha = np.concatenate([self.alpha, np.zeros(len(X))])  # values as expected change no weight
        return GP(self.model, self.theta, more, self.kernel, self.prior_mean, self.jitter, L, alpha)

    def _grown_factor(self, observations: Observations, kept: int) -> Array | None:
        """Return the factor for observations of which the first `kept` are this one's; None if that is inaccurate."""
        old, new = self.W[:kept], self.kernel.inner(observations.X[kept:])
        noise = observations.noise(self.noise_variance)[kept:] + self.jitter
        corner = self.kernel.matrix(new, new)
        corner.flat[:: len(new) + 1] = self.kernel.diagonal(new) + noise
        L = np.asfortranarray(self.L[:kept, :kept])
        return grown(L, self.kernel.matrix(old, new), corner, noise)

    def _factor_for(self, observations: Observations, model: Model, theta: Array) -> Array | None:
        """Return the factor for other observations by way of this one's; None if too few points are equal."""
        if self.model != model or self.d != len(observations.categorical) or not np.array_equal(self.theta, theta):
            return None
        mine, n = self.observations, min(self.n, len(observations.X))
        same = (mine.X[:n] == observations.X[:n]).all(axis=1)
        same &= mine.noise(self.noise_variance)[:n] == observations.noise(self.noise_variance)[:n]
        kept = n if same.all() else int(np.argmin(same))
        return self._grown_factor(observations, kept) if 0 < len(observations.X) <= 2 * kept else None
