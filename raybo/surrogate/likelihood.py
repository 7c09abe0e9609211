"""Log marginal likelihood of an exact zero-mean GP and its gradient in theta.

    A = K + noise_variance diag(1 / counts)        alpha = A^-1 y
    LML = -y' alpha / 2 - logdet(A) / 2 - n log(2 pi) / 2
    dLML / dtheta_j = tr((alpha alpha' - A^-1) dA/dtheta_j) / 2

Repeats of a point are one counted observation of their mean; the term that they add to the likelihood,
-(r - n) log(noise) / 2 - scatter / (2 noise) up to a constant, with r repeats in all and `scatter` their squared
deviations from their points' means, makes theta's likelihood that of the single observations.

Squared differences are kept per axis for each pair of points, so that all length-scale gradients are one matrix-vector
product. Rasmussen, Williams (2006), algorithm 2.1 and eq. (5.9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from raybo.errors import NumericalError
from raybo.surrogate.kernels import Array, pairwise_by_axis, profile_and_slope
from raybo.surrogate.model import Model

JITTERS = (0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)  # of the mean diagonal, tried in turn


@dataclass(frozen=True)
class Observations:
    """What was observed: distinct points with the mean and the number of their values.

    Attributes:
        X: (n, d). y: (n,). counts: (n,). scatter: squared deviations of repeated values from their means, summed.
        categorical: per axis, whether only equality counts.
    """

    X: Array
    y: Array
    counts: Array
    scatter: float
    categorical: tuple[bool, ...]

    @classmethod
    def of(cls, X: Array, y: Array, categorical: Sequence[bool] | None = None) -> Observations:
        """Merge repeated rows of X (n, d) with values y (n,), in the order of first appearance."""
        flags = (False,) * X.shape[1] if categorical is None else tuple(categorical)
        _, first, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
        if len(first) == len(X):
            return cls(X, y, np.ones(len(X)), 0.0, flags)
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        group = place[inverse.reshape(-1)]
        counts = np.bincount(group).astype(np.float64)
        means = np.bincount(group, weights=y) / counts
        return cls(X[np.sort(first)], means, counts, float(np.sum((y - means[group]) ** 2)), flags)

    def split(self, n: int) -> tuple[Observations, Observations]:
        """The first n points, and the others."""
        head = Observations(self.X[:n], self.y[:n], self.counts[:n], self.scatter, self.categorical)
        return head, Observations(self.X[n:], self.y[n:], self.counts[n:], 0.0, self.categorical)


def cholesky(A: Array) -> tuple[Array, float]:
    """Lower Cholesky factor of a symmetric matrix, and the jitter that it took, relative to the mean diagonal.

    Raises:
        NumericalError: no jitter of the ladder makes it positive definite.
    """
    scale = float(np.mean(np.diagonal(A)))
    for jitter in JITTERS:
        B = A.copy()
        if jitter:
            B.flat[:: len(A) + 1] += jitter * scale
        L, info = lapack.dpotrf(B.T, lower=0, clean=1, overwrite_a=1)
        if info == 0:
            return L.T, jitter
    raise NumericalError(
        f"a covariance matrix of {len(A)} points is not positive definite, even with jitter {jitter:g}"
    )


class Likelihood:
    """The log posterior of theta given observations, as a function to be maximised many times."""

    def __init__(self, observations: Observations, model: Model) -> None:
        self.observations, self.model = observations, model
        self.n, self.d = observations.X.shape
        self._D = pairwise_by_axis(observations.X, observations.categorical)
        rows, columns = np.tril_indices(self.n, -1)
        self._flat: NDArray[np.intp] = rows * self.n + columns
        self._inverse_counts = 1.0 / observations.counts
        self._repeats = float(observations.counts.sum()) - self.n
        if model.shared_lengthscale:
            self._D = self._D.sum(axis=1, keepdims=True)

    def log_posterior(self, theta: Array) -> tuple[float, Array]:
        """Log marginal likelihood plus log prior at theta (p,), and its gradient; -inf where A is not factorisable."""
        n, o = self.n, self.observations
        k = len(theta) - 2
        weights = np.exp(-2.0 * theta[:k])
        outputscale, noise = math.exp(theta[k]), math.exp(theta[k + 1])
        kernel, slope = profile_and_slope(self.model.kernel, self._D @ weights)
        A = np.empty((n, n))
        A.ravel()[self._flat] = outputscale * kernel
        A.flat[:: n + 1] = outputscale * (1.0 + 1e-10) + noise * self._inverse_counts
        L, info = lapack.dpotrf(A.T, lower=0, clean=0, overwrite_a=1)  # A's lower half is A.T's upper
        if info != 0:
            return -math.inf, np.zeros_like(theta)
        logdet = 2.0 * float(np.sum(np.log(np.diagonal(L))))
        alpha, _ = lapack.dpotrs(L, o.y, lower=0)
        inverse, _ = lapack.dpotri(L, lower=0, overwrite_c=1)
        diagonal = alpha * alpha - np.diagonal(inverse)
        lower = inverse.T.ravel()[self._flat]
        G = (alpha[:, None] * alpha[None, :]).ravel()[self._flat] - lower  # off the diagonal
        value = -0.5 * float(o.y @ alpha) - 0.5 * logdet - 0.5 * n * math.log(2.0 * math.pi)
        gradient = np.empty_like(theta)
        gradient[:k] = -2.0 * outputscale * weights * ((G * slope) @ self._D)
        gradient[k] = outputscale * (float(G @ kernel) + 0.5 * (1.0 + 1e-10) * float(diagonal.sum()))
        gradient[k + 1] = 0.5 * noise * float(diagonal @ self._inverse_counts)
        if self._repeats:
            value -= 0.5 * self._repeats * theta[k + 1] + 0.5 * o.scatter / noise
            gradient[k + 1] += -0.5 * self._repeats + 0.5 * o.scatter / noise
        prior, slope_of_prior = self.model.log_prior(theta)
        return value + prior, gradient + slope_of_prior
