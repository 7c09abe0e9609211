"""Functions drawn from the posterior, jointly and over the whole cube."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raybo.surrogate import GP, Observations, draw_function, joint_draws
from raybo.surrogate.sample_paths import _code, cosine
from tests.surrogate.conftest import CATEGORIES, differences, model, points

LEVELS = (None, CATEGORIES, None)


@pytest.mark.statistical
def test_joint_draws_have_the_posteriors_mean_and_covariance(gp):
    """Each moment within 5.5 standard errors over 20,000 draws: false alarms below 1e-5 over all entries."""
    X = np.array([[0.1, 0.5, 0.3], [0.12, 0.5, 0.3], [0.8, 1 / 6, 0.9]])
    draws = joint_draws(gp, X, np.random.default_rng(2), 20_000)
    mean, cov = gp.joint(X)
    sd = np.sqrt(np.diag(cov))
    assert (np.abs(draws.mean(axis=0) - mean) < 5.5 * sd / np.sqrt(20_000)).all()
    error = np.sqrt((np.outer(sd, sd) ** 2 + cov**2) / 20_000)
    assert (np.abs(np.cov(draws.T) - cov) < 5.5 * error).all()


def test_joint_draws_survive_points_that_coincide(gp):
    X = np.repeat(gp.X[:1], 5, axis=0)
    draws = joint_draws(gp, X, np.random.default_rng(3), 3)
    np.testing.assert_allclose(draws, draws[:, :1] + np.zeros((3, 5)), atol=1e-3)


def test_joint_draws_survive_a_posterior_that_is_known():
    """On data without noise the covariance is rounding error of either sign."""
    X = np.linspace(0.0, 1.0, 12)[:, None]
    gp = GP.of(Observations.of(X, np.sin(3.0 * X[:, 0])), model("rbf"), np.log([1.0, 1.0, 1e-12]))
    draws = joint_draws(gp, np.repeat(X, 3, axis=0), np.random.default_rng(4), 2)
    np.testing.assert_allclose(draws, np.repeat(np.sin(3.0 * X[:, 0]), 3) + np.zeros((2, 36)), atol=1e-2)


@pytest.mark.statistical
def test_the_features_have_the_kernels_covariance(kernel):
    """Over 100,000 features, each a cosine of variance 1/2 at most: within 0.016, five standard errors or more."""
    theta = np.log([0.4, 0.9, 0.7, 1.3, 0.01])
    prior = GP.of(Observations.of(np.empty((0, 3)), np.empty(0), (False, True, False)), model(kernel), theta)
    draw = draw_function(prior, np.random.default_rng(0), features=100_000, levels=LEVELS)
    X = points(np.random.default_rng(1), 7)
    code = _code(X, draw.levels)
    gaps = code[:, None, :] - code[None, :, :]
    covariance = 1.3 * np.cos(2.0 * np.pi * gaps @ draw.frequencies.T).mean(axis=-1)
    np.testing.assert_allclose(covariance, prior.kernel.matrix(X, X), atol=1.3 * 0.0125)
    assert (draw.weights**2).sum() / 2.0 == pytest.approx(1.3, rel=5 / math.sqrt(100_000))


@pytest.mark.statistical
@pytest.mark.parametrize("noise", [0.01, 0.5])
def test_function_draws_have_the_posteriors_mean_and_variance(gp, noise):
    """Over 400 draws of 1,024 features: mean within 5 standard errors, variance within a factor; the seed is fixed.

    The features' own error is of relative order 1 / sqrt(1,024) and enters the bound as 0.05 of the prior's deviation.
    """
    rng = np.random.default_rng(4)
    gp = GP.of(gp.observations, gp.model, np.append(gp.theta[:-1], np.log(noise)))
    X = np.vstack([[[0.1, 0.5, 0.3], [0.5, 1 / 6, 0.5], [0.8, 5 / 6, 0.9]], gp.X[:3]])
    values = np.array([draw_function(gp, rng, levels=LEVELS).value(X) for _ in range(400)])
    mean, var = gp.posterior(X)
    sd = np.sqrt(var)
    assert (np.abs(values.mean(axis=0) - mean) < 5 * sd / np.sqrt(400) + 0.05).all()
    np.testing.assert_allclose(values.std(axis=0), sd, rtol=0.25)


def test_a_draw_passes_through_data_without_noise(kernel):
    X = np.random.default_rng(5).random((8, 2))
    y = np.random.default_rng(6).standard_normal(8) + 3.0
    m = model(kernel, mean="constant")
    gp = GP.of(Observations.of(X, y), m, np.log([0.4, 0.9, 1.3, 1e-10]))
    draws = [draw_function(gp, np.random.default_rng(seed)) for seed in range(3)]
    for draw in draws:
        np.testing.assert_allclose(draw.value(X), y, atol=1e-3)
    elsewhere = np.random.default_rng(7).random((5, 2))
    assert np.ptp([draw.value(elsewhere) for draw in draws], axis=0).min() > 1e-3


def test_the_gradient_is_that_of_central_differences(gp):
    draw = draw_function(gp, np.random.default_rng(5), levels=LEVELS)
    X = points(np.random.default_rng(6), 30)
    value, gradient = draw.value_and_gradient(X)
    np.testing.assert_allclose(value, draw.value(X), rtol=1e-9, atol=1e-12)
    assert not gradient[:, 1].any()
    for j in (0, 2):
        np.testing.assert_allclose(gradient[:, j], differences(draw.value, X, j), rtol=1e-6, atol=1e-6)


def test_a_draw_is_one_function_at_every_call(gp):
    """In one call or many, and for any coordinate of a category's bin."""
    draw = draw_function(gp, np.random.default_rng(8), levels=LEVELS)
    X = points(np.random.default_rng(9), 200)
    whole = draw.value(X)
    np.testing.assert_allclose([draw.value(x[None])[0] for x in X[:20]], whole[:20], rtol=1e-9, atol=1e-11)
    off = X.copy()
    off[:, 1] += np.random.default_rng(10).uniform(-0.15, 0.15, 200)
    np.testing.assert_allclose(draw.value(off), whole, rtol=1e-12)
    same = draw_function(gp, np.random.default_rng(8), levels=LEVELS)
    np.testing.assert_array_equal(same.value(X), whole)


def test_without_levels_the_observed_categories_stand_for_all(gp):
    draw = draw_function(gp, np.random.default_rng(11))
    np.testing.assert_array_equal(draw.levels[1], np.unique(gp.X[:, 1]))
    assert np.isfinite(draw.value(np.random.default_rng(12).random((5, 3)))).all()


def test_the_cosine_is_the_cosine():
    turns = np.concatenate([np.random.default_rng(13).normal(0.0, 50.0, 10_000), [0.0, 0.25, 0.5, -0.5, 1e6]])
    np.testing.assert_allclose(cosine(turns), np.cos(2.0 * np.pi * (turns - np.rint(turns))), atol=1e-15)
