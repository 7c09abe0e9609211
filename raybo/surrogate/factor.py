"""Cholesky factors of covariance matrices: made with as little jitter as needed, grown by rows, used to solve.

Triangular solves with the factor are used throughout, not explicit inverses: they are as fast here and lose half the
digits that an inverse loses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import lapack

from raybo.common.errors import NumericalError
from raybo.surrogate.kernels import Array

JITTERS = (0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)  # of the mean diagonal, tried in turn


def cholesky(A: Array, jitters: Sequence[float] = JITTERS, scale: float | None = None) -> tuple[Array, float]:
    """Return the lower Cholesky factor of a symmetric matrix, and what was added to its diagonal: 0 unless it failed.

    Args:
        A: (n, n).
        jitters: tried in turn, ascending.
        scale: what they are fractions of; the mean of the diagonal unless given.
    Raises:
        NumericalError: none of them makes it positive definite.
    """
    if len(A) == 0:
        return np.empty((0, 0)), 0.0
    scale = float(np.mean(np.diagonal(A))) if scale is None else scale
    for jitter in jitters:
        B = A.copy()
        B.flat[:: len(A) + 1] += jitter * scale
        L, info = lapack.dpotrf(B.T, lower=1, clean=1, overwrite_a=1)
        if info == 0 and np.isfinite(L[-1, -1]):
            return np.asarray(L), jitter * scale
    raise NumericalError(
        f"a covariance matrix of {len(A)} points is not positive definite, even with {jitters[-1] * scale:.3g} added "
        "to its diagonal"
    )


def half_solve(L: Array, B: Array, *, transposed: bool = False, overwrite: bool = False) -> Array:  # (n, ...)
    """Return L^-1 B, or L^-T B; `overwrite` allows B, Fortran-ordered, to be used up."""
    if B.size == 0:
        return B
    return np.asarray(lapack.dtrtrs(L, B, lower=1, trans=int(transposed), overwrite_b=int(overwrite))[0])


def solve(L: Array, B: Array) -> Array:  # (n, ...)
    """Return (L L')^-1 B."""
    if B.size == 0:
        return B
    return np.asarray(lapack.dpotrs(L, B, lower=1)[0])


def grown(L: Array, R: Array, corner: Array, least: Array) -> Array | None:  # (n, n), (n, m), (m, m), (m,)
    """Return the factor of a matrix with m more rows, in O(n^2 m); None if cancellation ate its digits.

    Args:
        L: factor of the old matrix.
        R: the new columns, against the old rows. corner: against each other.
        least: the least that the new squared pivots can be in exact arithmetic, the noise on the new rows. One below
            half of it is rounding error, and the factor must be made anew (with jitter, if need be).
    """
    n, m = R.shape
    if m == 0:
        return L
    V = half_solve(L, R)
    small, info = lapack.dpotrf((corner - V.T @ V).T, lower=1, clean=1)
    if info != 0 or not bool(np.all(np.diagonal(small) ** 2 >= 0.5 * least)):
        return None
    larger = np.zeros((n + m, n + m), order="F")
    larger[:n, :n], larger[n:, :n], larger[n:, n:] = L, V.T, small
    return larger
