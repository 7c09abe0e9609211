"""Cholesky factors: the ladder of jitter, growing by rows, and when growing is refused."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.common.errors import NumericalError
from raybo.surrogate.factor import JITTERS, cholesky, grown, half_solve, solve


def spd(rng, n, least=0.1):
    B = rng.standard_normal((n, n))
    return B @ B.T + least * np.eye(n)


def test_the_factor_is_lower_without_needless_jitter():
    A = spd(np.random.default_rng(0), 8)
    L, jitter = cholesky(A)
    assert jitter == 0.0
    np.testing.assert_allclose(L @ L.T, A, rtol=1e-12)
    np.testing.assert_array_equal(L, np.tril(L))


def test_solves_are_those_of_the_matrix():
    rng = np.random.default_rng(1)
    A, B = spd(rng, 6), rng.standard_normal((6, 3))
    L, _ = cholesky(A)
    np.testing.assert_allclose(A @ solve(L, B), B, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(L @ half_solve(L, B), B, rtol=1e-12)
    np.testing.assert_allclose(L.T @ half_solve(L, B, transposed=True), B, rtol=1e-12)
    np.testing.assert_allclose(A @ solve(L, B[:, 0]), B[:, 0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rung", range(1, len(JITTERS)))
def test_the_jitter_is_the_first_step_that_suffices(rung):
    """A matrix whose least eigenvalue is just above minus one step of the ladder, times the mean diagonal."""
    A = spd(np.random.default_rng(2), 8)
    values, vectors = np.linalg.eigh(A)
    A = A * 8 / values.sum()  # mean diagonal near 1
    A -= (np.linalg.eigvalsh(A)[0] + 0.5 * JITTERS[rung]) * np.outer(vectors[:, 0], vectors[:, 0])
    A = 0.5 * (A + A.T)
    L, jitter = cholesky(A)
    assert jitter == pytest.approx(JITTERS[rung] * np.mean(np.diagonal(A)), rel=1e-9)
    np.testing.assert_allclose(L @ L.T, A + jitter * np.eye(8), atol=1e-12)


def test_jitters_and_their_scale_can_be_given():
    A = np.ones((3, 3))  # of rank 1
    L, jitter = cholesky(A, (1e-6, 1e-3), 10.0)
    assert jitter == pytest.approx(1e-5, rel=1e-12)
    np.testing.assert_allclose(L @ L.T, A + 1e-5 * np.eye(3), atol=1e-15)
    with pytest.raises(NumericalError, match=r"even with 0\.02 added to its diagonal"):
        cholesky(A - np.eye(3), (1e-6, 1e-3), 20.0)


def test_a_matrix_that_nothing_mends_is_refused():
    with pytest.raises(NumericalError, match="not positive definite"):
        cholesky(-np.eye(3))
    with pytest.raises(NumericalError):
        cholesky(np.full((2, 2), np.nan))


def test_no_points_have_an_empty_factor():
    assert cholesky(np.empty((0, 0)))[0].shape == (0, 0)


@pytest.mark.parametrize(("n", "m"), [(0, 3), (5, 1), (5, 4), (5, 0)])
def test_a_grown_factor_equals_the_whole_matrixs_factor(n, m):
    A = spd(np.random.default_rng(3), n + m)
    L = grown(cholesky(A[:n, :n])[0], A[:n, n:], A[n:, n:], np.full(m, 0.1))
    np.testing.assert_allclose(L, cholesky(A)[0], rtol=1e-12, atol=1e-12)


def test_growing_is_refused_if_a_pivot_is_small():
    A = spd(np.random.default_rng(4), 5)
    A[4] = A[:, 4] = 0.0
    A[4, 4] = 1e-3
    L = cholesky(A[:4, :4])[0]
    assert grown(L, A[:4, 4:], A[4:, 4:], np.array([1e-3])) is not None
    assert grown(L, A[:4, 4:], A[4:, 4:], np.array([3e-3])) is None  # exact arithmetic would have left 3e-3 at least
    assert grown(L, A[:4, 4:], -A[4:, 4:], np.array([0.0])) is None
