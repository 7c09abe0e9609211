"""A kernel with the structure that many objectives have: bent axes, sums over axes, a trend.

    k(x, x') = s M(q) + (t / d) sum_j M(q_j) + u (l + l^2)

    q_j   D_j / lengthscale_j^2 and q = sum_j q_j, as in `kernels`, of warped inputs w(x) (see `warping`)
    M     the profile of a stationary kernel, see `kernels`
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

from raybo.surrogate.kernels import Array, Gradients, KernelName, evaluate, profile, squared_distances
from raybo.surrogate.priors import Hyperparameter, LogNormal
from raybo.surrogate.warping import warped, warped_slope

# two categories are 1 apart, numbers 0.4 in root mean square: with the length-scales of numbers one category that
# differs would leave a correlation of 0.05, and if all axes were categories no result would say anything of another
CATEGORY = Hyperparameter(LogNormal(1.1, 1.0), low=5e-3, high=20.0, start=math.exp(1.1))
# the last of a few fidelities is expected to be much like the one before: from the lowest to the highest, 0.8
FIDELITY = Hyperparameter(LogNormal(0.7, 0.7), low=5e-2, high=20.0, start=2.0)
SUM = Hyperparameter(LogNormal(0.0, 1.5), low=1e-3, high=1e2, start=1.0)
TREND = Hyperparameter(LogNormal(-2.3, 1.5), low=1e-4, high=1e2, start=math.exp(-2.3))
WARP = Hyperparameter(LogNormal(0.0, 0.7), low=math.exp(-2.3), high=math.exp(2.3), start=1.0)


@dataclass(frozen=True)
class Structure:
    """The parts of a kernel beside the stationary one, on given axes.

    theta holds logs: d length-scales, then s, t, u, as many as there are, the exponents a and b of each ordered axis
    if axes are warped, and the noise variance.

    Attributes:
        categorical: per axis, true if only equality of coordinates counts.
        is_warped, is_sum, has_trend: the parts.
        has_fidelity: true if the last axis is that of a fidelity.
    """

    categorical: tuple[bool, ...]
    is_warped: bool = False
    is_sum: bool = False
    has_trend: bool = False
    has_fidelity: bool = False

    @classmethod
    def of(
        cls,
        categorical: Sequence[bool],
        *,
        is_warped: bool = False,
        is_sum: bool = False,
        has_trend: bool = False,
        has_fidelity: bool = False,
    ) -> Structure:
        """Return the parts that matter on such axes: categories have no slopes and no ends, and one axis has no sum."""
        has_order = not all(categorical)
        return cls(
            tuple(categorical),
            is_warped and has_order,
            is_sum and len(categorical) > 1,
            has_trend and has_order,
            has_fidelity,
        )

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

    def hyperparameters(
        self, lengthscale: Hyperparameter, outputscale: Hyperparameter, noise_variance: Hyperparameter
    ) -> tuple[Hyperparameter, ...]:  # p of them
        """Return the hyperparameters of each entry of theta, given those that every kernel has."""
        lengthscales = [CATEGORY if is_categorical else lengthscale for is_categorical in self.categorical]
        if self.has_fidelity:
            lengthscales[-1] = FIDELITY
        scales = [outputscale] + [SUM] * self.is_sum + [TREND] * self.has_trend
        warps = [WARP] * (2 * len(self.ordered) * self.is_warped)
        return (*lengthscales, *scales, *warps, noise_variance)

    @property
    def scales(self) -> slice:
        """The places of s, t and u in theta."""
        return slice(self.d, self.d + 1 + self.is_sum + self.has_trend)

    @property
    def warps(self) -> slice:
        """The places of a and b in theta."""
        return slice(self.scales.stop, self.scales.stop + 2 * len(self.ordered) * self.is_warped)

    def kernel(self, name: KernelName, theta: Array) -> StructuredKernel:
        """Return the kernel with that profile and the hyperparameters of theta."""
        scales = iter(np.exp(theta[self.scales]).tolist())
        product = next(scales)
        total = next(scales) if self.is_sum else 0.0
        trend = next(scales) if self.has_trend else 0.0
        warps = np.exp(theta[self.warps].reshape(2, -1)) if self.is_warped else None
        return StructuredKernel(self, name, np.exp(theta[: self.d]), product, total, trend, warps)


@dataclass(frozen=True, eq=False)
class StructuredKernel:
    """k(x, x') with its hyperparameters, between points that `inner` has warped.

    Attributes:
        name: of the profile M. lengthscale: (d,). product, total, trend: s, t and u. warps: (2, k), a and b, or None.
    """

    structure: Structure
    name: KernelName
    lengthscale: Array
    product: float
    total: float
    trend: float
    warps: Array | None

    @property
    def categorical(self) -> tuple[bool, ...]:
        """Per axis, true if only equality of coordinates counts."""
        return self.structure.categorical

    def inner(self, X: Array) -> Array:  # (m, d)
        """Return the warped points, between which the kernel is computed."""
        if self.warps is None:
            return X
        axes = self.structure.ordered
        W = X.copy()
        W[:, axes] = warped(X[:, axes], *self.warps)
        return W

    def chained(self, X: Array, *gradients: Array) -> tuple[Array, ...]:  # (m, d) each
        """Return gradients in x from those in the warped points: times dw/dx along each axis that is warped."""
        if self.warps is None:
            return gradients
        axes = self.structure.ordered
        slope = np.ones_like(X)
        slope[:, axes] = warped_slope(X[:, axes], *self.warps)
        return tuple(gradient * slope for gradient in gradients)

    def matrix(self, V: Array, W: Array) -> Array:  # (m, d), (n, d) -> (m, n)
        """Return k between warped points."""
        K = profile(self.name, squared_distances(V, W, self.lengthscale, self.structure.categorical))
        K *= self.product
        if self.total:
            sums = np.zeros_like(K)
            for j in range(self.structure.d):
                sums += profile(self.name, self.distances(V, W, j))
            K += (self.total / self.structure.d) * sums
        if self.trend:
            inner = self._inner_products(V, W)
            K += self.trend * inner * (1.0 + inner)
        return K

    def diagonal(self, V: Array) -> Array:  # (m, d) -> (m,)
        """Return k(x, x) at warped points."""
        level = np.full(len(V), self.product + self.total)
        if self.trend:
            inner = self._own_products(V)
            level += self.trend * inner * (1.0 + inner)
        return level

    def diagonal_gradient(self, V: Array) -> Array:  # (m, d)
        """Return the gradient of k(x, x) in warped coordinates."""
        gradient = np.zeros_like(V)
        if self.trend:
            axes = self.structure.ordered
            slope = self.trend * (1.0 + 2.0 * self._own_products(V))
            gradient[:, axes] = slope[:, None] * 4.0 * (2.0 * V[:, axes] - 1.0) / self.structure.root
        return gradient

    def matrix_and_gradients(self, V: Array, W: Array) -> tuple[Array, Gradients]:  # (m, d), (n, d) -> (m, n)
        """Return k between warped points, and its gradients in the former."""
        d = self.structure.d
        Q = np.empty((d + 1 if self.total else 1, len(V), len(W)))
        Q[0] = squared_distances(V, W, self.lengthscale, self.structure.categorical)
        for j in range(len(Q) - 1):
            Q[j + 1] = self.distances(V, W, j)
        k, slope = np.empty_like(Q), np.empty_like(Q)
        evaluate(self.name, Q, k, slope)
        K = self.product * k[0]
        if self.total:
            K += (self.total / d) * k[1:].sum(axis=0)
        rise = None
        if self.trend:
            inner = self._inner_products(V, W)
            K += self.trend * inner * (1.0 + inner)
            rise = 1.0 + 2.0 * inner
        return K, StructuredGradients(self, V, W, self.product * slope[0], (self.total / d) * slope[1:], rise)

    def distances(self, V: Array, W: Array, j: int) -> Array:  # (m, n)
        """Return q_j, along one axis."""
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
class StructuredGradients:
    """The gradients of k between points V (m, d) and W (n, d), in V's warped coordinates.

    Attributes:
        product: (m, n), s times the profile's slope. each: (d, m, n), t / d times that of each axis, if there are sums.
        rise: (m, n), 1 + 2 l, if there is a trend.
    """

    kernel: StructuredKernel
    V: Array
    W: Array
    product: Array
    each: Array
    rise: Array | None

    def contract(self, weights: Array) -> Array:  # (m, n) or (n,) -> (m, d)
        """Return sum_n weights_n dk(v, w_n)/dv; 0 along categories."""
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
