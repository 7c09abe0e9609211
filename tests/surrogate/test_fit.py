"""The fit: it finds what made the data, from wherever it starts, within what it may vary."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.common.errors import NumericalError
from raybo.surrogate import (
    GP,
    Hyperparameter,
    Likelihood,
    LogNormal,
    Observations,
    fit_map,
    standard_model,
)
from raybo.surrogate import fit as fitting
from tests.surrogate.conftest import PAPER, flat, model


@pytest.fixture
def evaluations(monkeypatch):
    """A list that grows with every evaluation of a posterior with its gradient."""
    calls, plain = [], Likelihood.log_posterior
    monkeypatch.setattr(Likelihood, "log_posterior", lambda self, theta: calls.append(1) or plain(self, theta))
    return calls


def smooth(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    y = np.sin(5.0 * X).sum(axis=1) + 0.05 * rng.standard_normal(n)
    return Observations.of(X, (y - y.mean()) / y.std())


def test_fit_recovers_the_true_lengthscales(kernel):
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
def test_a_fit_ends_flat_or_at_its_tolerance(n, d, monkeypatch, evaluations):
    observations, m = smooth(n, d), standard_model()
    likelihood = Likelihood(observations, m)
    reached, spent = [], []
    for tolerance in (1e-9, fitting.TOLERANCE, 5.0):
        monkeypatch.setattr(fitting, "TOLERANCE", tolerance)
        evaluations.clear()
        theta = fit_map(observations, m)
        spent.append(len(evaluations))
        reached.append(likelihood.log_density(theta))
        if tolerance == 1e-9:
            assert np.abs(likelihood.log_posterior(theta)[1]).max() < 0.05
    assert reached[1] > reached[0] - 0.05
    assert spent[2] < spent[1] <= spent[0] < 60


def test_a_warm_start_at_the_optimum_stays_there(evaluations):
    observations, m = smooth(50, 3), standard_model()
    cold = fit_map(observations, m)
    evaluations.clear()
    warm = fit_map(observations, m, [cold])
    assert len(evaluations) <= 10
    likelihood = Likelihood(observations, m)
    assert likelihood.log_density(warm) >= likelihood.log_density(cold) - 1e-9
    np.testing.assert_allclose(warm, cold, atol=0.2)


def test_the_best_of_several_starts_is_kept(monkeypatch):
    monkeypatch.setattr(fitting, "ITERATIONS", 1)
    observations, m = smooth(30, 3), standard_model()
    poor, good = np.log([20.0, 20.0, 20.0, 1e-2, 1.0]), m.start(3)
    alone, best = fit_map(observations, m, [poor]), fit_map(observations, m, [good])
    likelihood = Likelihood(observations, m)
    assert likelihood.log_density(best) > likelihood.log_density(alone)
    for starts in ([poor, good], [good, poor]):
        np.testing.assert_array_equal(fit_map(observations, m, starts), best)


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


def test_a_fully_fixed_model_is_its_own_fit():
    fixed = model(
        "rbf",
        lengthscale=Hyperparameter(fixed=0.3),
        outputscale=Hyperparameter(fixed=2.0),
        noise_variance=Hyperparameter(fixed=0.1),
    )
    np.testing.assert_allclose(np.exp(fit_map(smooth(10, 2), fixed)), [0.3, 0.3, 2.0, 0.1])


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
    gp = GP.of(observations, model(kernel), fit_map(observations, model(kernel)))
    assert np.isfinite(gp.posterior(X)).all()


def test_many_points_are_thinned_for_the_fit():
    observations = smooth(700, 2)
    all_points = fit_map(observations, standard_model(), at_most=700)
    few = fit_map(observations, standard_model(), at_most=100)
    np.testing.assert_allclose(few[:2], all_points[:2], atol=0.7)
    np.testing.assert_array_equal(few, fit_map(observations.thinned(100), standard_model()))


def test_a_start_without_a_likelihood_is_an_error():
    observations = Observations.of(np.array([[0.1], [0.7]]), np.array([np.nan, 1.0]))
    with pytest.raises(NumericalError, match="not finite at any start"):
        fit_map(observations, standard_model())
