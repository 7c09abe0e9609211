"""The likelihood against the textbook's formula, the oracle, and differences; the fit; the priors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from raybo.surrogate import GP, Flat, Gamma, Hyperparameter, Likelihood, LogNormal, Observations, fit_map
from raybo.surrogate.fit import FITTED_POINTS
from tests.surrogate.conftest import PAPER, model
from tests.surrogate.test_gp import naive_kernel

STEP = 6e-6


def flat(kernel, **changes):
    return model(
        kernel,
        lengthscale=Hyperparameter(Flat(), 5e-3, 20.0, 0.4),
        outputscale=Hyperparameter(Flat(), 1e-2, 1e2, 1.0),
        noise_variance=Hyperparameter(Flat(), 1e-6, 1.0, 1e-3),
        **changes,
    )


def test_the_value_is_the_density_of_a_normal(kernel, mixed):
    theta = np.log([0.4, 0.9, 0.7, 1.3, 0.01])
    A = 1.3 * np.array(
        [[naive_kernel(kernel, a, b, np.exp(theta[:3]), mixed.categorical) for b in mixed.X] for a in mixed.X]
    )
    A += 0.01 * np.eye(len(A)) + 1.3e-10 * np.eye(len(A))
    expected = multivariate_normal(np.zeros(len(A)), A).logpdf(mixed.y)
    assert Likelihood(mixed, flat(kernel)).log_posterior(theta)[0] == pytest.approx(expected, rel=1e-10)


def test_published_oracle():
    observations = Observations.of(np.array([[0.0], [1.0], [2.5]]), np.array([0.2, -0.4, 0.7]))
    value, _ = Likelihood(observations, PAPER).log_posterior(np.log([1.0, 1.0, 1e-4]))
    assert value == pytest.approx(-3.14480161932, rel=1e-9)


@pytest.mark.parametrize("shared", [False, True])
def test_the_gradient_is_that_of_central_differences(kernel, mixed, shared):
    doubled = Observations.of(
        np.vstack([mixed.X, mixed.X[:4]]), np.append(mixed.y, [0.1, 0.2, 0.3, 0.4]), mixed.categorical
    )
    likelihood = Likelihood(doubled, model(kernel, shared_lengthscale=shared))
    theta = np.log([0.5, 1.3, 0.02]) if shared else np.log([0.4, 0.9, 0.7, 1.3, 0.02])
    gradient = likelihood.log_posterior(theta)[1]
    for i in range(len(theta)):
        step = STEP * np.eye(len(theta))[i]
        numeric = (likelihood.log_posterior(theta + step)[0] - likelihood.log_posterior(theta - step)[0]) / (2 * STEP)
        assert gradient[i] == pytest.approx(numeric, rel=1e-6, abs=1e-7)


def test_merging_repeats_leaves_the_likelihood_as_it_was(kernel):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((5, 2)), [1, 4, 2, 1, 3], axis=0)
    y = rng.standard_normal(11)
    merged, single = Observations.of(X, y), Observations(X, y, np.ones(11), np.zeros(11), (False, False))
    assert len(merged.X) == 5
    for theta in np.log([[0.3, 0.5, 1.1, 0.05], [0.1, 2.0, 0.4, 0.3], [1.0, 0.2, 3.0, 0.01]]):
        a, b = (Likelihood(o, flat(kernel)).log_posterior(theta) for o in (merged, single))
        assert a[0] == pytest.approx(b[0], rel=1e-10)
        np.testing.assert_allclose(a[1], b[1], rtol=1e-8)


@pytest.mark.parametrize("prior", [LogNormal(-1.0, 0.7), Gamma(1e-3, 10.0), Gamma(2.0, 0.5), Flat()])
def test_a_prior_is_the_density_of_the_logarithm(prior):
    from scipy import stats

    u = np.linspace(-3.0, 1.0, 9)
    value, slope = prior.log_density(u)
    up, down = prior.log_density(u + STEP)[0], prior.log_density(u - STEP)[0]
    np.testing.assert_allclose(slope, (up - down) / (2 * STEP), rtol=1e-6, atol=1e-8)
    if isinstance(prior, LogNormal):
        expected = stats.norm(prior.log_median, prior.log_sd).logpdf(u)
    elif isinstance(prior, Gamma):
        expected = stats.gamma(prior.shape, scale=1 / prior.rate).logpdf(np.exp(u)) + u
    else:
        expected = np.zeros_like(u)
    np.testing.assert_allclose(value - value[0], expected - expected[0], rtol=1e-9, atol=1e-9)


def test_the_fit_finds_the_lengthscales_that_made_the_data(kernel):
    rng = np.random.default_rng(1)
    X = rng.random((120, 2))
    truth = np.log([0.2, 1.0, 1.0, 1e-3])
    prior = GP.of(Observations.of(X[:1], np.zeros(1)), flat(kernel), np.log([0.2, 1.0, 1.0, 1e6]))
    y = rng.multivariate_normal(np.zeros(120), prior.joint(X)[1]) + rng.standard_normal(120) * 0.03
    theta = fit_map(Observations.of(X, y), flat(kernel))
    np.testing.assert_allclose(theta[:2], truth[:2], atol=0.7)
    likelihood = Likelihood(Observations.of(X, y), flat(kernel))
    assert likelihood.log_posterior(theta)[0] >= likelihood.log_posterior(truth)[0]


def test_a_warm_start_at_the_optimum_stays_there():
    rng = np.random.default_rng(2)
    observations = Observations.of(rng.random((40, 3)), rng.standard_normal(40))
    theta = fit_map(observations, model("matern52"))
    again = fit_map(observations, model("matern52"), [theta])
    np.testing.assert_allclose(again, theta, atol=0.05)


def test_fixed_hyperparameters_stay_and_bounds_hold():
    rng = np.random.default_rng(3)
    theta = fit_map(Observations.of(rng.random((20, 3)), rng.standard_normal(20)), PAPER)
    np.testing.assert_allclose(theta[1:], np.log([1.0, 1e-4]))
    bounds = PAPER.bounds(3)
    assert (theta >= bounds[:, 0] - 1e-12).all()
    assert (theta <= bounds[:, 1] + 1e-12).all()


def test_a_large_data_set_is_thinned_for_the_fit_and_keeps_its_best():
    rng = np.random.default_rng(4)
    X, y = rng.random((1_500, 2)), rng.standard_normal(1_500)
    kept = Observations.of(X, y).thinned(FITTED_POINTS)
    assert len(kept.X) == FITTED_POINTS
    assert kept.y.max() == y.max()
    assert len(np.unique(kept.X, axis=0)) == FITTED_POINTS
