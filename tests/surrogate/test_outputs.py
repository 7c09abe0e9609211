"""Transforms of the values: of any size, there and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from raybo.surrogate import Clipped, SignedLog, Standardised, Tamed, YeoJohnson

REACH = 1e150  # no history has values further from 0
ANY = st.lists(st.floats(-REACH, REACH), min_size=1, max_size=20)


@settings(max_examples=200, deadline=None)
@given(ANY)
def test_any_values_are_standardised_and_restored(values):
    y = np.array(values)
    outputs = Standardised.of(y)
    z = outputs.apply(y)
    assert np.isfinite(z).all()
    assert np.abs(z).max() <= np.sqrt(len(y)) + 2.0
    np.testing.assert_allclose(outputs.invert(z), y, rtol=1e-9, atol=1e-9 * np.abs(y).max())


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12, 1e140])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_the_values_scale_and_shift_cancel(scale, shift):
    y = np.array([0.1, 0.5, 0.2, 0.9])
    z = Standardised.of(scale * (y + shift)).apply(scale * (y + shift))
    np.testing.assert_allclose(z, (y - y.mean()) / y.std(), rtol=1e-8)


def test_nearly_equal_values_are_not_taken_as_equal():
    y = 1e12 + np.arange(5.0)
    np.testing.assert_allclose(Standardised.of(y).apply(y), (np.arange(5.0) - 2.0) / np.sqrt(2.0), rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 1e-300, 5e-324, -3.0, REACH])
@pytest.mark.parametrize("n", [1, 5])
def test_equal_values_become_zeros(value, n):
    y = np.full(n, value)
    np.testing.assert_allclose(Standardised.of(y).apply(y), 0.0, atol=1e-12)
    np.testing.assert_allclose(Tamed.of(y).apply(y), 0.0, atol=1e-12)


def test_values_at_the_reach_have_finite_differences():
    y = np.array([-REACH, 0.0, REACH])
    for outputs in (Standardised.of(y), Tamed.of(y)):
        z = outputs.apply(y)
        assert np.isfinite(z).all()
        assert (np.diff(z) > 0.5).all()


def test_no_values_leave_the_units_alone():
    assert Standardised.of(np.empty(0)) == Standardised(0.0, 1.0)


@settings(max_examples=200, deadline=None)
@given(ANY)
def test_taming_keeps_every_value_finite_and_the_order(values):
    y = np.sort(np.array(values))
    outputs = Tamed.of(y)
    z = outputs.apply(y)
    assert np.isfinite(z).all()
    assert (np.diff(z) >= -1e-9).all()
    assert np.isfinite(outputs.invert(np.array([-1e140, -9.0, 0.0, 9.0, 1e140]))).all()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=20))
def test_taming_can_be_undone_above_the_floor(values):
    y = np.array(values)
    outputs = Tamed.of(y)
    floor = Clipped.of(y, 4.0).floor
    expected = np.maximum(y, floor)
    np.testing.assert_allclose(outputs.invert(outputs.apply(y)), expected, rtol=1e-6, atol=1e-6 * (1.0 + np.ptp(y)))


def test_the_floor_is_robust_deviations_below_the_median():
    y = np.random.default_rng(0).normal(3.0, 2.0, 4_001)
    spread = stats.median_abs_deviation(y, scale="normal")
    assert Clipped.of(y, 2.5).floor == pytest.approx(np.median(y) - 2.5 * spread, rel=1e-4)
    assert Clipped.of(np.array([0.0, 1.0, 1.0, 1.0]), 4.0).floor == -np.inf
    assert Clipped.of(y, np.inf).floor < -1e300
    np.testing.assert_array_equal(Clipped(0.5).apply(np.array([0.1, 0.7])), [0.5, 0.7])


def test_an_outlier_below_does_not_set_the_scale():
    y = np.append(np.linspace(0.0, 1.0, 20), -1e9)
    z = Tamed.of(y).apply(y)
    assert np.ptp(z[:20]) > 2.0
    assert np.ptp(Standardised.of(y).apply(y)[:20]) < 1e-6


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.3, 1.0, 2.0, 3.0])
def test_the_power_transform_is_published_and_invertible(power):
    z = np.linspace(-3.0, 3.0, 13)
    transformed = YeoJohnson(power).apply(z)
    np.testing.assert_allclose(transformed, stats.yeojohnson(z, power), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(YeoJohnson(power).invert(transformed), z, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [5, 200])
def test_the_power_is_the_most_likely_one(seed, n):
    rng = np.random.default_rng(seed)
    y = [rng.standard_normal(n), rng.lognormal(size=n), -rng.lognormal(size=n)][seed % 3]
    z = Standardised.of(y).apply(y)
    found = YeoJohnson.of(z).power
    assert found == pytest.approx(np.clip(stats.yeojohnson_normmax(z), -2.0, 4.0), abs=0.01)


def test_too_few_values_are_not_warped():
    assert YeoJohnson.of(np.array([0.0, 1.0])).power == 1.0
    assert YeoJohnson.of(np.zeros(9)).power == 1.0


@pytest.mark.parametrize("made", [Standardised.of, Tamed.of, SignedLog.of])
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e150])
def test_values_far_beyond_stay_finite_and_in_order(made, size):
    outputs = made(size * np.array([1.0, 2.0, 2.5, 4.0]))
    largest = float(np.finfo(np.float64).max)
    z = outputs.apply(np.array([-largest, 1.5 * size, 3.0 * size, largest]))
    assert np.isfinite(np.square(z)).all()
    assert (np.diff(z) >= 0.0).all()


def test_margins_at_the_reach_are_told_apart():
    z = SignedLog.of(np.array([-REACH, REACH])).apply(np.array([-REACH, 0.0, REACH]))
    np.testing.assert_allclose(z, [-1.0, 0.0, 1.0], atol=1e-9)
