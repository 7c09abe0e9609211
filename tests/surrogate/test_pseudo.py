"""Pseudo-data: each uniform point has the value of its nearest observation."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from raybo.space import Categorical, Float, Integer, Space
from raybo.surrogate import Gamma, Observations, fit_map, pseudo_data, uhe_model
from raybo.surrogate.likelihood import Likelihood
from raybo.surrogate.pseudo import lent


def test_the_published_example():
    observations = Observations.of(np.array([[0.1], [0.6]]), np.array([1.0, 2.0]))
    lent_to = lent(observations, np.array([[0.0], [0.3], [0.36], [0.9]]))
    np.testing.assert_array_equal(lent_to.y, [1.0, 1.0, 2.0, 2.0])


def test_earliest_of_equally_near_observations_counts():
    observations = Observations.of(np.array([[0.75], [0.25]]), np.array([1.0, 2.0]))
    assert lent(observations, np.array([[0.5]])).y[0] == 1.0


@given(st.integers(1, 30), st.integers(1, 4), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_pseudo_data_are_twice_as_many_observed_values(n, d, seed):
    """Against the plain loop."""
    rng = np.random.default_rng(seed)
    observations = Observations.of(rng.random((n, d)), rng.standard_normal(n))
    pseudo = pseudo_data(observations, np.random.default_rng(seed))
    assert len(pseudo.X) == 2 * n
    assert np.isin(pseudo.y, observations.y).all()
    for x, y in zip(pseudo.X, pseudo.y, strict=True):
        assert y == observations.y[np.argmin(np.linalg.norm(observations.X - x, axis=1))]


def test_repeated_values_each_count_for_two_points():
    observations = Observations.of(np.array([[0.2], [0.2], [0.7]]), np.array([1.0, 3.0, 0.0]))
    pseudo = pseudo_data(observations, np.random.default_rng(0))
    assert len(pseudo.X) == 6
    assert set(pseudo.y) <= {2.0, 0.0}  # the mean of the repeats


def test_pseudo_data_never_exceed_what_a_fit_uses():
    rng = np.random.default_rng(0)
    observations = Observations.of(rng.random((40, 2)), rng.random(40))
    assert len(pseudo_data(observations, rng, at_most=50).X) == 50


def test_points_can_be_run_and_categories_are_compared():
    space = Space({"x": Float(0, 1), "n": Integer(1, 5), "c": Categorical(["a", "b", "c"])})
    rng = np.random.default_rng(1)
    X = space.snap(rng.random((12, 3)))
    observations = Observations.of(X, rng.standard_normal(12), space.cube.categorical)
    pseudo = pseudo_data(observations, rng, space.cube.snap)
    np.testing.assert_array_equal(pseudo.X, space.snap(pseudo.X))
    for x, y in zip(pseudo.X, pseudo.y, strict=True):
        distance = (X[:, 0] - x[0]) ** 2 + (X[:, 1] - x[1]) ** 2 + (X[:, 2] != x[2])
        assert y == observations.y[np.argmin(distance)]


def test_the_posterior_of_theta_is_the_published_one():
    """Matern-5/2, Gamma(1e-3, rate 10) on the logs with their Jacobian: value and gradient of the worked example."""
    observations = Observations.of(np.array([[0.0], [0.5]]), np.array([1.0, -1.0]))
    model = uhe_model()
    theta = np.log([0.5, 1.0, 0.01])
    likelihood = Likelihood(observations, model)
    value, gradient = likelihood.log_posterior(theta)
    assert abs(likelihood.log_marginal(theta)[0] - -3.7486354581) < 1e-6
    assert abs(value - -18.8539337755) < 1e-6
    np.testing.assert_allclose(-gradient, [7.0343081, 8.9702011, 0.0702107], rtol=1e-5)
    np.testing.assert_allclose(np.exp(model.bounds(1)), [[5e-3, 10.0], [1e-3, 1e3], [1e-6, 1.0]])
    np.testing.assert_allclose(np.exp(model.start(1)), [0.3, 1.0, 1e-3])


def test_the_readings_of_the_gamma_prior():
    """Published log densities less their normalising constants, which the prior leaves out."""
    values = np.log([0.1, 0.5, 1.0])
    given_rate, given_scale = [-7.9071789, -11.9055695, -16.9048763], [-4.6191990, -6.2670274, -7.0094815]
    rate = Gamma(1e-3, 10.0).log_density(values)[0]
    np.testing.assert_allclose(np.diff(rate), np.diff(given_rate), atol=1e-6)
    scale = Gamma(1e-3, 0.1).log_density(values)[0] - values  # the density of the hyperparameter itself
    np.testing.assert_allclose(np.diff(scale), np.diff(given_scale), atol=1e-6)


def test_a_smooth_function_looks_noisier_through_pseudo_data():
    """They are steps: the price of the method, and why `refit_noise_on_real` exists."""
    rng = np.random.default_rng(3)
    X = rng.random((30, 2))
    observations = Observations.of(X, np.sin(3.0 * X[:, 0]) - X[:, 1] ** 2)
    model = uhe_model()
    plain, pseudo = fit_map(observations, model), fit_map(pseudo_data(observations, rng), model)
    assert pseudo[-1] > plain[-1] + 1.0
