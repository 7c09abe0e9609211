"""Exact GP posterior under given hyperparameters.

    A = K + diag(noise)     L = chol(A)     alpha = A^-1 y
    mean(x) = k(x, X) alpha     var(x) = outputscale - |L^-1 k(X, x)|^2     (of f, without noise)

Rasmussen, Williams (2006), algorithm 2.1. Gradients in x follow from dk/dx = 2 outputscale slope(q) (x - x') / l^2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from raybo.surrogate.kernels import Array, profile, profile_and_slope, squared_distances
from raybo.surrogate.likelihood import Observations, cholesky
from raybo.surrogate.model import Model

CHUNK = 4_096  # rows of a posterior at a time, which bounds memory


@dataclass(frozen=True)
class GP:
    """A zero-mean GP conditioned on observations; ready when made.

    Attributes:
        model, theta: kernel and hyperparameters.
        observations: what it is conditioned on.
        L: (n, n) lower Cholesky factor of A. alpha: (n,) A^-1 y.
    """

    model: Model
    theta: Array
    observations: Observations
    L: Array = field(repr=False)
    alpha: Array = field(repr=False)

    @classmethod
    def of(cls, observations: Observations, model: Model, theta: Array, earlier: GP | None = None) -> GP:
        """Condition on observations.

        Args:
            earlier: a GP whose factor is used again as far as its first points are the same, under the same theta.
        Raises:
            NumericalError: the covariance cannot be factorised.
        """
        if earlier is not None and (shared := earlier._shared(observations, model, theta)):
            head, tail = observations.split(shared)
            L = np.ascontiguousarray(earlier.L[:shared, :shared])
            alpha, _ = lapack.dpotrs(L.T, head.y, lower=0)
            return cls(model, theta, head, L, alpha).append(tail.X, tail.y, tail.counts)
        lengthscale, outputscale, noise = model.expand(theta, observations.X.shape[1])
        X = observations.X
        A = outputscale * profile(model.kernel, squared_distances(X, X, lengthscale, observations.categorical))
        A.flat[:: len(X) + 1] = outputscale + noise / observations.counts
        L, _ = cholesky(A)
        alpha, _ = lapack.dpotrs(L.T, observations.y, lower=0)
        return cls(model, theta, observations, L, alpha)

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
        """How many points it is conditioned on."""
        return len(self.X)

    @property
    def d(self) -> int:
        """Number of axes."""
        return int(self.X.shape[1])

    @cached_property
    def hyperparameters(self) -> tuple[Array, float, float]:
        """Length-scales (d,), outputscale, noise variance."""
        return self.model.expand(self.theta, self.d)

    @cached_property
    def information_gain(self) -> float:
        """0.5 log det(I + K / noise_variance), with counted points as their counts say."""
        noise = self.hyperparameters[2] / self.observations.counts
        return float(np.sum(np.log(np.diagonal(self.L))) - 0.5 * np.sum(np.log(noise)))

    def posterior(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m,)
        """Mean and variance of f at the rows of X."""
        if len(X) > CHUNK:
            parts = [self.posterior(X[i : i + CHUNK]) for i in range(0, len(X), CHUNK)]
            return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        outputscale = self.hyperparameters[1]
        K = outputscale * profile(self.model.kernel, self._squared_distances(X))
        V, _ = lapack.dtrtrs(self.L.T, K.T, lower=0, trans=1)  # K.T is Fortran-ordered: nothing is copied twice
        return K @ self.alpha, np.maximum(outputscale - np.einsum("ij,ij->j", V, V), 0.0)

    def posterior_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:  # (m,), (m,), (m, d), (m, d)
        """Mean and variance of f at the rows of X, and their gradients in x; zero along categorical axes."""
        lengthscale, outputscale, _ = self.hyperparameters
        kernel, slope = profile_and_slope(self.model.kernel, self._squared_distances(X))
        K = outputscale * kernel
        B, _ = lapack.dpotrs(self.L.T, K.T, lower=0)  # (n, m): A^-1 k
        mean = K @ self.alpha
        var = np.maximum(outputscale - np.einsum("mn,nm->m", K, B), 0.0)
        scale = 2.0 * outputscale / lengthscale**2
        scale = np.where(np.asarray(self.observations.categorical), 0.0, scale)
        W = slope * self.alpha
        V = slope * B.T
        dmean = scale * (X * W.sum(axis=1)[:, None] - W @ self.X)
        dvar = -2.0 * scale * (X * V.sum(axis=1)[:, None] - V @ self.X)
        return mean, var, dmean, dvar

    def joint(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, m)
        """Mean and covariance of f at the rows of X."""
        lengthscale, outputscale, _ = self.hyperparameters
        K = outputscale * profile(self.model.kernel, self._squared_distances(X))
        V, _ = lapack.dtrtrs(self.L.T, K.T, lower=0, trans=1)
        prior = outputscale * profile(
            self.model.kernel, squared_distances(X, X, lengthscale, self.observations.categorical)
        )
        return K @ self.alpha, prior - V.T @ V

    def append(self, X: Array, y: Array, counts: Array | None = None) -> GP:  # (m, d), (m,)
        """Conditioned on m more points, the factor grown by m rows in O(n^2 m); refactored where that is inaccurate."""
        o = self.observations
        lengthscale, outputscale, noise = self.hyperparameters
        m = len(X)
        if m == 0:
            return self
        added = np.ones(m) if counts is None else counts
        grown = Observations(
            np.vstack([o.X, X]), np.concatenate([o.y, y]), np.concatenate([o.counts, added]), o.scatter, o.categorical
        )
        K = outputscale * profile(self.model.kernel, self._squared_distances(X))
        R, _ = lapack.dtrtrs(self.L.T, K.T, lower=0, trans=1)  # (n, m)
        S = outputscale * profile(self.model.kernel, squared_distances(X, X, lengthscale, o.categorical)) - R.T @ R
        S.flat[:: m + 1] += noise / added
        corner, info = lapack.dpotrf(S.T, lower=0, clean=1)
        # a pivot far below the noise means that cancellation ate the digits: start again from the whole matrix
        if info != 0 or float(np.min(np.diagonal(corner)) ** 2) < 0.5 * float(np.min(noise / added)):
            return GP.of(grown, self.model, self.theta)
        L = np.zeros((self.n + m, self.n + m))
        L[: self.n, : self.n], L[self.n :, : self.n], L[self.n :, self.n :] = self.L, R.T, corner.T
        alpha, _ = lapack.dpotrs(L.T, grown.y, lower=0)
        return GP(self.model, self.theta, grown, L, alpha)

    def believing(self, X: Array) -> GP:  # (m, d)
        """Conditioned on pending points at their posterior mean: the mean stays, the variance shrinks around them."""
        return self if len(X) == 0 else self.append(X, self.posterior(X)[0])

    def _shared(self, observations: Observations, model: Model, theta: Array) -> int:
        """How many leading points of the observations this factor serves; 0 where too few to be worth it."""
        n = min(self.n, len(observations.X))
        if (
            self.model != model
            or self.theta.shape != theta.shape
            or (self.theta != theta).any()
            or self.d != observations.X.shape[1]
        ):
            return 0
        mine = self.observations
        same = (mine.X[:n] == observations.X[:n]).all(axis=1) & (mine.counts[:n] == observations.counts[:n])
        shared = n if same.all() else int(np.argmin(same))
        return shared if 2 * shared >= len(observations.X) else 0

    def _squared_distances(self, X: Array) -> Array:  # (m, n)
        return squared_distances(X, self.X, self.hyperparameters[0], self.observations.categorical)
