"""Log marginal likelihood of a structured kernel and its gradient in theta, and the most likely theta.

    LML and its derivative as in `likelihood`, with A = K(W) + diag((noise + added) / counts), W the warped points
    dK/dlog a_j = dK/dw dw/dlog a_j, both points of a pair counted

Symmetric matrices are kept in LAPACK's rectangular full packed format, as there; the q_j are rows of one array, so that
all profiles are evaluated in one call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import lapack

from raybo.surrogate.factor import JITTERS
from raybo.surrogate.fit import climbed
from raybo.surrogate.kernels import Array, evaluate
from raybo.surrogate.likelihood import LOG_2PI, packed_places, repeats
from raybo.surrogate.observations import Observations
from raybo.surrogate.structured import Structure, StructuredKernel
from raybo.surrogate.warping import warped_in_logs


class StructuredLikelihood:
    """Log likelihood and log posterior of theta given observations.

    Attributes:
        observations: n >= 1 of them. structure: of the kernel.
    """

    def __init__(self, observations: Observations, structure: Structure) -> None:
        self.observations, self.structure = observations, structure
        self.n = len(observations.X)
        self._rows, self._columns, self._diagonal = packed_places(self.n)
        self._repeated = bool(np.any(observations.counts > 1.0))
        self._away = self._differences(observations.X)

    def _differences(self, X: Array) -> Array:  # (d, pairs): x_j - x'_j, or 1 where categories differ
        away = np.ascontiguousarray((X[self._rows] - X[self._columns]).T)
        for j, is_categorical in enumerate(self.structure.categorical):
            if is_categorical:
                away[j] = away[j] != 0.0
        return away

    def log_posterior(self, theta: Array) -> tuple[float, Array]:  # (p,)
        """Log marginal likelihood plus log prior at theta, and its gradient; -inf where A cannot be factorised."""
        value, gradient = self.log_marginal(theta)
        prior, slope = self.structure.log_prior(theta)
        return value + prior, gradient + slope

    def log_marginal(self, theta: Array) -> tuple[float, Array]:  # (p,)
        """Log marginal likelihood at theta, and its gradient; -inf where A cannot be factorised."""
        structure, o, n, d = self.structure, self.observations, self.n, self.structure.d
        kernel, noise_variance = structure.kernel(theta), math.exp(theta[-1])
        W = kernel.inner(o.X)
        away = self._differences(W) if structure.is_warped else self._away
        Q = np.empty((d + 1 if structure.is_sum else 1, len(self._rows)))
        each = np.square(away / kernel.lengthscale[:, None])
        np.sum(each, axis=0, out=Q[0])
        Q[1:] = each[: len(Q) - 1]
        K, slope = np.empty_like(Q), np.empty_like(Q)
        evaluate("matern52", Q, K, slope)
        share = kernel.total / d
        A = kernel.product * K[0]
        if structure.is_sum:
            sums = share * K[1:].sum(axis=0)
            A += sums
        if structure.has_trend:
            inner = self._inner_products(W)
            trend = kernel.trend * inner * (1.0 + inner)
            A += trend
        L = self._factor(A, o.noise(noise_variance))
        if L is None:
            return -math.inf, np.zeros_like(theta)
        alpha, residual = self._weights(L)
        value = -0.5 * (float(residual @ alpha) + n * LOG_2PI) - float(np.log(L[self._diagonal]).sum())
        inverse, _ = lapack.dpftri(n, L, uplo="L", overwrite_a=1)
        G = alpha[self._rows] * alpha[self._columns] - inverse
        diagonal = G[self._diagonal].copy()
        G[self._diagonal] *= 0.5  # each other pair stands for two entries, which takes the half away
        gradient = np.empty_like(theta)
        steep = kernel.product * slope[0] + (share * slope[1:] if structure.is_sum else 0.0)
        steep = np.broadcast_to(steep * G, each.shape)
        gradient[:d] = -2.0 * np.einsum("jp,jp->j", steep, each)
        scales = [kernel.product * float(G @ K[0])]
        if structure.is_sum:
            scales.append(float(G @ sums))
        if structure.has_trend:
            scales.append(float(G @ trend))
        gradient[structure.scales] = scales
        if structure.is_warped:
            gradient[structure.warps] = self._in_warps(kernel, W, away, steep, G)
        gradient[-1] = 0.5 * noise_variance * float((diagonal / o.counts).sum())
        if self._repeated:
            value += repeats(o, noise_variance)
            variance = o.noise_of_values(noise_variance)
            in_noise = noise_variance / variance  # of the noise that is estimated; 1 unless values were predicted
            gradient[-1] += 0.5 * float(((o.scatter / variance - (o.counts - 1.0)) * in_noise).sum())
        return value, gradient

    def _inner_products(self, W: Array) -> Array:  # (pairs,)
        axes = self.structure.ordered
        Z = 2.0 * W[:, axes] - 1.0
        products: Array = Z @ Z.T / self.structure.root
        return products[self._rows, self._columns]

    def _in_warps(self, kernel: StructuredKernel, W: Array, away: Array, steep: Array, G: Array) -> Array:  # (2 k,)
        """The derivatives in log a and log b, by way of those in W."""
        axes, n = self.structure.ordered, self.n
        rising = np.empty((n, len(axes)))  # dLML/dW
        for k, j in enumerate(axes):
            F = steep[j] * away[j]
            rising[:, k] = np.bincount(self._rows, F, n) - np.bincount(self._columns, F, n)
        rising *= 2.0 * kernel.lengthscale[axes] ** -2.0
        if self.structure.has_trend:
            Z = 2.0 * W[:, axes] - 1.0
            R = np.zeros((n, n))
            R[self._rows, self._columns] = G * (1.0 + 2.0 * self._inner_products(W))
            rising += (2.0 * kernel.trend / self.structure.root) * ((R + R.T) @ Z)
        assert kernel.warps is not None
        in_a, in_b = warped_in_logs(self.observations.X[:, axes], *kernel.warps)
        return np.concatenate([(rising * in_a).sum(axis=0), (rising * in_b).sum(axis=0)])

    def _factor(self, A: Array, noise: Array) -> Array | None:
        scale = float(A[self._diagonal].mean())
        for jitter in JITTERS:
            B = A.copy()
            B[self._diagonal] += noise + jitter * scale
            L, info = lapack.dpftrf(self.n, B, uplo="L", overwrite_a=1)
            if info == 0:
                return np.asarray(L)
        return None

    def _weights(self, L: Array) -> tuple[Array, Array]:  # (n,), (n,)
        """alpha and r."""
        y = self.observations.y
        alpha, _ = lapack.dpftrs(self.n, L, y, uplo="L")
        if not self.structure.has_mean:
            return alpha, y
        beta, _ = lapack.dpftrs(self.n, L, np.ones(self.n), uplo="L")
        mean = float(alpha.sum() / beta.sum())
        return alpha - mean * beta, y - mean


def fit_structured(
    observations: Observations, structure: Structure, starts: Sequence[Array] = ()
) -> tuple[Array, float]:  # (p,)
    """theta that maximises the log posterior, climbing from the starts or from the structure's own; and the maximum.

    Raises:
        NumericalError: the likelihood is not finite at any start.
    """
    bounds = structure.bounds
    return climbed(
        StructuredLikelihood(observations, structure),
        starts or [structure.start],
        bounds,
        np.ones(len(bounds), dtype=bool),
    )
