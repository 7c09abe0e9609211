"""A kernel between all pairs of n points as a function of theta, and its derivative in theta, for a likelihood.

Symmetric matrices are kept in LAPACK's rectangular full packed format: n (n + 1) / 2 numbers in a row, on which the
blocked factorisation and inverse are as fast as on full matrices, and everything else takes half as long. Differences
between points are kept in that order, an axis per row, so that all profiles are evaluated in one call.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from raybo.surrogate.kernels import Array, KernelName, evaluate
from raybo.surrogate.model import Model
from raybo.surrogate.structured import Structure, StructuredKernel
from raybo.surrogate.warping import warped_in_logs


@dataclass(frozen=True)
class Places:
    """Row and column (pairs,) of each number of a packed lower triangle, and the places (n,) of the diagonal in it."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    diagonal: NDArray[np.intp]

    @classmethod
    def of(cls, n: int) -> Places:
        """Return those of an (n, n) matrix."""
        labels = np.arange(float(n * n)).reshape(n, n)  # exact up to n = 90 million
        packed, _ = lapack.dtrttf(labels, uplo="L")
        rows, columns = np.divmod(packed.astype(np.intp), n)
        diagonal = np.flatnonzero(rows == columns)
        return cls(rows, columns, diagonal[np.argsort(rows[diagonal])])


class Covariances(Protocol):
    """The kernel between all pairs at one theta, until the next theta is asked for."""

    @property
    def K(self) -> Array:  # (pairs,)
        """Their covariances."""
        ...

    @property
    def scale(self) -> float:
        """The mean of the points' variances."""
        ...

    def gradient(self, G: Array, half_trace: float) -> Array:  # (pairs,) -> (p - 1,)
        """Return tr(G dK/dtheta_j) / 2 for each entry of theta but the noise.

        Args:
            G: packed and symmetric; used up.
            half_trace: tr(G K) / 2, which is often known.
        """
        ...


class Pairs(Protocol):
    """All pairs of n points."""

    def at(self, theta: Array) -> Covariances:  # (p,)
        """Return the kernel between them with the hyperparameters of theta."""
        ...


def pairs_of(model: Model, X: Array, categorical: tuple[bool, ...], places: Places) -> Pairs:  # (n, d)
    """Return all pairs of the rows of X under a model's kernel."""
    if model.structure is not None:
        return StructuredPairs(model.kernel, model.structure, X, places)
    return StationaryPairs(model, X, categorical, places)


class StationaryPairs:
    """Pairs under a stationary kernel; the object owns its working memory."""

    def __init__(self, model: Model, X: Array, categorical: tuple[bool, ...], places: Places) -> None:
        self.name, size = model.kernel, len(places.rows)
        self.D = np.empty((len(categorical), size))  # squared differences, or 1 between different categories
        for j, is_categorical in enumerate(categorical):
            a, b = X[places.rows, j], X[places.columns, j]
            self.D[j] = a != b if is_categorical else np.square(a - b)
        if model.shared_lengthscale:
            self.D = self.D.sum(axis=0, keepdims=True)
        self._q, self._k, self._slope = np.empty((3, size))

    def at(self, theta: Array) -> StationaryCovariances:  # (p,)
        """Return the kernel between them with the hyperparameters of theta."""
        metric, outputscale = np.exp(-2.0 * theta[:-2]), math.exp(theta[-2])
        np.dot(metric, self.D, out=self._q)
        evaluate(self.name, self._q, self._k, self._slope)
        self._k *= outputscale
        return StationaryCovariances(self.D, metric, outputscale, self._k, self._slope)


@dataclass(frozen=True, eq=False)
class StationaryCovariances:
    """Stationary covariances K (pairs,) at one theta, with the slopes of their profile."""

    D: Array
    metric: Array
    scale: float
    K: Array
    slope: Array

    def gradient(self, G: Array, half_trace: float) -> Array:  # (pairs,) -> (p - 1,)
        """Return tr(G dK/dtheta_j) / 2 for each entry of theta but the noise."""
        G *= self.slope
        # each pair stands for two entries, which takes the half away; D is 0 on the diagonal
        gradient = np.empty(len(self.metric) + 1)
        gradient[:-1] = -2.0 * self.scale * self.metric * (self.D @ G)
        gradient[-1] = half_trace  # dK/dlog outputscale = K
        return gradient


class StructuredPairs:
    """Pairs under a structured kernel."""

    def __init__(self, name: KernelName, structure: Structure, X: Array, places: Places) -> None:
        self.name, self.structure, self.X, self.places = name, structure, X, places
        self._away = self._differences(X)

    def at(self, theta: Array) -> StructuredCovariances:  # (p,)
        """Return the kernel between them with the hyperparameters of theta."""
        structure = self.structure
        kernel = structure.kernel(self.name, theta)
        W = kernel.inner(self.X)
        away = self._differences(W) if structure.is_warped else self._away
        each = np.square(away / kernel.lengthscale[:, None])
        Q = np.empty((structure.d + 1 if structure.is_sum else 1, len(self.places.rows)))
        np.sum(each, axis=0, out=Q[0])
        Q[1:] = each[: len(Q) - 1]
        k, slope = np.empty_like(Q), np.empty_like(Q)
        evaluate(self.name, Q, k, slope)
        return StructuredCovariances(self, kernel, W, away, each, k, slope)

    def _differences(self, X: Array) -> Array:  # (d, pairs): x_j - x'_j, or 1 between different categories
        away = np.ascontiguousarray((X[self.places.rows] - X[self.places.columns]).T)
        for j, is_categorical in enumerate(self.structure.categorical):
            if is_categorical:
                away[j] = away[j] != 0.0
        return away


@dataclass(frozen=True, eq=False)
class StructuredCovariances:
    """Structured covariances at one theta, part by part.

    Attributes:
        W: (n, d), the warped points. away: (d, pairs), their differences. each: (d, pairs), the q_j.
        profiles, slopes: (1, pairs), M(q) and its derivative; (d + 1, pairs) with those of each q_j after them, if
            there are sums.
    """

    pairs: StructuredPairs
    kernel: StructuredKernel
    W: Array
    away: Array
    each: Array
    profiles: Array
    slopes: Array

    @cached_property
    def K(self) -> Array:  # (pairs,)
        """Their covariances."""
        K = np.asarray(self.kernel.product * self.profiles[0])
        for part in self._further:
            K += part
        return K

    @cached_property
    def scale(self) -> float:
        """The mean of the points' variances."""
        return float(self.K[self.pairs.places.diagonal].mean())

    def gradient(self, G: Array, half_trace: float) -> Array:  # (pairs,) -> (p - 1,)
        """Return tr(G dK/dtheta_j) / 2 for each entry of theta but the noise."""
        kernel, structure = self.kernel, self.kernel.structure
        G[self.pairs.places.diagonal] *= 0.5  # each other pair stands for two entries, which takes the half away
        in_q = kernel.product * self.slopes[0] + (self._share * self.slopes[1:] if structure.is_sum else 0.0)
        steep = np.broadcast_to(in_q * G, self.each.shape)
        gradient = np.empty(structure.warps.stop)
        gradient[: structure.d] = -2.0 * np.einsum("jp,jp->j", steep, self.each)
        gradient[structure.scales] = [
            kernel.product * float(G @ self.profiles[0]),
            *(float(G @ part) for part in self._further),
        ]
        if structure.is_warped:
            gradient[structure.warps] = self._in_warps(steep, G)
        return gradient

    @cached_property
    def _further(self) -> list[Array]:  # (pairs,) each
        """The terms of K after the first: the sum over axes and the trend, as many as there are."""
        terms = []
        if self.kernel.structure.is_sum:
            terms.append(self._share * self.profiles[1:].sum(axis=0))
        if self.kernel.structure.has_trend:
            inner = self._inner_products
            terms.append(self.kernel.trend * inner * (1.0 + inner))
        return terms

    @property
    def _share(self) -> float:
        return self.kernel.total / self.kernel.structure.d

    @cached_property
    def _inner_products(self) -> Array:  # (pairs,)
        structure, places = self.kernel.structure, self.pairs.places
        Z = 2.0 * self.W[:, structure.ordered] - 1.0
        products: Array = Z @ Z.T / structure.root
        return products[places.rows, places.columns]

    def _in_warps(self, steep: Array, G: Array) -> Array:  # (2 k,)
        """Return the derivatives in log a and log b by way of those in W: dK/dlog a = dK/dw dw/dlog a."""
        kernel, places = self.kernel, self.pairs.places
        axes, n = kernel.structure.ordered, len(self.W)
        rising = np.empty((n, len(axes)))  # dLML/dW
        for k, j in enumerate(axes):
            F = steep[j] * self.away[j]
            rising[:, k] = np.bincount(places.rows, F, n) - np.bincount(places.columns, F, n)
        rising *= 2.0 * kernel.lengthscale[axes] ** -2.0
        if kernel.structure.has_trend:
            Z = 2.0 * self.W[:, axes] - 1.0
            R = np.zeros((n, n))
            R[places.rows, places.columns] = G * (1.0 + 2.0 * self._inner_products)
            rising += (2.0 * kernel.trend / kernel.structure.root) * ((R + R.T) @ Z)
        assert kernel.warps is not None
        in_a, in_b = warped_in_logs(self.pairs.X[:, axes], *kernel.warps)
        return np.concatenate([(rising * in_a).sum(axis=0), (rising * in_b).sum(axis=0)])
