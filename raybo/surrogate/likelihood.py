"""Log marginal likelihood of an exact GP and its gradient in theta, made to be evaluated many times on the same data.

    A = K + N + jitter I        N = diag((noise + added) / counts)        r = y - mean        alpha = A^-1 r
    LML = -r' alpha / 2 - logdet(A) / 2 - n log(2 pi) / 2
    dLML / dtheta_j = tr((alpha alpha' - A^-1) dA/dtheta_j) / 2

Rasmussen, Williams (2006), algorithm 2.1 and eq. (5.9). With a constant mean, the generalised least squares estimate
maximises LML, so the derivative through it vanishes and the same formula holds.

Repeats of a point are one counted observation of their mean; adding
    sum over points of -(c - 1) log(2 pi v) / 2 - log(c) / 2 - scatter / (2 v)    v noise + added, c count
to the likelihood of the means makes it that of the single values.

Symmetric matrices are kept in LAPACK's rectangular full packed format: n (n + 1) / 2 numbers in a row, on which the
blocked factorisation and inverse are as fast as on full matrices, and everything else takes half as long. Squared
differences are kept in that order, an axis per row, so that all length-scale gradients are one matrix-vector product.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from raybo.surrogate.factor import JITTERS
from raybo.surrogate.kernels import Array, evaluate
from raybo.surrogate.model import Model
from raybo.surrogate.observations import Observations

LOG_2PI = math.log(2.0 * math.pi)


class Likelihood:
    """Log likelihood and log posterior of theta given observations; the object owns its working memory.

    Attributes:
        observations: n >= 1 of them. model: kernel, mean and priors.
    """

    def __init__(self, observations: Observations, model: Model) -> None:
        self.observations, self.model = observations, model
        self.n, self.d = len(observations.X), len(observations.categorical)
        rows, columns, self._diagonal = packed_places(self.n)
        self._rows, self._columns = rows, columns
        self._D = np.empty((self.d, len(rows)))
        for j, is_categorical in enumerate(observations.categorical):
            a, b = observations.X[rows, j], observations.X[columns, j]
            self._D[j] = a != b if is_categorical else np.square(a - b)
        if model.shared_lengthscale:
            self._D = self._D.sum(axis=0, keepdims=True)
        self._q, self._k, self._slope, self._A = np.empty((4, len(rows)))
        self._repeated = bool(np.any(observations.counts > 1.0))

    def log_posterior(self, theta: Array) -> tuple[float, Array]:  # (p,)
        """Log marginal likelihood plus log prior at theta, and its gradient; -inf where A cannot be factorised."""
        value, gradient = self.log_marginal(theta)
        prior, slope = self.model.log_prior(theta)
        return value + prior, gradient + slope

    def log_marginal(self, theta: Array) -> tuple[float, Array]:  # (p,)
        """Log marginal likelihood at theta, and its gradient; -inf where A cannot be factorised."""
        n, k = self.n, len(theta) - 2
        outputscale, noise_variance = math.exp(theta[k]), math.exp(theta[k + 1])
        factorised = self._factorise(theta)
        if factorised is None:
            return -math.inf, np.zeros_like(theta)
        L, alpha, residual = factorised
        value = self._value(L, alpha, residual)
        inverse, _ = lapack.dpftri(n, L, uplo="L", overwrite_a=1)
        G, columns = self._q, self._k  # alpha alpha' - A^-1; both buffers are free by now
        np.take(alpha, self._rows, out=G, mode="clip")
        np.take(alpha, self._columns, out=columns, mode="clip")
        G *= columns
        G -= inverse
        diagonal = G[self._diagonal]
        G *= self._slope
        gradient = np.empty_like(theta)
        # each pair stands for two entries, which takes the half away; D is 0 on the diagonal
        gradient[:k] = -2.0 * outputscale * np.exp(-2.0 * theta[:k]) * (self._D @ G)
        o = self.observations
        gradient[k + 1] = noise_variance * float((0.5 * diagonal / o.counts).sum())
        # K = A - N, so that tr((alpha alpha' - A^-1) K) = r' alpha - n - tr((alpha alpha' - A^-1) N); jitter is K's
        gradient[k] = 0.5 * (float(residual @ alpha) - n - float(diagonal @ o.noise(noise_variance)))
        if self._repeated:
            value += repeats(o, noise_variance)
            v = o.noise_of_values(noise_variance)
            share = noise_variance / v  # of the noise that is estimated; 1 unless values were predicted
            gradient[k + 1] += 0.5 * float(((o.scatter / v - (o.counts - 1.0)) * share).sum())
        return value, gradient

    def log_density(self, theta: Array) -> float:
        """The value of `log_posterior` alone, at a third of its cost."""
        factorised = self._factorise(theta)
        if factorised is None:
            return -math.inf
        value = self._value(*factorised)
        if self._repeated:
            value += repeats(self.observations, math.exp(theta[-1]))
        return float(value + self.model.log_prior(theta)[0])

    def _factorise(self, theta: Array) -> tuple[Array, Array, Array] | None:
        """The packed factor of A, alpha and r; the slopes of the kernel are left in `_slope`."""
        n, y = self.n, self.observations.y
        k = len(theta) - 2
        outputscale = math.exp(theta[k])
        np.dot(np.exp(-2.0 * theta[:k]), self._D, out=self._q)
        evaluate(self.model.kernel, self._q, self._k, self._slope)
        noise = self.observations.noise(math.exp(theta[k + 1]))
        for jitter in JITTERS:
            np.multiply(self._k, outputscale, out=self._A)
            self._A[self._diagonal] += noise + jitter * outputscale
            L, info = lapack.dpftrf(n, self._A, uplo="L", overwrite_a=1)
            if info == 0:
                alpha, residual = self._weights(L, y)
                return L, alpha, residual
        return None

    def _weights(self, L: Array, y: Array) -> tuple[Array, Array]:  # (n,), (n,)
        """alpha and r."""
        alpha, _ = lapack.dpftrs(self.n, L, y, uplo="L")
        if self.model.mean == "zero":
            return alpha, y
        beta, _ = lapack.dpftrs(self.n, L, np.ones(self.n), uplo="L")
        mean = float(alpha.sum() / beta.sum())
        return alpha - mean * beta, y - mean

    def _value(self, L: Array, alpha: Array, residual: Array) -> float:
        """The likelihood of the points' means."""
        logdet = 2.0 * float(np.log(L[self._diagonal]).sum())
        return -0.5 * (float(residual @ alpha) + logdet + self.n * LOG_2PI)


def repeats(observations: Observations, noise_variance: float) -> float:
    """What repeated values add to the log likelihood of their means."""
    o = observations
    v = o.noise_of_values(noise_variance)
    logs = math.log(noise_variance) if o.added is None else np.log(v)
    terms = (o.counts - 1.0) * (logs + LOG_2PI) + np.log(o.counts) + o.scatter / v
    return -0.5 * float(terms.sum())


def packed_places(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Row and column of each number of a packed lower triangle, and where in it the diagonal lies, in order."""
    labels = np.arange(float(n * n)).reshape(n, n)  # exact up to n = 90 million
    packed, _ = lapack.dtrttf(labels, uplo="L")
    rows, columns = np.divmod(packed.astype(np.intp), n)
    diagonal = np.flatnonzero(rows == columns)
    return rows, columns, diagonal[np.argsort(rows[diagonal])]
