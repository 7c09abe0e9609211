"""The fit: it finds what made the data, from wherever it starts, within what it may vary."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.errors import NumericalError
from raybo.surrogate import (
    GP,
    Hyperparameter,
    Likelihood,
    LogNormal,
    Observations,
    fit_map,
    maximise_posterior,
    standard_model,
)
from tests.surrogate.conftest import PAPER, flat, model


def smooth(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    y = np.sin(5.0 * X).sum(axis=1) + 0.05 * rng.standard_normal(n)
    return Observations.of(X, (y - y.mean()) / y.std())


def test_it_finds_the_lengthscales_that_made_the_data(kernel):
    rng = np.random.default_rng(1)
    X = rng.random((120, 2))
    truth = np.log([0.2, 1.0, 1.0, 1e-3])
    prior = GP.of(Observations.of(X[:0], np.zeros(0)), flat(kernel), truth)
    y = rng.multivariate_normal(np.zeros(120), prior.joint(X)[1]) + rng.standard_normal(120) * 0.03
    theta = fit_map(Observations.of(X, y), flat(kernel))
    np.testing.assert_allclose(theta[:2], truth[:2], atol=0.7)
    assert Likelihood(Observations.of(X, y), flat(kernel)).log_density(theta) >= Likelihood(
        Observations.of(X, y), flat(kernel)
    ).log_density(truth)


@pytest.mark.parametrize(("n", "d"), [(15, 2), (60, 5)])
def test_it_ends_where_the_slope_is_nothing_and_tells_the_value_there(n, d):
    observations, m = smooth(n, d), standard_model()
    fit = maximise_posterior(observations, m, tolerance=1e-9)
    value, gradient = Likelihood(observations, m).log_posterior(fit.theta)
    assert fit.log_posterior == pytest.approx(value, rel=1e-12)
    assert np.abs(gradient).max() < 0.05
    loose = maximise_posterior(observations, m)
    assert loose.log_posterior > fit.log_posterior - 0.05
    assert loose.evaluations <= fit.evaluations < 60
    assert maximise_posterior(observations, m, tolerance=5.0).evaluations < loose.evaluations


def test_a_warm_start_at_the_optimum_ends_there_at_once():
    observations, m = smooth(50, 3), standard_model()
    cold = maximise_posterior(observations, m)
    warm = maximise_posterior(observations, m, [cold.theta])
    assert warm.evaluations <= 10
    assert warm.log_posterior >= cold.log_posterior
    np.testing.assert_allclose(warm.theta, cold.theta, atol=0.2)


def test_the_best_of_several_starts_is_kept():
    observations, m = smooth(30, 3), standard_model()
    poor = np.log([20.0, 20.0, 20.0, 1e-2, 1.0])
    alone = maximise_posterior(observations, m, [poor], iterations=1)
    both = maximise_posterior(observations, m, [poor, m.start(3)], iterations=1)
    assert both.log_posterior > alone.log_posterior
    assert both.evaluations > alone.evaluations
    more = maximise_posterior(observations, m, restarts=3, rng=np.random.default_rng(0))
    assert more.log_posterior >= maximise_posterior(observations, m).log_posterior
    with pytest.raises(ValueError, match="rng"):
        maximise_posterior(observations, m, restarts=3)


def test_fixed_hyperparameters_stay_and_ranges_hold():
    rng = np.random.default_rng(3)
    observations = Observations.of(rng.random((20, 3)), rng.standard_normal(20))
    theta = fit_map(observations, PAPER)
    np.testing.assert_array_equal(theta[1:], np.log([1.0, 1e-4]))
    narrow = model("rbf", lengthscale=Hyperparameter(LogNormal(-1.0, 1.0), 0.3, (0.31, 0.5, 0.32), 0.4))
    bounds = narrow.bounds(3)
    theta = fit_map(observations, narrow, [np.full(5, 9.0)])
    assert (theta >= bounds[:, 0]).all()
    assert (theta <= bounds[:, 1]).all()


def test_a_model_with_nothing_to_fit_is_its_own_fit():
    fixed = model(
        "rbf",
        lengthscale=Hyperparameter(fixed=0.3),
        outputscale=Hyperparameter(fixed=2.0),
        noise_variance=Hyperparameter(fixed=0.1),
    )
    fit = maximise_posterior(smooth(10, 2), fixed)
    np.testing.assert_allclose(np.exp(fit.theta), [0.3, 0.3, 2.0, 0.1])
    assert np.isfinite(fit.log_posterior)


@pytest.mark.parametrize("kind", ["one", "constant", "duplicates", "ulps", "many axes"])
def test_degenerate_data_have_a_fit(kernel, kind):
    x = np.full((30, 1), 0.5)
    X, y = {
        "one": (np.array([[0.3, 0.4]]), np.zeros(1)),
        "constant": (np.random.default_rng(0).random((20, 2)), np.zeros(20)),
        "duplicates": (np.repeat(np.random.default_rng(0).random((3, 2)), 10, axis=0), np.tile([1.0, -1.0], 15)),
        "ulps": (x + np.arange(30)[:, None] * np.spacing(0.5), np.tile([1.0, -1.0], 15)),
        "many axes": (np.random.default_rng(0).random((12, 100)), np.tile([1.0, -1.0], 6)),
    }[kind]
    observations = Observations.of(X, y)
    fit = maximise_posterior(observations, model(kernel))
    gp = GP.of(observations, model(kernel), fit.theta)
    assert np.isfinite(gp.posterior(X)).all()
    assert gp.log_marginal_likelihood + gp.model.log_prior(fit.theta)[0] == pytest.approx(fit.log_posterior, rel=1e-6)


def test_many_points_are_thinned_for_the_fit():
    observations = smooth(700, 2)
    all_points = maximise_posterior(observations, standard_model(), at_most=700)
    few = maximise_posterior(observations, standard_model(), at_most=100)
    np.testing.assert_allclose(few.theta[:2], all_points.theta[:2], atol=0.7)
    expected = maximise_posterior(observations.thinned(100), standard_model())
    np.testing.assert_array_equal(few.theta, expected.theta)


def test_a_start_without_a_likelihood_is_an_error():
    observations = Observations.of(np.array([[0.1], [0.7]]), np.array([np.nan, 1.0]))
    with pytest.raises(NumericalError, match="not finite at any start"):
        maximise_posterior(observations, standard_model())
