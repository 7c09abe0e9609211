"""The option `hyperparameters` of the GP methods: estimates by name, values as text; and the schedules of grids."""

from __future__ import annotations

import math

import numpy as np
import pytest

import raybo
from raybo.methods import make
from raybo.methods.parts.hyperparameters import fixed_values
from raybo.surrogate import LogNormal, Observations, Standardised, fit_map, pseudo_data, standard_model
from tests.methods.test_gp_methods import run

GP_METHODS = ["gp-ucb", "gp-ts", "ei"]


@pytest.mark.parametrize("method", GP_METHODS)
def test_every_gp_method_supports_the_consistent_fit(method):
    """theta maximises the posterior of pseudo-data under the method's own priors; they are the stream's first draw."""
    searcher = run(method, 9, initial=8, hyperparameters="uhe")
    X, y = searcher.history.X[:8], searcher.history.y[:8]
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(8, 0)))
    theta = fit_map(pseudo_data(Observations.of(X, Standardised.of(y).apply(y)), rng), standard_model())
    np.testing.assert_allclose(searcher.trials[8].tags["theta"], theta, rtol=1e-12)
    assert isinstance(standard_model().lengthscale.prior, LogNormal)


@pytest.mark.parametrize("method", GP_METHODS)
def test_values_are_fixed_as_given(method):
    searcher = run(method, 7, initial=5, hyperparameters="lengthscale=0.3/0.2, outputscale=2,noise_variance=1e-4")
    for trial in searcher.trials[5:]:
        np.testing.assert_allclose(np.exp(trial.tags["theta"]), [0.3, 0.2, 2.0, 1e-4], rtol=1e-12)


def test_what_is_not_given_is_the_most_likely():
    searcher = run("ei", 12, initial=10, hyperparameters="lengthscale=0.3")
    theta = np.exp(searcher.trials[-1].tags["theta"])
    np.testing.assert_allclose(theta[:2], 0.3, rtol=1e-12)
    assert len({trial.tags["theta"][-1] for trial in searcher.trials[10:]}) == 2


@pytest.mark.parametrize("method", GP_METHODS)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mpa", "must be map, mcmc, slice, uhe or values such as lengthscale=0.3"),
        ("length=1", "has no 'length'; did you mean 'lengthscale'"),
        ("lengthscale=0", "needs a positive number for lengthscale, got '0'"),
        ("lengthscale=inf", "needs a positive number for lengthscale, got 'inf'"),
        ("lengthscale=0.3,noise_variance=much", "needs a positive number for noise_variance, got 'much'"),
        ("outputscale=1/2", "takes one outputscale"),
    ],
)
def test_wrong_text_is_refused(method, text, message):
    with pytest.raises(raybo.MethodError, match=f"^{method}: hyperparameters {message}"):
        make(method, hyperparameters=text)


def test_lengthscales_must_be_one_or_one_an_axis():
    with pytest.raises(raybo.MethodError, match="gives 3 length-scales for 2 axes; give 1 or 2"):
        run("ei", 5, initial=4, hyperparameters="lengthscale=1/1/1")


def test_estimates_fix_nothing():
    assert all(fixed_values(name) == {} for name in ("map", "mcmc", "slice", "uhe"))


@pytest.mark.parametrize("method", ["gp-ucb", "gp-ts"])
def test_grids_may_grow_by_any_power(method):
    searcher = run(method, 9, initial=4, grid="0.5", points_per_round=30)
    shapes = [math.ceil(30 * t**0.5) for t in range(1, 6)]
    assert make(method, grid="0.5").grid == 0.5
    if method == "gp-ucb":
        assert [trial.tags["evaluations"] for trial in searcher.trials[4:]] == shapes
    with pytest.raises(raybo.MethodError, match=f"^{method}: grid must be growing, fixed or in \\[0, 2\\]"):
        make(method, grid=-1.0)


def test_ei_may_be_the_probability_of_improvement():
    """Two standard deviations of certainty beat five of hope: the point found is the more probable improvement."""
    expected, probable = (run("ei", 9, initial=8, improvement=name).trials[8] for name in ("expected", "probability"))

    def z(trial, incumbent):
        return (trial.tags["mean"] - incumbent) / trial.tags["std"]

    y = np.array([trial.value for trial in run("ei", 8, initial=8).trials])
    incumbent = float(Standardised.of(y).apply(y).max())
    assert z(probable, incumbent) > z(expected, incumbent)
    with pytest.raises(raybo.MethodError, match=r"^ei: nu rescales the expected"):
        make("ei", improvement="probability", nu=2.0)
