from __future__ import annotations

import numpy as np
import pytest

from raybo.acquisition import Inflated, JointDraw, UpperConfidence
from raybo.common.errors import NumericalError
from raybo.solvers import random_grid
from raybo.space import Float, Space
from tests.acquisition.small_gp import SmallGP, gradient_error, random_gp


def draws(gp, X, count, **options):
    return np.stack([JointDraw(gp, seed, **options).value(X) for seed in range(count)])


@pytest.mark.statistical
@pytest.mark.parametrize(("kappa", "inflation"), [(1.0, 0.0), (2.5, 0.0), (1.5, 0.4)])
def test_draws_have_the_posteriors_moments(kappa, inflation):
    """Means and covariances of 4,000 draws at 6 points within 5 standard errors: 27 numbers, false alarms 2e-5."""
    gp, _, _ = random_gp(0, n=6, d=2)
    X = np.random.default_rng(1).random((6, 2))
    mean, cov = gp.joint(X)
    std = np.sqrt(np.diagonal(cov))
    wanted = cov / np.outer(std, std) * np.outer(kappa * std + inflation, kappa * std + inflation)
    sample = draws(gp, X, 4000, kappa=kappa, inflation=inflation)
    wide = np.sqrt(np.diagonal(wanted))
    assert np.all(np.abs(sample.mean(axis=0) - mean) < 5.0 * wide / np.sqrt(4000))
    error = np.sqrt((wanted**2 + np.outer(wide, wide) ** 2) / 4000)
    assert np.all(np.abs(np.cov(sample.T) - wanted) < 5.0 * error)


def test_kappa_stretches_about_the_mean():
    gp, _, _ = random_gp(2)
    X = np.random.default_rng(0).random((40, 2))
    mean, _ = gp.posterior(X)
    plain, stretched = JointDraw(gp, 5).value(X), JointDraw(gp, 5, kappa=3.0).value(X)
    np.testing.assert_allclose(stretched - mean, 3.0 * (plain - mean), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(JointDraw(gp, 5, kappa=0.0).value(X), mean, atol=1e-12)


def test_a_draw_is_its_seed():
    gp, _, _ = random_gp(2)
    X = np.random.default_rng(0).random((30, 2))
    np.testing.assert_array_equal(JointDraw(gp, 9).value(X), JointDraw(gp, 9).value(X))
    assert np.abs(JointDraw(gp, 9).value(X) - JointDraw(gp, 10).value(X)).max() > 1e-3


def test_known_and_repeated_points():
    """A draw is the mean if f is known; with inflation it is independent there, as if of correlation 0."""
    X = np.array([[0.1], [0.5], [0.9]])
    gp = SmallGP(X, np.array([1.0, -1.0, 0.5]), noise_variance=1e-14)
    points = np.vstack([X, X, [[0.3]], [[0.3]]])
    np.testing.assert_allclose(JointDraw(gp, 0, kappa=2.0).value(points)[:6], [1, -1, 0.5, 1, -1, 0.5], atol=1e-5)
    sample = draws(gp, points, 800, inflation=1.0)
    assert np.isfinite(sample).all()
    assert np.all(np.abs(np.corrcoef(sample[:, :6].T) - np.eye(6)) < 5.0 / np.sqrt(800))
    assert np.corrcoef(sample[:, 6:].T)[0, 1] > 0.999


def test_points_that_are_all_but_known_are_independent():
    """Two of deviation 1e-8, which rounding alone correlates, beside one that is not known."""

    class Fixed:
        def joint(self, X):
            cov = np.eye(3)
            cov[:2, :2] = 1e-16 * np.array([[1.0, 0.99], [0.99, 1.0]])
            return np.zeros(3), cov

    sample = draws(Fixed(), np.zeros((3, 1)), 800, inflation=1.0)
    assert np.all(np.abs(np.corrcoef(sample.T) - np.eye(3)) < 5.0 / np.sqrt(800))


def test_many_points_are_refused():
    gp, _, _ = random_gp(2)
    with pytest.raises(ValueError, match="at most 2000 points"):
        JointDraw(gp, 0).value(np.zeros((2001, 2)))


def test_infinite_covariances_are_an_error():
    class Broken:
        def joint(self, X):
            return np.zeros(len(X)), np.full((len(X), len(X)), np.nan)

    with pytest.raises(NumericalError, match="3 points"):
        JointDraw(Broken(), 0).value(np.zeros((3, 2)))


def test_on_the_random_grid_in_one_call():
    gp, _, _ = random_gp(2)
    cube = Space({"a": Float(0, 1), "b": Float(0, 1)}).cube
    grid = np.random.default_rng(3).random((700, 2))
    values = JointDraw(gp, 4, kappa=1.3).value(grid)
    best = random_grid(JointDraw(gp, 4, kappa=1.3), cube, np.random.default_rng(3), size=700, chunk=50)
    assert best.value == values.max()
    np.testing.assert_array_equal(best.x, grid[np.argmax(values)])


class Plane:
    """Stands for a function draw."""

    def value(self, X):
        return X @ np.arange(1.0, 1.0 + X.shape[1])

    def value_and_gradient(self, X):
        return self.value(X), np.broadcast_to(np.arange(1.0, 1.0 + X.shape[1]), X.shape)


def test_inflated_function_draw():
    gp, _, _ = random_gp(6, d=3)
    X = np.random.default_rng(0).random((25, 3))
    mean = UpperConfidence(gp, 0.0)
    np.testing.assert_allclose(Inflated(gp, Plane(), 2.0).value(X), 2.0 * Plane().value(X) - mean.value(X), rtol=1e-12)
    np.testing.assert_allclose(Inflated(gp, Plane(), 1.0).value(X), Plane().value(X), rtol=1e-12)
    assert gradient_error(Inflated(gp, Plane(), 2.0), X) < 1e-6
    wide = Inflated(gp, Plane(), 2.0, inflation=0.3)
    std = np.sqrt(gp.posterior(X)[1])
    xi = (Plane().value(X) - mean.value(X)) / std
    np.testing.assert_allclose(wide.value(X), mean.value(X) + (2.0 * std + 0.3) * xi, rtol=1e-10)
    assert gradient_error(wide, X) < 1e-6
