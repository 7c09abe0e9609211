"""A Matern-5/2 kernel with the structure that many objectives have: bent axes, sums over axes, a trend.

    k(x, x') = s M(q) + (t / d) sum_j M(q_j) + u (l + l^2)

    q_j   D_j / lengthscale_j^2 and q = sum_j q_j, as in `kernels`, of warped inputs w(x) (see `warping`)
    M     the profile of Matern-5/2
    l     sum_j (2 w_j - 1)(2 w'_j - 1) / sqrt(k) over the k ordered axes: u gives a linear and a quadratic trend

If the data say so, the second term makes f a sum of functions of one axis each: Duvenaud, Nickisch, Rasmussen
(2011), "Additive Gaussian Processes", with the first and the last order. The mean is a constant by generalised least
squares, or 0. Each part is optional.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from raybo.surrogate.kernels import Array, evaluate, profile, squared_distances
from raybo.surrogate.priors import LogNormal
from raybo.surrogate.warping import warped, warped_slope

WARPS = 2.3  # the largest log of a warping's exponents: a factor of ten


@dataclass(frozen=True)
class Part:
    """A hyperparameter's prior on its log, its range there, and where a fit starts."""

    prior: LogNormal
    low: float
    high: float
    start: float


LENGTHSCALE = Part(LogNormal(-1.0, 1.0), math.log(5e-3), math.log(20.0), math.log(0.4))
# two categories are 1 apart, numbers 0.4 in root mean square: with the length-scales of numbers one category that
# differs would leave a correlation of 0.05, and where all axes are categories no result would tell of another one
CATEGORY = Part(LogNormal(1.1, 1.0), math.log(5e-3), math.log(20.0), 1.1)
OUTPUTSCALE = Part(LogNormal(0.0, 1.5), math.log(1e-2), math.log(1e2), 0.0)
SUM = Part(LogNormal(0.0, 1.5), math.log(1e-3), math.log(1e2), 0.0)
TREND = Part(LogNormal(-2.3, 1.5), math.log(1e-4), math.log(1e2), -2.3)
WARP = Part(LogNormal(0.0, 0.7), -WARPS, WARPS, 0.0)
NOISE = Part(LogNormal(-9.0, 2.0), math.log(1e-6), 0.0, math.log(1e-3))


@dataclass(frozen=True)
class Structure:
    """Which parts a kernel has, and what is assumed of each.

    theta holds logs: d length-scales, then s, t, u, as many as there are, the exponents a and b of each ordered axis
    where axes are warped, and the noise variance.

    Attributes:
        categorical: per axis, whether only equality counts.
        is_warped, is_sum, has_trend: the parts.
        has_mean: a constant mean by generalised least squares; 0 without.
    """

    categorical: tuple[bool, ...]
    is_warped: bool = False
    is_sum: bool = False
    has_trend: bool = False
    has_mean: bool = False

    @classmethod
    def of(
        cls,
        categorical: Sequence[bool],
        *,
        is_warped: bool = False,
        is_sum: bool = False,
        has_trend: bool = False,
        has_mean: bool = False,
    ) -> Structure:
        """The parts that matter on such axes: categories have neither slopes nor ends, and one axis has no sum."""
        has_order = not all(categorical)
        parts = is_warped and has_order, is_sum and len(categorical) > 1, has_trend and has_order
        return cls(tuple(categorical), *parts, has_mean)

    @property
    def d(self) -> int:
        """Number of axes."""
        return len(self.categorical)

    @cached_property
    def ordered(self) -> NDArray[np.intp]:  # (k,)
        """The axes that have an order."""
        return np.flatnonzero(~np.asarray(self.categorical, dtype=bool))

    @property
    def root(self) -> float:
        """sqrt(k), of which a trend's inner products are a fraction."""
        return math.sqrt(max(1, len(self.ordered)))

    @cached_property
    def parts(self) -> tuple[Part, ...]:  # p of them
        """What is assumed of each entry of theta."""
        scales = [OUTPUTSCALE] + [SUM] * self.is_sum + [TREND] * self.has_trend
        warps = [WARP] * (2 * len(self.ordered) * self.is_warped)
        lengthscales = [CATEGORY if is_categorical else LENGTHSCALE for is_categorical in self.categorical]
        return (*lengthscales, *scales, *warps, NOISE)

    @property
    def scales(self) -> slice:
        """Where s, t and u stand in theta."""
        return slice(self.d, self.d + 1 + self.is_sum + self.has_trend)

    @property
    def warps(self) -> slice:
        """Where a and b stand in theta."""
        return slice(self.scales.stop, self.scales.stop + 2 * len(self.ordered) * self.is_warped)

    @cached_property
    def start(self) -> Array:  # (p,)
        """theta to start from where nothing is known."""
        return np.array([part.start for part in self.parts])

    @cached_property
    def bounds(self) -> Array:  # (p, 2)
        """The range of each entry of theta."""
        return np.array([(part.low, part.high) for part in self.parts])

    def log_prior(self, theta: Array) -> tuple[float, Array]:  # (p,)
        """Log prior density of theta, up to a constant, and its gradient."""
        medians, sds = self._priors
        z = (theta - medians) / sds
        return -0.5 * float(z @ z), -z / sds

    @cached_property
    def _priors(self) -> tuple[Array, Array]:
        return (
            np.array([part.prior.log_median for part in self.parts]),
            np.array([part.prior.log_sd for part in self.parts]),
        )

    def kernel(self, theta: Array) -> StructuredKernel:
        """The kernel with the hyperparameters of theta."""
        scales = iter(np.exp(theta[self.scales]).tolist())
        product = next(scales)
        total = next(scales) if self.is_sum else 0.0
        trend = next(scales) if self.has_trend else 0.0
        warps = np.exp(theta[self.warps].reshape(2, -1)) if self.is_warped else None
        return StructuredKernel(self, np.exp(theta[: self.d]), product, total, trend, warps)


@dataclass(frozen=True, eq=False)
class StructuredKernel:
    """k(x, x') with its hyperparameters, between points that `inner` has warped.

    Attributes:
        lengthscale: (d,). product, total, trend: s, t and u. warps: (2, k), a and b, or None.
    """

    structure: Structure
    lengthscale: Array
    product: float
    total: float
    trend: float
    warps: Array | None

    def inner(self, X: Array) -> Array:  # (m, d)
        """The warped points, between which the kernel is computed."""
        if self.warps is None:
            return X
        axes = self.structure.ordered
        W = X.copy()
        W[:, axes] = warped(X[:, axes], *self.warps)
        return W

    def inner_slope(self, X: Array) -> Array:  # (m, d)
        """dw/dx; 1 where an axis is not warped."""
        slope = np.ones_like(X)
        if self.warps is not None:
            axes = self.structure.ordered
            slope[:, axes] = warped_slope(X[:, axes], *self.warps)
        return slope

    def matrix(self, V: Array, W: Array) -> Array:  # (m, d), (n, d) -> (m, n)
        """k between warped points."""
        K = profile("matern52", squared_distances(V, W, self.lengthscale, self.structure.categorical))
        K *= self.product
        if self.total:
            sums = np.zeros_like(K)
            for j in range(self.structure.d):
                sums += profile("matern52", self.distances(V, W, j))
            K += (self.total / self.structure.d) * sums
        if self.trend:
            inner = self._inner_products(V, W)
            K += self.trend * inner * (1.0 + inner)
        return K

    def diagonal(self, V: Array) -> Array:  # (m, d) -> (m,)
        """k(x, x) at warped points."""
        level = np.full(len(V), self.product + self.total)
        if self.trend:
            inner = self._own_products(V)
            level += self.trend * inner * (1.0 + inner)
        return level

    def diagonal_gradient(self, V: Array) -> Array:  # (m, d)
        """The gradient of k(x, x) in warped coordinates."""
        gradient = np.zeros_like(V)
        if self.trend:
            axes = self.structure.ordered
            slope = self.trend * (1.0 + 2.0 * self._own_products(V))
            gradient[:, axes] = slope[:, None] * 4.0 * (2.0 * V[:, axes] - 1.0) / self.structure.root
        return gradient

    def matrix_and_slopes(self, V: Array, W: Array) -> tuple[Array, Slopes]:  # (m, d), (n, d) -> (m, n)
        """k between warped points, and what its gradients in v are made of."""
        d = self.structure.d
        Q = np.empty((d + 1 if self.total else 1, len(V), len(W)))
        Q[0] = squared_distances(V, W, self.lengthscale, self.structure.categorical)
        for j in range(len(Q) - 1):
            Q[j + 1] = self.distances(V, W, j)
        k, slope = np.empty_like(Q), np.empty_like(Q)
        evaluate("matern52", Q, k, slope)
        K = self.product * k[0]
        if self.total:
            K += (self.total / d) * k[1:].sum(axis=0)
        rise = None
        if self.trend:
            inner = self._inner_products(V, W)
            K += self.trend * inner * (1.0 + inner)
            rise = 1.0 + 2.0 * inner
        return K, Slopes(self, V, W, self.product * slope[0], (self.total / d) * slope[1:], rise)

    def distances(self, V: Array, W: Array, j: int) -> Array:  # (m, n)
        """q_j, along one axis."""
        if self.structure.categorical[j]:
            return np.asarray((V[:, j, None] != W[:, j]) / self.lengthscale[j] ** 2)
        return np.asarray(np.square((V[:, j, None] - W[:, j]) / self.lengthscale[j]))

    def _inner_products(self, V: Array, W: Array) -> Array:  # (m, n)
        axes = self.structure.ordered
        return np.asarray((2.0 * V[:, axes] - 1.0) @ (2.0 * W[:, axes] - 1.0).T / self.structure.root)

    def _own_products(self, V: Array) -> Array:  # (m,)
        axes = self.structure.ordered
        return np.asarray(np.square(2.0 * V[:, axes] - 1.0).sum(axis=1) / self.structure.root)


@dataclass(frozen=True, eq=False)
class Slopes:
    """The gradients of k between points V (m, d) and W (n, d), in V's warped coordinates.

    Attributes:
        product: (m, n), s times the profile's slope. each: (d, m, n), t / d times that of each axis, if there are sums.
        rise: (m, n), 1 + 2 l, where there is a trend.
    """

    kernel: StructuredKernel
    V: Array
    W: Array
    product: Array
    each: Array
    rise: Array | None

    def contract(self, weights: Array) -> Array:  # (m, n) or (n,) -> (m, d)
        """sum_n weights_n dk(v, w_n)/dv; 0 along categories."""
        structure = self.kernel.structure
        axes = structure.ordered
        A, B = self.V[:, axes], self.W[:, axes]
        steep = weights * self.product
        found = A * steep.sum(axis=1)[:, None] - steep @ B
        if len(self.each):
            steeper = weights * self.each[axes]
            found += A * steeper.sum(axis=2).T - np.einsum("jmn,nj->mj", steeper, B)
        found *= 2.0 * self.kernel.lengthscale[axes] ** -2.0
        if self.rise is not None:
            found += (2.0 * self.kernel.trend / structure.root) * ((weights * self.rise) @ (2.0 * B - 1.0))
        gradient = np.zeros_like(self.V)
        gradient[:, axes] = found
        return gradient
