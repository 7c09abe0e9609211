"""Samples of hyperparameters, draws of functions, and the posterior of the gradient."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.surrogate import (
    GP,
    Hyperparameter,
    Likelihood,
    LogNormal,
    Model,
    Observations,
    draw_function,
    gradient_posterior,
    joint_draws,
    sample_hmc,
    sample_slice,
)
from tests.surrogate.conftest import model

STEP = 6e-6
LEVELS = (None, np.array([1 / 6, 0.5, 5 / 6]), None)


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", ["hmc", "slice"])
def test_samplers_agree_with_the_posterior_by_quadrature(sampler):
    """Mean and deviation of the only free hyperparameter within 5 standard errors, one draw in three independent.

    False alarms: below 1e-5 by the normal law; the seed is fixed.
    """
    rng = np.random.default_rng(0)
    X = rng.random((12, 1))
    one = Model(
        kernel="matern52",
        lengthscale=Hyperparameter(LogNormal(-1.0, 1.0), 1e-2, 10.0, 0.4),
        outputscale=Hyperparameter(fixed=1.0),
        noise_variance=Hyperparameter(fixed=0.01),
    )
    likelihood = Likelihood(Observations.of(X, np.sin(6 * X[:, 0])), one)
    grid = np.linspace(np.log(1e-2), np.log(10.0), 4_001)
    logs = np.array([likelihood.log_posterior(np.array([u, 0.0, np.log(0.01)]))[0] for u in grid])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ grid
    sd = np.sqrt(weights @ (grid - mean) ** 2)
    start = np.array([mean, 0.0, np.log(0.01)])
    if sampler == "hmc":
        found = sample_hmc(likelihood, start, rng, samples=600, burn_in=200, thin=3, leapfrogs=8)
        assert 0.3 < found.acceptance <= 1.0
    else:
        found = sample_slice(likelihood, start, rng, samples=600)
    u = found.thetas[:, 0]
    assert found.thetas.shape == (600, 3)
    assert abs(u.mean() - mean) < 5 * sd / np.sqrt(200), (u.mean(), mean, sd)
    assert abs(u.std() / sd - 1) < 5 / np.sqrt(2 * 200), (u.std(), sd)
    assert (found.thetas[:, 1:] == start[1:]).all()


@pytest.mark.parametrize("sampler", [sample_hmc, sample_slice])
def test_samples_stay_within_the_ranges_even_where_the_prior_is_flat_and_data_few(sampler):
    tiny = model("matern52")
    likelihood = Likelihood(Observations.of(np.array([[0.2], [0.7]]), np.array([-1.0, 1.0])), tiny)
    found = sampler(likelihood, tiny.start(1), np.random.default_rng(1), samples=30, burn_in=30)
    bounds = tiny.bounds(1)
    assert (found.thetas >= bounds[:, 0]).all()
    assert (found.thetas <= bounds[:, 1]).all()


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
    assert np.isfinite(joint_draws(gp, X, np.random.default_rng(3), 3)).all()


@pytest.mark.statistical
def test_function_draws_have_the_posteriors_mean_and_variance(gp):
    """Over 400 draws of 1,024 features: mean within 5 standard errors, variance within a factor; the seed is fixed.

    The features' own error is of relative order 1 / sqrt(1,024) and enters the bound as 0.05 of the prior's deviation.
    """
    rng = np.random.default_rng(4)
    X = np.array([[0.1, 0.5, 0.3], [0.5, 1 / 6, 0.5], [0.8, 5 / 6, 0.9]])
    values = np.array([draw_function(gp, rng, levels=LEVELS).value(X) for _ in range(400)])
    mean, var = gp.posterior(X)
    sd = np.sqrt(var)
    assert (np.abs(values.mean(axis=0) - mean) < 5 * sd / np.sqrt(400) + 0.05).all()
    np.testing.assert_allclose(values.std(axis=0), sd, rtol=0.25)


def test_a_function_draw_passes_near_the_data_and_its_gradient_is_right(gp):
    draw = draw_function(gp, np.random.default_rng(5), levels=LEVELS)
    # the draw is of f, observed with noise of standard deviation 0.1
    assert (np.abs(draw.value(gp.X) - gp.y) < 0.6).all()
    X = np.random.default_rng(6).random((5, 3))
    X[:, 1] = 0.5
    value, gradient = draw.value_and_gradient(X)
    np.testing.assert_allclose(value, draw.value(X), rtol=1e-9, atol=1e-12)
    assert not gradient[:, 1].any()
    for j in (0, 2):
        up, down = X.copy(), X.copy()
        up[:, j] += STEP
        down[:, j] -= STEP
        np.testing.assert_allclose(
            gradient[:, j], (draw.value(up) - draw.value(down)) / (2 * STEP), rtol=1e-6, atol=1e-6
        )


def test_the_gradients_posterior_is_the_derivative_of_the_joint_one(gp):
    """Differences of f at points h apart have, divided by h, the gradient's mean and covariance."""
    x, h = np.array([0.4, 0.5, 0.6]), 1e-3
    shifted = np.array([x + h * np.eye(3)[j] * s for j in (0, 2) for s in (1, -1)])
    mean, cov = gp.joint(shifted)
    D = np.array([[1, -1, 0, 0], [0, 0, 1, -1]]) / (2 * h)
    got_mean, got_cov = gradient_posterior(gp, x[None])
    np.testing.assert_allclose(got_mean[0, [0, 2]], D @ mean, rtol=1e-4, atol=1e-5)
    # a Matern-3/2 draw has no second derivative: its differences approach the limit in h, not in h squared
    tolerance = 2e-2 if gp.model.kernel == "matern32" else 1e-4
    np.testing.assert_allclose(got_cov[0][np.ix_([0, 2], [0, 2])], D @ cov @ D.T, rtol=tolerance, atol=tolerance)
    assert not got_mean[0, 1]
    assert not got_cov[0, 1].any()
    assert np.linalg.eigvalsh(got_cov[0]).min() > -1e-10


def test_the_gradients_mean_is_the_gradient_of_the_mean(gp):
    X = np.random.default_rng(7).random((4, 3))
    X[:, 1] = 1 / 6
    np.testing.assert_allclose(gradient_posterior(gp, X)[0], gp.posterior_gradient(X)[2], rtol=1e-9, atol=1e-12)


def test_a_gp_with_many_axes_and_few_points_works():
    rng = np.random.default_rng(8)
    observations = Observations.of(rng.random((5, 100)), rng.standard_normal(5))
    gp = GP.of(observations, model("matern52"), np.log([1.0] * 100 + [1.0, 1e-3]))
    mean, cov = gradient_posterior(gp, rng.random((2, 100)))
    assert mean.shape == (2, 100)
    assert np.linalg.eigvalsh(cov[0]).min() > -1e-9
