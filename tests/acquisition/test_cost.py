"""Improvement per cost: its parts, and its gradient."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from raybo.acquisition.cost import PerCost
from raybo.surrogate.log_linear import LogLinear

rng = np.random.default_rng(0)
X = rng.random((12, 2))
COSTS = LogLinear.of(X, np.exp(3.0 * X[:, 0]), [None, None])


class Slope:
    def value(self, X):
        return X[:, 1] * 2.0

    def value_and_gradient(self, X):
        return X[:, 1] * 2.0, np.tile([0.0, 2.0], (len(X), 1))


@pytest.mark.parametrize("left", [-8.0, 1.5, 20.0])
def test_gain_cost_and_time_add_up(left):
    at = rng.random((7, 2))
    mean, variance = COSTS.moments(at)
    wanted = 2.0 * at[:, 1] - 0.6 * (mean + variance / 2) + norm.logcdf((left - mean) / np.sqrt(variance))
    worth = PerCost(Slope(), COSTS, 0.6, left)
    np.testing.assert_allclose(worth.value(at), wanted)
    value, gradient = worth.value_and_gradient(at)
    np.testing.assert_allclose(value, wanted)
    for axis in range(2):
        h = np.eye(2)[axis] * 1e-6
        change = (worth.value(at + h) - worth.value(at - h)) / 2e-6
        np.testing.assert_allclose(gradient[:, axis], change, rtol=1e-4, atol=1e-5)
