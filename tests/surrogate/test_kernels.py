"""The kernels against the textbook's formulas, published values and differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybo.surrogate.blocks import BLOCK
from raybo.surrogate.kernels import KERNELS, SHORT, StationaryKernel, curvature, profile, profile_and_slope
from tests.surrogate.conftest import CATEGORIES, STEP, naive_kernel


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("matern52", [0.8286491424, 0.5239941088, 0.1386602191]),
        ("rbf", [0.8824969026, 0.6065306597, 0.1353352832]),
    ],
)
def test_profiles_have_published_values_at_three_distances(name, expected):
    np.testing.assert_allclose(profile(name, np.array([0.5, 1.0, 2.0]) ** 2), expected, rtol=1e-9)


@pytest.mark.parametrize(("name", "expected"), [("matern52", 0.3172833640), ("rbf", 0.3678794412)])
def test_published_value_with_a_lengthscale_an_axis(name, expected):
    kernel = StationaryKernel(name, np.array([0.3, 0.6]), 1.0, (False, False))
    assert kernel.matrix(np.array([[0.2, 0.7]]), np.array([[0.5, 0.1]]))[0, 0] == pytest.approx(expected, rel=1e-9)


def test_slope_and_curvature_are_derivatives_of_the_profile(kernel):
    q = np.array([1e-3, 0.1, 1.0, 4.0, 30.0])
    value, slope = profile_and_slope(kernel, q)
    np.testing.assert_allclose(value, profile(kernel, q), rtol=1e-14)
    h = STEP * q
    np.testing.assert_allclose(slope, (profile(kernel, q + h) - profile(kernel, q - h)) / (2 * h), rtol=1e-6)
    numeric = (profile_and_slope(kernel, q + h)[1] - profile_and_slope(kernel, q - h)[1]) / (2 * h)
    np.testing.assert_allclose(curvature(kernel, q), numeric, rtol=1e-6)


def test_the_limits_at_no_and_at_great_distance(kernel):
    value, slope = profile_and_slope(kernel, np.array([0.0, 1e8]))
    assert value[0] == 1.0
    assert value[1] == 0.0
    assert -slope[0] == -StationaryKernel(kernel, np.ones(1), 1.0, (False,)).slope_at_zero
    assert np.isfinite(curvature(kernel, np.zeros(1))).all()


def test_the_matrix_is_that_of_the_naive_loop(kernel):
    rng = np.random.default_rng(0)
    A, B = rng.random((7, 3)), rng.random((5, 3))
    A[:, 1], B[:, 1] = rng.choice(CATEGORIES, 7), rng.choice(CATEGORIES, 5)
    flags, lengthscale = (False, True, False), np.array([0.4, 0.9, 0.2])
    expected = [[1.7 * naive_kernel(kernel, a, b, lengthscale, flags) for b in B] for a in A]
    k = StationaryKernel(kernel, lengthscale, 1.7, flags)
    np.testing.assert_allclose(k.matrix(A, B), expected, rtol=1e-12)
    np.testing.assert_allclose(k.matrix_and_slope(A, B)[0], expected, rtol=1e-12)


def test_blocks_change_nothing(kernel):
    rng = np.random.default_rng(1)
    A, B = rng.random((3 * BLOCK // 1_000, 2)), rng.random((1_000, 2))
    k = StationaryKernel(kernel, np.array([0.4, 0.9]), 1.7, (False, False))
    np.testing.assert_allclose(k.matrix(A, B), k.matrix_and_slope(A, B)[0], rtol=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-5, 100.0), st.floats(0.0, 1.0), st.floats(-1e-3, 1e-3))
def test_near_points_distances_hold_at_every_lengthscale(lengthscale, x, apart):
    """To 1e-9 where the expanded square is used, and to rounding where the length-scale is too short for it."""
    a, b = np.array([[x, 0.3]]), np.array([[x + apart, 0.3]])
    q = StationaryKernel("rbf", np.array([lengthscale, 0.5]), 1.0, (False, False)).squared_distances(a, b)[0, 0]
    assert q == pytest.approx(((b[0, 0] - a[0, 0]) / lengthscale) ** 2, rel=1e-12, abs=1e-9)
    if lengthscale < SHORT:
        assert q == pytest.approx(((b[0, 0] - a[0, 0]) / lengthscale) ** 2, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("name", KERNELS)
def test_categorical_equality_is_a_one_hot_code(name):
    lengthscale = 0.7
    X = CATEGORIES[:, None]
    code = np.sqrt(0.5) * np.eye(3)
    ours = StationaryKernel(name, np.array([lengthscale]), 1.0, (True,)).matrix(X, X)
    coded = StationaryKernel(name, np.full(3, lengthscale), 1.0, (False,) * 3).matrix(code, code)
    np.testing.assert_allclose(ours, coded, rtol=1e-12)
    assert np.linalg.eigvalsh(ours).min() > 0.0


def test_contract_is_a_weighted_sums_gradient(kernel):
    rng = np.random.default_rng(2)
    A, B, c = rng.random((4, 3)), rng.random((6, 3)), rng.standard_normal(6)
    A[:, 1], B[:, 1] = rng.choice(CATEGORIES, 4), rng.choice(CATEGORIES, 6)
    k = StationaryKernel(kernel, np.array([0.4, 0.9, 0.2]), 1.7, (False, True, False))
    gradient = k.contract(A, B, k.matrix_and_slope(A, B)[1] * c)
    for j in (0, 2):
        shift = STEP * np.eye(3)[j]
        numeric = (k.matrix(A + shift, B) @ c - k.matrix(A - shift, B) @ c) / (2 * STEP)
        np.testing.assert_allclose(gradient[:, j], numeric, rtol=1e-6, atol=1e-8)
    assert not gradient[:, 1].any()
