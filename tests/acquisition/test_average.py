from __future__ import annotations

import numpy as np
import pytest

from raybo.acquisition import (
    Average,
    LogAverage,
    LogExpectedImprovement,
    UpperConfidence,
)
from tests.acquisition.small_gp import expected_improvement, gradient_error, random_gp

SCALES = (0.15, 0.3, 0.6, 1.2)


@pytest.fixture
def samples():
    """The same data under four length-scales, with the best observation."""
    gps = [random_gp(11, n=15, d=2, lengthscale=scale)[0] for scale in SCALES]
    return gps, float(random_gp(11, n=15, d=2)[2].max())


def test_mean_of_upper_confidence_bounds(samples):
    members = [UpperConfidence(gp, 1.96) for gp in samples[0]]
    X = np.random.default_rng(0).random((50, 2))
    expected = sum(member.value(X) for member in members) / 4.0
    np.testing.assert_allclose(Average(members).value(X), expected, rtol=1e-13)
    assert gradient_error(Average(members), X) < 1e-6


def test_log_average_is_the_mean_improvements_log(samples):
    gps, incumbent = samples
    X = np.random.default_rng(1).random((50, 2))
    logs = LogAverage([LogExpectedImprovement(gp, incumbent) for gp in gps])
    plain = Average([expected_improvement(gp, incumbent) for gp in gps])
    np.testing.assert_allclose(logs.value(X), np.log(plain.value(X)), rtol=1e-10)
    assert gradient_error(logs, X) < 1e-6
    assert gradient_error(plain, X) < 1e-6


def test_log_average_far_below_the_incumbent(samples):
    """If every expected improvement underflows, the value lies between the highest member and it minus log k."""
    gps, _ = samples
    X = np.random.default_rng(2).random((30, 2))
    members = [LogExpectedImprovement(gp, 500.0) for gp in gps]
    value = LogAverage(members).value(X)
    highest = np.max([member.value(X) for member in members], axis=0)
    assert np.isfinite(value).all()
    assert np.all(value <= highest)
    assert np.all(value >= highest - np.log(4.0) - 1e-9 * np.abs(highest))
    assert gradient_error(LogAverage(members), X) < 1e-6


def test_one_member_is_itself(samples):
    member = LogExpectedImprovement(samples[0][0], samples[1])
    X = np.random.default_rng(3).random((20, 2))
    for average in (Average([member]), LogAverage([member])):
        for ours, its in zip(average.value_and_gradient(X), member.value_and_gradient(X), strict=True):
            np.testing.assert_allclose(ours, its, rtol=1e-13)


class Nowhere:
    """A log-acquisition that is -inf everywhere."""

    def value(self, X):
        return np.full(len(X), -np.inf)

    def value_and_gradient(self, X):
        return self.value(X), np.zeros_like(X)


def test_minus_infinity_is_a_mean_of_zeros():
    values, gradient = LogAverage([Nowhere(), Nowhere()]).value_and_gradient(np.zeros((2, 3)))
    np.testing.assert_array_equal(values, -np.inf)
    np.testing.assert_array_equal(gradient, 0.0)
