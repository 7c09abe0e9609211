"""Expected hypervolume improvement and bounds of scalarisations: against Monte Carlo, differences and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.acquisition import (
    LogExpectedHypervolumeImprovement,
    LogExpectedImprovement,
    LogProbabilityOfImprovement,
    Observed,
    ScalarisedConfidence,
    Total,
    UpperConfidence,
    random_weights,
)
from raybo.record.pareto import hypervolume
from tests.acquisition.small_gp import gradient_error, random_gp


def front_of(k, n=6, seed=3):
    Y = np.random.default_rng(seed).standard_normal((n, k))
    return np.vstack([Y, Y[:1] + 1e-9])  # two that nearly coincide


def gps(k, seed=0):
    return [random_gp(seed + j, noise_variance=0.05)[0] for j in range(k)]


def X_of(gp, m=7, seed=5):
    return np.random.default_rng(seed).random((m, gp.d))


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 4])
def test_hypervolume_improvement_matches_sampling(k):
    """Thousands of draws; an error of five standard errors has a probability below 1e-6."""
    models, front, reference = gps(k), front_of(k), np.full(k, -1.5)
    worth = LogExpectedHypervolumeImprovement(models, front, reference)
    X, rng = X_of(models[0], 3), np.random.default_rng(1)
    before = hypervolume(front, reference)
    for x, log in zip(X, worth.value(X), strict=True):
        moments = [gp.posterior(x[None]) for gp in models]
        mean, std = (np.array([float(f(m)) for m in moments]) for f in (lambda m: m[0][0], lambda m: m[1][0] ** 0.5))
        draws = mean + std * rng.standard_normal((8_000 if k == 2 else 2_000, k))
        gains = np.zeros(len(draws))
        counts = (draws > reference).all(axis=1) & (draws[:, None] > front).any(axis=2).all(axis=1)  # others gain 0
        gains[counts] = [hypervolume(np.vstack([front, draw]), reference) - before for draw in draws[counts]]
        assert np.exp(log) == pytest.approx(gains.mean(), abs=5.0 * gains.std() / len(draws) ** 0.5)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("shift", [0.0, 10.0, -30.0])
def test_hypervolume_gradient_matches_finite_differences(k, shift):
    """Also far below the front, where the improvement itself underflows, and far above the reference."""
    models = gps(k)
    worth = LogExpectedHypervolumeImprovement(models, front_of(k) + shift, np.full(k, -1.5) + min(shift, 0.0))
    X = X_of(models[0])
    assert np.isfinite(worth.value(X)).all()
    assert gradient_error(worth, X) < 1e-5


def test_with_one_metric_it_is_the_expected_improvement():
    (gp,) = gps(1)
    X = X_of(gp)
    front = np.array([[0.2], [0.4], [-1.0]])
    several = LogExpectedHypervolumeImprovement([gp], front, np.array([-2.0]))
    np.testing.assert_allclose(several.value(X), LogExpectedImprovement(gp, 0.4).value(X), rtol=1e-10)


def test_many_rows_equal_single_rows(monkeypatch):
    models = gps(3)
    worth = LogExpectedHypervolumeImprovement(models, front_of(3), np.full(3, -1.5))
    X = X_of(models[0], 20)
    together, slopes = worth.value_and_gradient(X)
    monkeypatch.setattr("raybo.acquisition.hypervolume.BLOCK", 1)
    np.testing.assert_allclose(worth.value(X), together, rtol=1e-12)
    np.testing.assert_allclose(worth.value_and_gradient(X)[1], slopes, rtol=1e-9)


def test_a_scalarised_bound_is_the_least_scaled_bound():
    models, weights = gps(3), np.array([0.2, 0.5, 0.9])
    worth = ScalarisedConfidence(models, 1.5, np.array([-1.0, -2.0, -3.0]), weights)
    X = X_of(models[0])
    bounds = [UpperConfidence(gp, 1.5).value(X) for gp in models]
    slow = np.min([(bounds[0] + 1.0) / 0.2, (bounds[1] + 2.0) / 0.5, (bounds[2] + 3.0) / 0.9], axis=0)
    np.testing.assert_allclose(worth.value(X), slow)
    assert gradient_error(worth, X) < 1e-5


def test_the_mean_scalarisation_over_directions_is_the_hypervolume():
    """Golovin, Zhang (2020), Lemma 5, k = 2: pi / 4 times the mean of the best scalarisation's square."""
    Y, rng = np.abs(front_of(2)), np.random.default_rng(0)
    W = np.array([random_weights(2, rng) for _ in range(20_000)])
    assert (W > 0.0).all()
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), 1.0, atol=1e-3)
    best = (Y[None] / W[:, None]).min(axis=2).max(axis=1)
    assert np.pi / 4.0 * np.mean(best**2) == pytest.approx(hypervolume(Y, np.zeros(2)), rel=0.02)


def test_a_total_adds_values_and_gradients():
    one, other = (LogExpectedImprovement(gp, 0.1) for gp in gps(2))
    total, X = Total([one, other]), X_of(one.gp)
    np.testing.assert_allclose(total.value(X), one.value(X) + other.value(X))
    assert gradient_error(total, X) < 1e-5


def test_observations_add_the_noise_to_the_variance():
    (gp,) = gps(1)
    X = X_of(gp)
    mean, var = Observed(gp).posterior(X)
    np.testing.assert_allclose(var, gp.posterior(X)[1] + gp.noise_variance)
    np.testing.assert_array_equal(mean, Observed(gp).joint(X)[0])
    np.testing.assert_allclose(np.diag(Observed(gp).joint(X)[1]), var, rtol=1e-6)
    assert gradient_error(LogProbabilityOfImprovement(Observed(gp), 0.3), X) < 1e-5
