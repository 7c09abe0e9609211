from __future__ import annotations

import math

import numpy as np
import pytest

from raybo.acquisition import UpperConfidence, exploration, practical_kappa, theory_kappa
from raybo.acquisition.confidence import THEORY_CONSTANT
from tests.acquisition.small_gp import SmallGP, gradient_error, random_gp


@pytest.fixture
def published():
    """The numerical example for Kim et al. (2025): Matern-3/2, length-scale 1 on [0, 4], here on the unit interval."""
    X = np.array([[0.0], [1.0], [2.5]]) / 4.0
    return SmallGP(X, np.array([0.2, -0.4, 0.7]), lengthscale=0.25, noise_variance=1e-4, nu=1.5)


def test_published_values(published):
    X = np.array([[0.5], [1.8], [4.0]]) / 4.0
    mean, var = published.posterior(X)
    np.testing.assert_allclose(mean, [-0.141233680989, 0.151147390423, 0.215536523934], atol=1e-11)
    np.testing.assert_allclose(np.sqrt(var), [0.409622111470, 0.607535375279, 0.962669084359], atol=1e-11)
    upper = UpperConfidence(published, practical_kappa(2))
    np.testing.assert_allclose(upper.value(X), [0.288110536581, 0.787933816354, 1.224555307904], atol=1e-11)


def test_published_maximum(published):
    upper = UpperConfidence(published, practical_kappa(2))
    grid = np.arange(0.0, 4.5, 0.5)[:, None] / 4.0
    values = upper.value(grid)
    assert 4.0 * grid[np.argmax(values), 0] == 3.5
    assert values.max() == pytest.approx(1.298097631212, abs=1e-11)
    fine = upper.value(np.linspace(0.0, 1.0, 400_001)[:, None])
    assert fine.max() == pytest.approx(1.306373690874, abs=1e-9)
    assert fine.min() == pytest.approx(-0.389426833651, abs=1e-9)


@pytest.mark.parametrize("kappa", [-1.5, 0.0, 0.7, 3.0])
def test_bound_gradient_matches_finite_differences(kappa):
    gp, _, _ = random_gp(3, n=25, d=4, lengthscale=[0.3, 0.5, 0.8, 1.2])
    assert gradient_error(UpperConfidence(gp, kappa), np.random.default_rng(0).random((40, 4))) < 1e-6


def test_bound_gradient_is_finite_where_f_is_known():
    gp, X, _ = random_gp(1, noise_variance=1e-13)
    values, gradient = UpperConfidence(gp, 2.0).value_and_gradient(X)
    assert np.isfinite(values).all()
    assert np.isfinite(gradient).all()

    class Known:
        def posterior_gradient(self, X):
            return np.ones(len(X)), np.zeros(len(X)), np.full_like(X, 0.5), np.full_like(X, 3.0)

    values, gradient = UpperConfidence(Known(), 2.0).value_and_gradient(np.zeros((3, 2)))
    np.testing.assert_array_equal(values, 1.0)
    np.testing.assert_array_equal(gradient, 0.5)


def test_without_exploration_it_is_the_mean():
    gp, X, _ = random_gp(2)
    np.testing.assert_array_equal(UpperConfidence(gp, 0.0).value(X), gp.posterior(X)[0])


@pytest.mark.parametrize(
    ("t", "kappa"),
    [
        (1, 0.832554611),
        (2, 1.048147074),
        (3, 1.177410023),
        (4, 1.268636241),
        (80, 2.096294148),
        (200, 2.302890555),
    ],
)
def test_practical_schedule(t, kappa):
    assert practical_kappa(t) == pytest.approx(kappa, abs=5e-10)
    assert exploration("practical", t) == practical_kappa(t)


def test_theory_schedule():
    for result, c in (("ucb", 1), ("ts", 2), ("random-grid-ucb", 2), ("random-grid-ts", 3)):
        expected = 2.0 + 0.5 * math.sqrt(2.0 * (3.7 + 1.0 + math.log(c / 0.05)))
        assert theory_kappa(3.7, B=2.0, R=0.5, delta=0.05, result=result) == pytest.approx(expected, rel=1e-14)
        rule = exploration("theory", 5, information_gain=3.7, B=2.0, R=0.5, delta=0.05, result=result)
        assert rule == pytest.approx(expected, rel=1e-14)
    assert len(THEORY_CONSTANT) == 4
    gains = [theory_kappa(gain) for gain in np.linspace(0.0, 50.0, 20)]
    assert np.all(np.diff(gains) > 0.0)
    assert theory_kappa(1.0, delta=0.01) > theory_kappa(1.0, delta=0.1)


def test_constant_schedule():
    assert {exploration(1.96, t) for t in (1, 10, 1000)} == {1.96}


def test_wrong_schedules_are_refused():
    with pytest.raises(ValueError, match="counted from 1"):
        exploration("practical", 0)
    with pytest.raises(ValueError, match="'practical', 'theory' or a number"):
        exploration("sometimes", 1)
    with pytest.raises(ValueError, match="delta"):
        theory_kappa(1.0, delta=1.0)
