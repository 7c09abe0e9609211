"""Log marginal likelihood of an exact GP and its gradient in theta, made to be evaluated many times on the same data.

    A = K + N + jitter I        N = diag((noise + added) / counts)        r = y - mean        alpha = A^-1 r
    LML = -r' alpha / 2 - logdet(A) / 2 - n log(2 pi) / 2
    dLML / dtheta_j = tr((alpha alpha' - A^-1) dA/dtheta_j) / 2

Rasmussen, Williams (2006), algorithm 2.1 and eq. (5.9). With a constant mean, the generalised least squares estimate
maximises LML, so the derivative through it vanishes and the same formula holds.

Repeats of a point are one counted observation of their mean; adding
    sum over points of -(c - 1) log(2 pi v) / 2 - log(c) / 2 - scatter / (2 v)    v noise + added, c count
to the likelihood of the means makes it that of the single values.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import lapack

from raybo.surrogate.factor import JITTERS
from raybo.surrogate.kernels import Array
from raybo.surrogate.model import Model
from raybo.surrogate.observations import Observations
from raybo.surrogate.pairs import Covariances, Places, pairs_of

LOG_2PI = math.log(2.0 * math.pi)


class Likelihood:
    """Log likelihood and log posterior of theta given observations; the object owns its working memory.

    Attributes:
        observations: n >= 1 of them. model: kernel, mean and priors.
    """

    def __init__(self, observations: Observations, model: Model) -> None:
        self.observations, self.model = observations, model
        self.n, self.d = len(observations.X), len(observations.categorical)
        self._places = Places.of(self.n)
        self._pairs = pairs_of(model, observations.X, observations.categorical, self._places)
        self._A, self._G, self._columns = np.empty((3, len(self._places.rows)))
        self._repeated = bool(np.any(observations.counts > 1.0))

    def log_posterior(self, theta: Array) -> tuple[float, Array]:  # (p,)
        """Return log marginal likelihood plus log prior at theta, and its gradient.

        The value is -inf if A cannot be factorised.
        """
        value, gradient = self.log_marginal(theta)
        prior, slope = self.model.log_prior(theta)
        return value + prior, gradient + slope

    def log_marginal(self, theta: Array) -> tuple[float, Array]:  # (p,)
        """Return the log marginal likelihood at theta, and its gradient; -inf if A cannot be factorised."""
        n, o, places = self.n, self.observations, self._places
        covariances = self._pairs.at(theta)
        L = self._factor(covariances, theta)
        if L is None:
            return -math.inf, np.zeros_like(theta)
        alpha, residual = self._weights(L)
        noise_variance = math.exp(theta[-1])
        value = self._value(L, alpha, residual)
        inverse, _ = lapack.dpftri(n, L, uplo="L", overwrite_a=1)
        G, columns = self._G, self._columns  # alpha alpha' - A^-1
        np.take(alpha, places.rows, out=G, mode="clip")
        np.take(alpha, places.columns, out=columns, mode="clip")
        G *= columns
        G -= inverse
        diagonal = G[places.diagonal]
        # K = A - N, so that tr((alpha alpha' - A^-1) K) = r' alpha - n - tr((alpha alpha' - A^-1) N); jitter is K's
        half_trace = 0.5 * (float(residual @ alpha) - n - float(diagonal @ o.noise(noise_variance)))
        gradient = np.empty_like(theta)
        gradient[:-1] = covariances.gradient(G, half_trace)
        gradient[-1] = noise_variance * float((0.5 * diagonal / o.counts).sum())
        if self._repeated:
            value += repeats(o, noise_variance)
            v = o.noise_of_values(noise_variance)
            share = noise_variance / v  # of the noise that is estimated; 1 unless values were predicted
            gradient[-1] += 0.5 * float(((o.scatter / v - (o.counts - 1.0)) * share).sum())
        return value, gradient

    def log_density(self, theta: Array) -> float:  # (p,)
        """Return the value of `log_posterior` alone, at a third of its cost."""
        L = self._factor(self._pairs.at(theta), theta)
        if L is None:
            return -math.inf
        value = self._value(L, *self._weights(L))
        if self._repeated:
            value += repeats(self.observations, math.exp(theta[-1]))
        return float(value + self.model.log_prior(theta)[0])

    def _factor(self, covariances: Covariances, theta: Array) -> Array | None:  # (pairs,)
        """Return the packed factor of A; None if it has none, with all the jitter of `factor.JITTERS`."""
        noise = self.observations.noise(math.exp(theta[-1]))
        for jitter in JITTERS:
            np.copyto(self._A, covariances.K)
            self._A[self._places.diagonal] += noise + jitter * covariances.scale
            L, info = lapack.dpftrf(self.n, self._A, uplo="L", overwrite_a=1)
            if info == 0:
                return np.asarray(L)
        return None

    def _weights(self, L: Array) -> tuple[Array, Array]:  # (n,), (n,)
        """Return alpha and r."""
        y = self.observations.y
        alpha, _ = lapack.dpftrs(self.n, L, y, uplo="L")
        if self.model.mean == "zero":
            return alpha, y
        beta, _ = lapack.dpftrs(self.n, L, np.ones(self.n), uplo="L")
        mean = float(alpha.sum() / beta.sum())
        return alpha - mean * beta, y - mean

    def _value(self, L: Array, alpha: Array, residual: Array) -> float:
        """Return the likelihood of the points' means."""
        fit, constant = float(residual @ alpha), self.n * LOG_2PI
        logdet = 2.0 * float(np.log(L[self._places.diagonal]).sum())
        if self.model.structure is not None:  # another order would round otherwise, and change proposals' last digits
            return -0.5 * (fit + constant + logdet)
        return -0.5 * (fit + logdet + constant)


def repeats(observations: Observations, noise_variance: float) -> float:
    """Return the contribution of repeated values to the log likelihood of their means."""
    o = observations
    v = o.noise_of_values(noise_variance)
    logs = math.log(noise_variance) if o.added is None else np.log(v)
    terms = (o.counts - 1.0) * (logs + LOG_2PI) + np.log(o.counts) + o.scatter / v
    return -0.5 * float(terms.sum())
