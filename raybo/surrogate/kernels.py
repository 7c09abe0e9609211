"""Stationary kernels with a length-scale an axis (ARD), as functions of the squared scaled distance.

    q(x, x') = sum_j D_j(x, x') / lengthscale_j^2        D_j = (x_j - x'_j)^2, or 1[x_j != x'_j] on a categorical axis
    k(x, x') = outputscale * profile(q)

The equality distance is that of a one-hot embedding with one length-scale, so every profile stays positive definite.
Writing everything in q leaves no 0/0 at coinciding points.

Rasmussen, Williams (2006), "Gaussian Processes for Machine Learning", section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
KernelName = Literal["rbf", "matern32", "matern52"]
KERNELS: tuple[KernelName, ...] = ("rbf", "matern32", "matern52")


def profile(kernel: KernelName, q: Array) -> Array:
    """The kernel at squared scaled distance q, with unit outputscale."""
    if kernel == "rbf":
        return np.exp(-0.5 * q)
    if kernel == "matern32":
        s = np.sqrt(3.0 * q)
        return (1.0 + s) * np.exp(-s)
    s = np.sqrt(5.0 * q)
    return (1.0 + s + s * s / 3.0) * np.exp(-s)


def profile_and_slope(kernel: KernelName, q: Array) -> tuple[Array, Array]:
    """The kernel and its derivative with respect to q."""
    if kernel == "rbf":
        k = np.exp(-0.5 * q)
        return k, -0.5 * k
    if kernel == "matern32":
        s = np.sqrt(3.0 * q)
        e = np.exp(-s)
        return (1.0 + s) * e, -1.5 * e
    s = np.sqrt(5.0 * q)
    e = np.exp(-s)
    slope = (1.0 + s) * e
    return slope + s * s / 3.0 * e, (-5.0 / 6.0) * slope


def squared_distances(A: Array, B: Array, lengthscale: Array, categorical: Sequence[bool]) -> Array:  # (m, n)
    """q between the rows of A (m, d) and of B (n, d)."""
    flags = np.asarray(categorical, dtype=bool)
    a, b = A / lengthscale, B / lengthscale
    if flags.any():
        a, b = a[:, ~flags], b[:, ~flags]
    # the expanded form is one matrix product; cancellation is at most 1e-16 of the largest squared norm
    q: Array = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :] - 2.0 * (a @ b.T)
    np.maximum(q, 0.0, out=q)
    for j in np.flatnonzero(flags):
        q += (A[:, j][:, None] != B[:, j][None, :]) / lengthscale[j] ** 2
    return q


def pairwise_by_axis(X: Array, categorical: Sequence[bool]) -> Array:  # (n (n - 1) / 2, d)
    """D_j for every pair of rows i > k, in the order of `np.tril_indices(n, -1)`."""
    rows, columns = np.tril_indices(len(X), -1)
    D: Array = np.square(X[rows] - X[columns])
    for j in np.flatnonzero(np.asarray(categorical, dtype=bool)):
        D[:, j] = X[rows, j] != X[columns, j]
    return D
