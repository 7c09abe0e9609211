"""The log-linear model of positive numbers, by brute force and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.surrogate.log_linear import COUNTS, NOISE, RATIOS, LogLinear, _features

CHOICES = np.array([0.0, 0.5, 1.0])


def _data(n, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random((n, 2)), rng.choice(CHOICES, n)])
    logs = 2.0 + 3.0 * X[:, 0] + np.log(X[:, 1] + 0.05) + 0.7 * (X[:, 2] == 0.5) + noise * rng.standard_normal(n)
    return X, np.exp(logs)


LEVELS = [None, None, CHOICES]


@pytest.mark.parametrize("n", [4, 30])
def test_moments_are_those_of_bayes_rule(n):
    X, values = _data(n)
    model = LogLinear.of(X, values, LEVELS)
    features = _features(X, LEVELS)[0]
    F, z = features - features.mean(axis=0), np.log(values) - np.log(values).mean()
    found = []
    for ratio in RATIOS:
        K = np.eye(n) + ratio * F @ F.T
        noise = (z @ np.linalg.solve(K, z) + COUNTS * NOISE) / (n + COUNTS)
        found.append((-0.5 * (n + COUNTS) * np.log(noise) - 0.5 * np.linalg.slogdet(K)[1], ratio, noise))
    _, ratio, noise = max(found)
    assert model.noise == pytest.approx(noise)
    covariance = np.linalg.inv(F.T @ F / noise + np.eye(F.shape[1]) / (ratio * noise))
    at = _data(5, seed=1)[0]
    G = _features(at, LEVELS)[0] - features.mean(axis=0)
    mean, variance = model.moments(at)
    np.testing.assert_allclose(mean, np.log(values).mean() + G @ covariance @ F.T @ z / noise, rtol=1e-8)
    np.testing.assert_allclose(variance, noise + np.einsum("ij,jk,ik->i", G, covariance, G), rtol=1e-6)


def test_log_linear_model_learns_the_cost_of_trials():
    model = LogLinear.of(*_data(40), LEVELS)
    X, values = _data(200, noise=0.0, seed=2)
    assert np.sqrt(np.mean(np.square(model.moments(X)[0] - np.log(values)))) < 0.1


def test_noise_alone_explains_nothing():
    rng = np.random.default_rng(3)
    X = rng.random((12, 3))
    mean = LogLinear.of(X, np.exp(0.2 * rng.standard_normal(12)), [None] * 3).moments(X)[0]
    assert np.ptp(mean) < 0.3


def test_gradients_agree_with_finite_differences():
    model = LogLinear.of(*_data(9), LEVELS)
    X = _data(6, seed=4)[0]
    mean, variance, slope, growth = model.moments_and_gradients(X)
    np.testing.assert_array_equal(model.moments(X), (mean, variance))
    for axis in range(3):
        h = np.eye(3)[axis] * 1e-6
        above, below = model.moments(X + h), model.moments(X - h)
        np.testing.assert_allclose(slope[:, axis], (above[0] - below[0]) / 2e-6, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(growth[:, axis], (above[1] - below[1]) / 2e-6, rtol=1e-4, atol=1e-6)


def test_one_trial_or_equal_ones_are_enough():
    X = np.full((3, 2), 0.5)
    mean, variance = LogLinear.of(X, np.full(3, 7.0), [None, None]).moments(np.array([[0.0, 1.0]]))
    assert np.exp(mean[0]) == pytest.approx(7.0)
    assert 0.0 < variance[0] < np.inf
