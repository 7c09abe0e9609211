"""Standardising values of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from raybo.surrogate import Standardised, Tamed, YeoJohnson


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=20))
def test_whatever_is_observed_comes_out_finite_and_of_unit_size(values):
    y = np.array(values)
    z = Standardised.of(y).apply(y)
    assert np.isfinite(z).all()
    assert np.abs(z).max() <= np.sqrt(len(y)) + 2.0


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_the_scale_of_the_values_does_not_matter(scale):
    y = np.array([0.1, 0.5, 0.2, 0.9])
    np.testing.assert_allclose(Standardised.of(scale * y).apply(scale * y), (y - y.mean()) / y.std(), rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 1e-300, -3.0, 1e300])
def test_equal_values_become_zeros(value):
    z = Standardised.of(np.full(5, value)).apply(np.full(5, value))
    np.testing.assert_allclose(z, 0.0, atol=1e-12)


def test_no_values_leave_the_units_alone():
    assert Standardised.of(np.empty(0)) == Standardised(0.0, 1.0)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=20))
def test_taming_keeps_every_value_finite_and_the_order(values):
    y = np.sort(np.array(values))
    z = Tamed.of(y).apply(y)
    assert np.isfinite(z).all()
    assert (np.diff(z) >= -1e-9).all()


def test_a_far_outlier_below_no_longer_sets_the_scale():
    y = np.append(np.linspace(0.0, 1.0, 20), -1e9)
    z = Tamed.of(y).apply(y)
    assert np.ptp(z[:20]) > 2.0
    assert np.ptp(Standardised.of(y).apply(y)[:20]) < 1e-6


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.3, 1.0, 2.0, 3.0])
def test_the_power_transform_is_the_published_one(power):
    z = np.linspace(-3.0, 3.0, 13)
    np.testing.assert_allclose(YeoJohnson(power).apply(z), stats.yeojohnson(z, power), rtol=1e-10, atol=1e-12)


def test_the_power_is_the_most_likely_one():
    z = Standardised.of(y := np.random.default_rng(0).lognormal(size=200)).apply(y)
    assert YeoJohnson.of(z).power == pytest.approx(stats.yeojohnson_normmax(z), abs=0.01)
