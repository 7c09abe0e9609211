"""The likelihood against the textbook's formula, published values, and differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from raybo.surrogate import GP, Hyperparameter, Likelihood, Observations, uhe_model
from raybo.surrogate.pairs import Places
from tests.surrogate.conftest import PAPER, STEP, flat, model, naive_log_marginal, naive_matrix

THETA = np.log([0.4, 0.9, 0.7, 1.3, 0.01])


def gradient_error(likelihood, theta):
    """The greatest difference from central differences, relative to the greatest entry."""
    _, gradient = likelihood.log_posterior(theta)
    numeric = [
        (likelihood.log_density(theta + h) - likelihood.log_density(theta - h)) / (2 * STEP)
        for h in STEP * np.eye(len(theta))
    ]
    return np.abs(gradient - numeric).max() / np.abs(gradient).max()


def test_the_value_is_the_density_of_a_normal(kernel, mixed):
    gp = GP.of(mixed, flat(kernel), THETA)
    A = naive_matrix(gp, mixed.X, mixed.X) + 0.01 * np.eye(9)
    expected = multivariate_normal(np.zeros(9), A).logpdf(mixed.y)
    likelihood = Likelihood(mixed, flat(kernel))
    assert likelihood.log_posterior(THETA)[0] == pytest.approx(expected, rel=1e-11)
    assert likelihood.log_density(THETA) == pytest.approx(expected, rel=1e-11)


def test_published_value_of_the_random_grid_model():
    """Kim, Liu, Chen's model on three points of the line, at length-scale 1."""
    observations = Observations.of(np.array([[0.0], [1.0], [2.5]]), np.array([0.2, -0.4, 0.7]))
    assert Likelihood(observations, PAPER).log_density(np.log([1.0, 1.0, 1e-4])) == pytest.approx(
        -3.14480161932, rel=1e-11
    )


def test_published_values_of_the_uhe_model():
    """Ha et al.'s model on two points: likelihood, posterior of theta in its logs, and the latter's gradient."""
    observations = Observations.of(np.array([[0.0], [0.5]]), np.array([1.0, -1.0]))
    likelihood = Likelihood(observations, uhe_model())
    theta = np.log([0.5, 1.0, 0.01])
    assert likelihood.log_marginal(theta)[0] == pytest.approx(-3.7486354581, rel=1e-10)
    value, gradient = likelihood.log_posterior(theta)
    assert value == pytest.approx(-18.8539337755, rel=1e-10)
    np.testing.assert_allclose(gradient, [-7.0343081, -8.9702011, -0.0702107], rtol=1e-6)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("mean", ["zero", "constant"])
def test_the_gradient_is_that_of_central_differences(kernel, mixed, shared, mean):
    X, y = np.vstack([mixed.X, mixed.X[:4]]), np.append(mixed.y, [0.1, 0.2, 0.3, 0.4])
    repeated = Observations.of(X, y, mixed.categorical)
    likelihood = Likelihood(repeated, model(kernel, shared_lengthscale=shared, mean=mean))
    theta = np.log([0.5, 1.3, 0.02]) if shared else np.log([0.4, 0.9, 0.7, 1.3, 0.02])
    assert gradient_error(likelihood, theta) < 1e-6


@pytest.mark.parametrize("mean", ["zero", "constant"])
def test_predicted_values_add_their_uncertainty_to_the_noise(kernel, mean):
    """Against the density of a normal, the gradient against differences, the merged form against single values."""
    rng = np.random.default_rng(2)
    X = np.repeat(rng.random((6, 2)), [1, 3, 2, 1, 1, 2], axis=0)
    y, added = rng.standard_normal(10), np.array([0.0, 0.2, 0.2, 0.0, 0.3, 0.3, 0.0, 1.5, 0.0, 0.0])
    merged = Observations.of(X, y, added=added)
    assert len(merged.X) == 7  # the second point's predicted and seen values stay apart
    single = Observations(X, y, np.ones(10), np.zeros(10), (False, False), added)
    m, theta = flat(kernel, mean=mean), np.log([0.3, 0.5, 1.1, 0.05])
    gp = GP.of(single, m, theta)
    A = naive_matrix(gp, X, X) + np.diag(0.05 + added)
    expected = multivariate_normal(np.full(10, gp.prior_mean), A).logpdf(y)
    for observations in (merged, single):
        likelihood = Likelihood(observations, m)
        assert likelihood.log_density(theta) == pytest.approx(expected, rel=1e-10)
        assert gradient_error(likelihood, theta) < 1e-6


@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_any_number_of_points_will_do(n):
    rng = np.random.default_rng(n)
    likelihood = Likelihood(Observations.of(rng.random((n, 2)), rng.standard_normal(n)), model("matern52"))
    assert gradient_error(likelihood, np.log([0.3, 0.6, 1.2, 0.05])) < 1e-6


@pytest.mark.parametrize("mean", ["zero", "constant"])
def test_merging_repeats_leaves_the_likelihood_as_it_was(kernel, mean):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((5, 2)), [1, 4, 2, 1, 3], axis=0)
    y = rng.standard_normal(11)
    merged = Observations.of(X, y)
    single = Observations(X, y, np.ones(11), np.zeros(11), (False, False))
    assert len(merged.X) == 5
    m = flat(kernel, mean=mean)
    for theta in np.log([[0.3, 0.5, 1.1, 0.05], [0.1, 2.0, 0.4, 0.3], [1.0, 0.2, 3.0, 0.01]]):
        a, b = (Likelihood(o, m).log_posterior(theta) for o in (merged, single))
        assert a[0] == pytest.approx(b[0], rel=1e-10)
        np.testing.assert_allclose(a[1], b[1], rtol=1e-8, atol=1e-9)
        gps = [GP.of(o, m, theta) for o in (merged, single)]
        assert gps[0].information_gain == pytest.approx(gps[1].information_gain, rel=1e-10)


def test_the_constant_mean_is_the_most_likely_one(kernel, mixed):
    """Its likelihood is the largest over all constants, which the profile takes as known."""
    shifted = replace(mixed, y=mixed.y + 3.0)
    value = Likelihood(shifted, flat(kernel, mean="constant")).log_density(THETA)
    zero_mean = flat(kernel)
    shifts = np.linspace(2.0, 4.0, 2_001)
    others = [Likelihood(replace(shifted, y=shifted.y - shift), zero_mean).log_density(THETA) for shift in shifts]
    assert value >= max(others)
    assert value == pytest.approx(max(others), abs=1e-5)
    gp = GP.of(shifted, flat(kernel, mean="constant"), THETA)
    assert gp.prior_mean == pytest.approx(shifts[np.argmax(others)], abs=1e-3)
    assert naive_log_marginal(gp) == pytest.approx(value, rel=1e-11)


def test_a_matrix_needing_jitter_has_a_likelihood():
    x = np.linspace(0.4, 0.6, 30)[:, None]
    m = flat("rbf", noise_variance=Hyperparameter(fixed=1e-18))
    likelihood = Likelihood(Observations.of(x, np.sin(x[:, 0])), m)
    value, gradient = likelihood.log_posterior(np.log([2.0, 1.0, 1e-18]))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_what_is_no_number_has_no_likelihood(mixed):
    likelihood, theta = Likelihood(mixed, model("rbf")), np.full(5, np.nan)
    assert not np.isfinite(likelihood.log_posterior(theta)[0])
    assert not np.isfinite(likelihood.log_density(theta))


def test_evaluations_do_not_depend_on_those_before(mixed):
    likelihood = Likelihood(mixed, model("matern52"))
    first = likelihood.log_posterior(THETA)
    likelihood.log_posterior(THETA + 1.0)
    likelihood.log_density(THETA - 1.0)
    again = likelihood.log_posterior(THETA)
    assert first[0] == again[0]
    np.testing.assert_array_equal(first[1], again[1])


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_the_packed_triangle_holds_each_pair_once(n):
    places = Places.of(n)
    assert sorted(zip(places.rows, places.columns, strict=True)) == [(i, j) for i in range(n) for j in range(i + 1)]
    np.testing.assert_array_equal(places.rows[places.diagonal], np.arange(n))
    np.testing.assert_array_equal(places.columns[places.diagonal], np.arange(n))
