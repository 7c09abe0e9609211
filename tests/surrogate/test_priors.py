"""Priors as densities of the logarithm, and what a model makes of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from raybo.common.errors import MethodError
from raybo.surrogate import (
    Flat,
    Gamma,
    Hyperparameter,
    LogNormal,
    Model,
    Normal,
    gibo_model,
    random_grid_model,
    standard_model,
    turbo_model,
    uhe_model,
)
from tests.surrogate.conftest import STEP

U = np.linspace(-3.0, 1.0, 9)


@pytest.mark.parametrize(
    "prior", [LogNormal(-1.0, 0.7), Gamma(1e-3, 10.0), Gamma(2.0, 0.5), Normal(2.0, 1.0), Flat()], ids=repr
)
def test_priors_are_stated_densities_with_their_derivatives(prior):
    value, slope = prior.log_density(U)
    numeric = (prior.log_density(U + STEP)[0] - prior.log_density(U - STEP)[0]) / (2 * STEP)
    np.testing.assert_allclose(slope, numeric, rtol=1e-6, atol=1e-8)
    expected = {
        LogNormal: lambda: stats.norm(prior.log_median, prior.log_sd).logpdf(U),
        Gamma: lambda: stats.gamma(prior.shape, scale=1 / prior.rate).logpdf(np.exp(U)) + U,  # with the Jacobian
        Normal: lambda: stats.norm(prior.mean, prior.sd).logpdf(np.exp(U)),  # without it
        Flat: lambda: np.zeros_like(U),
    }[type(prior)]()
    np.testing.assert_allclose(value - value[0], expected - expected[0], rtol=1e-9, atol=1e-9)


def test_published_gamma_densities():
    """Of 0.1, 0.5 and 1, Gamma(1e-3, rate 10) with the logarithm's Jacobian, up to the same constant."""
    value, _ = Gamma(1e-3, 10.0).log_density(np.log([0.1, 0.5, 1.0]))
    expected = np.array([-7.9071789, -11.9055695, -16.9048763])
    np.testing.assert_allclose(value - value[0], expected - expected[0], atol=2e-7)


def test_fixed_hyperparameters_have_no_prior_and_no_freedom():
    m = Model(
        lengthscale=Hyperparameter(LogNormal(0.0, 1.0), fixed=(0.2, 0.4)),
        outputscale=Hyperparameter(LogNormal(0.0, 1.0), fixed=2.0),
        noise_variance=Hyperparameter(LogNormal(-6.0, 1.0), 1e-6, 1.0, 1e-3),
    )
    theta = m.start(2)
    np.testing.assert_allclose(np.exp(theta), [0.2, 0.4, 2.0, 1e-3])
    np.testing.assert_array_equal(m.free(2), [False, False, False, True])
    value, gradient = m.log_prior(theta)
    assert value == pytest.approx(-0.5 * (math.log(1e-3) + 6.0) ** 2)
    np.testing.assert_allclose(gradient, [0.0, 0.0, 0.0, -(math.log(1e-3) + 6.0)])


def test_ranges_by_axis_contain_the_start():
    m = Model(lengthscale=Hyperparameter(low=(0.1, 0.2, 0.3), high=1.0, start=0.15))
    np.testing.assert_allclose(np.exp(m.bounds(3)[:3]), [[0.1, 1.0], [0.2, 1.0], [0.3, 1.0]])
    np.testing.assert_allclose(np.exp(m.start(3)[:3]), [0.15, 0.2, 0.3])


@pytest.mark.parametrize(
    "wrong", [{"low": 0.0}, {"low": -1.0}, {"high": math.inf}, {"fixed": 0.0}, {"low": 2.0, "high": 1.0}]
)
def test_impossible_ranges_are_refused(wrong):
    with pytest.raises(MethodError, match="hyperparameter"):
        Hyperparameter(**wrong)


def test_a_range_may_be_a_single_value():
    assert Hyperparameter(low=1.0, high=1.0).low == 1.0


def test_the_presets_are_the_published_ones():
    grid = random_grid_model()
    assert (grid.kernel, grid.size(5), grid.mean) == ("matern32", 3, "zero")
    np.testing.assert_allclose(np.exp(grid.bounds(5)), [[1e-5, 1e5], [1.0, 1.0], [1e-4, 1e-4]])
    np.testing.assert_allclose(np.exp(grid.start(5)), [1.0, 1.0, 1e-4])
    uhe = uhe_model()
    np.testing.assert_allclose(np.exp(uhe.bounds(1)), [[0.005, 10.0], [1e-3, 1e3], [1e-6, 1.0]])
    assert uhe.lengthscale.prior == uhe.outputscale.prior == uhe.noise_variance.prior == Gamma(1e-3, 10.0)
    assert uhe_model(Gamma(1e-3, 0.1)).noise_variance.prior == Gamma(1e-3, 0.1)
    gibo = gibo_model(0.01, 0.1, 0.3)
    np.testing.assert_allclose(np.exp(gibo.start(2)), [0.2, 0.2, 2.0, 0.01])
    assert gibo.mean == turbo_model().mean == "constant"
    assert standard_model("rbf").kernel == "rbf"
    assert standard_model().lengthscale.prior == LogNormal(-1.0, 1.0)
