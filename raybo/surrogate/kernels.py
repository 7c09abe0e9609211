"""Stationary kernels with a length-scale per axis (ARD), as functions of the squared scaled distance.

    q(x, x') = sum_j D_j(x, x') / lengthscale_j^2        D_j = (x_j - x'_j)^2, or 1[x_j != x'_j] on a categorical axis
    k(x, x') = outputscale * profile(q)

The equality distance is that of a one-hot embedding with one length-scale, so every profile stays positive definite.
Writing everything in q leaves no 0/0 at coinciding points:
    dk/dx_j  = 2 outputscale slope(q) (x_j - x'_j) / lengthscale_j^2                          slope = dprofile/dq
    d2k/dx_i dx'_j = -2 outputscale (slope(q) [i = j] / l_i^2 + 2 curvature(q) D_i D_j / (l_i l_j)^2)    D = x - x'

Rasmussen, Williams (2006), "Gaussian Processes for Machine Learning", section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybo.surrogate.blocks import block_rows, blocks

Array: TypeAlias = NDArray[np.float64]
KernelName = Literal["rbf", "matern32", "matern52"]
KERNELS: tuple[KernelName, ...] = ("rbf", "matern32", "matern52")

SHORT = 1e-3  # axes with shorter length-scales are differenced directly; see `squared_distances`


def profile(kernel: KernelName, q: Array) -> Array:
    """Return the kernel at squared scaled distance q, with unit outputscale."""
    if kernel == "rbf":
        return np.exp(-0.5 * q)
    s = np.sqrt((3.0 if kernel == "matern32" else 5.0) * q)
    k = 1.0 + s
    if kernel == "matern52":
        k += (5.0 / 3.0) * q
    k *= np.exp(np.negative(s, out=s), out=s)
    return k


def profile_and_slope(kernel: KernelName, q: Array) -> tuple[Array, Array]:
    """Return the kernel and its derivative with respect to q."""
    k, slope = np.empty_like(q), np.empty_like(q)
    evaluate(kernel, q.copy(), k, slope)
    return k, slope


def evaluate(kernel: KernelName, q: Array, k: Array, slope: Array) -> None:
    """Write the kernel and its derivative with respect to q into k and slope; q is used up."""
    if kernel == "rbf":
        np.multiply(q, -0.5, out=q)
        np.exp(q, out=k)
        np.multiply(k, -0.5, out=slope)
    elif kernel == "matern32":
        q *= 3.0
        np.sqrt(q, out=q)
        np.add(q, 1.0, out=k)
        np.exp(np.negative(q, out=q), out=q)
        k *= q
        np.multiply(q, -1.5, out=slope)
    else:
        np.multiply(q, 5.0 / 3.0, out=k)
        q *= 5.0
        np.sqrt(q, out=q)
        np.add(q, 1.0, out=slope)
        k += slope
        np.exp(np.negative(q, out=q), out=q)
        k *= q
        slope *= q
        slope *= -5.0 / 6.0


def curvature(kernel: KernelName, q: Array) -> Array:
    """Return the second derivative of the kernel in q; Matern-3/2's is infinite at 0, and 0 is given there.

    It only ever multiplies products of differences, which vanish faster.
    """
    if kernel == "rbf":
        return 0.25 * np.exp(-0.5 * q)
    if kernel == "matern32":
        s = np.sqrt(3.0 * q)
        return np.divide(2.25 * np.exp(-s), s, out=np.zeros_like(s), where=s > 0.0)
    return (25.0 / 12.0) * np.exp(-np.sqrt(5.0 * q))


def squared_distances(A: Array, B: Array, lengthscale: Array, categorical: Sequence[bool]) -> Array:  # (m, n)
    """Return q between the rows of A (m, d) and of B (n, d), points of the unit cube.

    Continuous axes go through |a|^2 + |b|^2 - 2 a'b, one matrix product, whose error is a few 1e-16 of
    d / (2 lengthscale)^2, below 1e-10 for each axis that is not SHORT; the others are differenced directly.
    """
    categories = np.asarray(categorical, dtype=bool)
    direct = categories | (lengthscale < SHORT)
    a, b = (A - 0.5) / lengthscale, (B - 0.5) / lengthscale
    if direct.any():
        a, b = a[:, ~direct], b[:, ~direct]
    q = a @ (-2.0 * b).T
    q += np.einsum("ij,ij->i", a, a)[:, None]
    q += np.einsum("ij,ij->i", b, b)
    np.maximum(q, 0.0, out=q)
    for j in np.flatnonzero(direct):
        if categories[j]:
            q += (A[:, j, None] != B[:, j]) / lengthscale[j] ** 2
        else:
            q += np.square((A[:, j, None] - B[:, j]) / lengthscale[j])
    return q


class Gradients(Protocol):
    """The gradients of a kernel between m points and n others, in the former."""

    def contract(self, weights: Array) -> Array:  # (m, n) or (n,) -> (m, d)
        """Return sum_n weights_n dk(v, w_n)/dv; 0 along categorical axes."""
        ...


class Kernel(Protocol):
    """A covariance function with its hyperparameters.

    All but `inner` and `chained` take inner points: those of the cube, bent by a kernel that bends axes.
    """

    @property
    def categorical(self) -> tuple[bool, ...]:
        """Per axis, true if only equality of coordinates counts."""
        ...

    def inner(self, X: Array) -> Array:  # (m, d)
        """Return the inner points of points of the cube."""
        ...

    def chained(self, X: Array, *gradients: Array) -> tuple[Array, ...]:  # (m, d) each
        """Return gradients in x, at points of the cube, from those in their inner points, by the chain rule."""
        ...

    def matrix(self, V: Array, W: Array) -> Array:  # (m, d), (n, d) -> (m, n)
        """Return k between the rows of V and of W."""
        ...

    def matrix_and_gradients(self, V: Array, W: Array) -> tuple[Array, Gradients]:  # (m, d), (n, d) -> (m, n)
        """Return k between the rows of V and of W, and its gradients in the former."""
        ...

    def diagonal(self, V: Array) -> Array:  # (m, d) -> (m,)
        """Return k(v, v) for each row of V."""
        ...

    def diagonal_gradient(self, V: Array) -> Array:  # (m, d)
        """Return the gradient of k(v, v) for each row of V."""
        ...


@dataclass(frozen=True, eq=False)
class StationaryKernel:
    """A stationary kernel k(x, x') with its hyperparameters.

    Attributes:
        name: of the profile.
        lengthscale: (d,), in sides of the cube. outputscale: the variance k(x, x).
        categorical: per axis, whether only equality of coordinates counts.
    """

    name: KernelName
    lengthscale: Array
    outputscale: float
    categorical: tuple[bool, ...]

    @cached_property
    def metric(self) -> Array:  # (d,)
        """1 / lengthscale^2, and 0 on categorical axes, along which nothing has a slope."""
        return np.where(np.asarray(self.categorical), 0.0, self.lengthscale**-2.0)

    @cached_property
    def slope_at_zero(self) -> float:
        """outputscale times the slope of the profile at 0: the gradient of f has variance -2 metric times this."""
        return -self.outputscale * {"rbf": 0.5, "matern32": 1.5, "matern52": 5.0 / 6.0}[self.name]

    def matrix(self, A: Array, B: Array) -> Array:  # (m, n)
        """Return k between the rows of A (m, d) and of B (n, d)."""
        if len(A) <= block_rows(len(B)):
            K = profile(self.name, self.squared_distances(A, B))
            K *= self.outputscale
            return K
        K = np.empty((len(A), len(B)))
        for rows in blocks(len(A), len(B)):
            K[rows] = self.matrix(A[rows], B)
        return K

    def matrix_and_slope(self, A: Array, B: Array) -> tuple[Array, Array]:  # (m, n), (m, n)
        """Return k, and outputscale times the profile's slope, between the rows of A and of B."""
        k, slope = profile_and_slope(self.name, self.squared_distances(A, B))
        k *= self.outputscale
        slope *= self.outputscale
        return k, slope

    def inner(self, X: Array) -> Array:  # (m, d)
        """Return the points as they are."""
        return X

    def chained(self, X: Array, *gradients: Array) -> tuple[Array, ...]:  # (m, d) each
        """Return the gradients as they are."""
        return gradients

    def diagonal(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return k(x, x), the outputscale, for each row of X."""
        return np.full(len(X), self.outputscale)

    def diagonal_gradient(self, X: Array) -> Array:  # (m, d)
        """Return the gradient of k(x, x), which is zero."""
        return np.zeros(X.shape)

    def matrix_and_gradients(self, A: Array, B: Array) -> tuple[Array, Gradients]:  # (m, d), (n, d) -> (m, n)
        """Return k between the rows of A and of B, and its gradients in the former."""
        K, slope = self.matrix_and_slope(A, B)
        return K, StationaryGradients(self, A, B, slope)

    def squared_distances(self, A: Array, B: Array) -> Array:  # (m, n)
        """Return q between the rows of A (m, d) and of B (n, d)."""
        return squared_distances(A, B, self.lengthscale, self.categorical)

    def contract(self, A: Array, B: Array, weights: Array) -> Array:  # (m, d), (n, d), (m, n) -> (m, d)
        """Return 2 metric_j sum_n weights (a_j - b_j): with weights slope * c, d/da of sum_n c_n k(a, b_n)."""
        return np.asarray(2.0 * self.metric * (A * weights.sum(axis=1)[:, None] - weights @ B))


@dataclass(frozen=True, eq=False)
class StationaryGradients:
    """The gradients of a stationary kernel between points A (m, d) and B (n, d).

    Attributes:
        slope: (m, n), outputscale times the profile's slope.
    """

    kernel: StationaryKernel
    A: Array
    B: Array
    slope: Array

    def contract(self, weights: Array) -> Array:  # (m, n) or (n,) -> (m, d)
        """Return sum_n weights_n dk(a, b_n)/da; 0 along categorical axes."""
        return self.kernel.contract(self.A, self.B, self.slope * weights)
