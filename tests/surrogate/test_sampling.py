"""Samplers of hyperparameters: their dynamics, and the distributions that they leave."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybo.common.errors import NumericalError
from raybo.surrogate import Hyperparameter, Likelihood, LogNormal, Model, Observations, sample_hmc, sample_slice
from raybo.surrogate.sampling import leapfrog, reflected, slice_draw
from tests.surrogate.conftest import PAPER, model

WIDE = np.full(3, 1e6)


class Stub:
    """Stands for a likelihood: independent normals of the given deviations, cut off at the walls."""

    def __init__(self, sd, low, high):
        self.sd, self.d, self.model = np.asarray(sd, dtype=float), len(sd), self
        self._bounds = np.stack([low, high], axis=1).astype(float)

    def bounds(self, d):
        return self._bounds

    def free(self, d):
        return self._bounds[:, 0] < self._bounds[:, 1]

    def log_posterior(self, theta):
        z = theta / self.sd
        return -0.5 * float(z @ z), -z / self.sd

    def log_density(self, theta):
        return self.log_posterior(theta)[0]


def energy(target, u, momentum):
    return -target(u)[0] + 0.5 * momentum @ momentum


def test_the_dynamics_are_reversible_with_and_without_walls():
    target = Stub([0.5, 1.0, 2.0], -WIDE, WIDE).log_posterior
    rng = np.random.default_rng(0)
    for walls in (WIDE, np.full(3, 0.7)):
        u, p = rng.uniform(-0.6, 0.6, 3), rng.standard_normal(3)
        v, _, gradient, q = leapfrog(target, u, target(u)[1], p, -walls, walls, 50, 0.1)
        back, _, _, r = leapfrog(target, v, gradient, -q, -walls, walls, 50, 0.1)
        np.testing.assert_allclose(back, u, atol=1e-8)
        np.testing.assert_allclose(-r, p, atol=1e-8)


def test_halving_the_step_quarters_the_error_in_energy():
    target = Stub([0.5, 1.0, 2.0], -WIDE, WIDE).log_posterior
    u, p = np.array([0.3, -0.5, 1.0]), np.array([1.0, 0.4, -0.7])
    errors = []
    for steps in (64, 128, 256):
        v, _, _, q = leapfrog(target, u, target(u)[1], p, -WIDE, WIDE, steps, 1.6 / steps)
        errors.append(abs(energy(target, v, q) - energy(target, u, p)))
    assert errors[0] / errors[1] == pytest.approx(4.0, abs=0.2)
    assert errors[1] / errors[2] == pytest.approx(4.0, abs=0.2)


@settings(max_examples=200, deadline=None)
@given(st.floats(-50.0, 50.0), st.floats(-3.0, 0.0), st.floats(0.1, 4.0))
def test_reflection_equals_bouncing_wall_by_wall(u, low, width):
    high, position, sign = low + width, u, 1.0
    while not low <= position <= high:
        position = 2.0 * (low if position < low else high) - position
        sign = -sign
    found, momentum = reflected(np.array([u]), np.ones(1), np.array([low]), np.array([high]))
    assert found[0] == pytest.approx(position, abs=1e-9)
    at_a_wall = min(abs(position - low), abs(position - high)) < 1e-9
    assert momentum[0] == sign or at_a_wall


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", ["hmc", "slice"])
def test_moments_of_a_normal(sampler):
    """Draws of a standard normal: mean within 0.05, variance within 0.05.

    With at most two draws for an independent one these are 3 standard errors or more; the seed is fixed.
    """
    stub, rng = Stub([1.0], [-20.0], [20.0]), np.random.default_rng(1)
    if sampler == "hmc":
        found = sample_hmc(stub, np.zeros(1), rng, samples=10_000, burn_in=100, thin=1, leapfrogs=5, step=0.3)
    else:
        found = sample_slice(stub, np.zeros(1), rng, samples=20_000)
    assert abs(found.thetas.mean()) < 0.05
    assert 0.95 < found.thetas.var() < 1.05


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", ["hmc", "slice"])
def test_walls_truncate_the_distribution_and_nothing_else(sampler):
    """A normal cut off at -0.5 and 1: shares of four intervals within 5 standard errors of one draw in four."""
    stub, rng = Stub([1.0], [-0.5], [1.0]), np.random.default_rng(2)
    if sampler == "hmc":
        found = sample_hmc(stub, np.zeros(1), rng, samples=8_000, burn_in=0, thin=1, leapfrogs=5, step=0.4, tune=False)
    else:
        found = sample_slice(stub, np.zeros(1), rng, samples=8_000)
    edges = np.linspace(-0.5, 1.0, 5)
    cumulative = np.array([0.5 * math.erfc(-e / math.sqrt(2.0)) for e in edges])
    shares = np.diff(cumulative) / (cumulative[-1] - cumulative[0])
    seen = np.histogram(found.thetas[:, 0], edges)[0] / 8_000
    assert (np.abs(seen - shares) < 5 * np.sqrt(shares * (1 - shares) / 2_000)).all(), (seen, shares)


def test_the_step_is_tuned_unless_told_otherwise():
    stub = Stub([0.01, 0.01], [-1.0, -1.0], [1.0, 1.0])
    tuned = sample_hmc(stub, np.zeros(2), np.random.default_rng(3), samples=100, thin=1, step=1.0)
    assert 0.3 < tuned.acceptance < 0.95
    assert tuned.step < 0.1
    fixed = sample_hmc(stub, np.zeros(2), np.random.default_rng(3), samples=20, burn_in=5, step=0.001, tune=False)
    assert fixed.step == 0.001
    assert fixed.acceptance > 0.95
    assert fixed.evaluations == 1 + 20 * (5 + 200)


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", ["hmc", "slice"])
def test_samplers_agree_with_the_posterior_by_quadrature(sampler):
    """Mean and deviation of the only free hyperparameter within 5 standard errors, one draw in three independent.

    False alarms: below 1e-5 by the normal law; the seed is fixed.
    """
    rng = np.random.default_rng(0)
    X = rng.random((12, 1))
    one = Model(
        kernel="matern52",
        lengthscale=Hyperparameter(LogNormal(-1.0, 1.0), 1e-2, 10.0, 0.4),
        outputscale=Hyperparameter(fixed=1.0),
        noise_variance=Hyperparameter(fixed=0.01),
    )
    likelihood = Likelihood(Observations.of(X, np.sin(6 * X[:, 0])), one)
    grid = np.linspace(np.log(1e-2), np.log(10.0), 4_001)
    logs = np.array([likelihood.log_density(np.array([u, 0.0, np.log(0.01)])) for u in grid])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ grid
    sd = np.sqrt(weights @ (grid - mean) ** 2)
    start = np.array([mean, 0.0, np.log(0.01)])
    if sampler == "hmc":
        found = sample_hmc(likelihood, start, rng, samples=600, burn_in=200, thin=3, leapfrogs=8)
        assert 0.3 < found.acceptance <= 1.0
    else:
        found = sample_slice(likelihood, start, rng, samples=600)
    u = found.thetas[:, 0]
    assert found.thetas.shape == (600, 3)
    assert abs(u.mean() - mean) < 5 * sd / np.sqrt(200), (u.mean(), mean, sd)
    assert abs(u.std() / sd - 1) < 5 / np.sqrt(2 * 200), (u.std(), sd)
    np.testing.assert_array_equal(found.thetas[:, 1:], np.tile(start[1:], (600, 1)))


@pytest.mark.parametrize("sampler", [sample_hmc, sample_slice])
def test_samples_stay_within_ranges_under_flat_priors(sampler):
    tiny = model("matern52")
    likelihood = Likelihood(Observations.of(np.array([[0.2], [0.7]]), np.array([-1.0, 1.0])), tiny)
    found = sampler(likelihood, np.full(3, 9.0), np.random.default_rng(1), samples=10, burn_in=30, thin=3)
    bounds = tiny.bounds(1)
    assert found.thetas.shape == (10, 3)
    assert (found.thetas >= bounds[:, 0]).all()
    assert (found.thetas <= bounds[:, 1]).all()
    assert len(np.unique(found.thetas[:, 0])) > 5


@pytest.mark.parametrize("sampler", [sample_hmc, sample_slice])
def test_equal_streams_give_equal_chains(sampler):
    likelihood = Likelihood(Observations.of(np.array([[0.2], [0.7]]), np.array([-1.0, 1.0])), PAPER)
    a, b = (sampler(likelihood, np.zeros(3), np.random.default_rng(5), samples=3, burn_in=4) for _ in range(2))
    np.testing.assert_array_equal(a.thetas, b.thetas)
    assert a.evaluations == b.evaluations > 0
    none = sampler(likelihood, np.zeros(3), np.random.default_rng(5), samples=0, burn_in=2)
    assert none.thetas.shape == (0, 3)


@pytest.mark.parametrize("sampler", [sample_hmc, sample_slice])
def test_a_start_without_a_posterior_is_an_error(sampler):
    likelihood = Likelihood(Observations.of(np.array([[0.2], [0.7]]), np.array([np.nan, 1.0])), PAPER)
    with pytest.raises(NumericalError, match="start"):
        sampler(likelihood, np.zeros(3), np.random.default_rng(0))


def test_a_proposal_into_the_impossible_is_refused():
    """A density that vanishes beyond 0.2 is never sampled there."""

    class Cliff(Stub):
        def log_posterior(self, theta):
            value, gradient = super().log_posterior(theta)
            return (-math.inf, np.zeros_like(theta)) if theta[0] > 0.2 else (value, gradient)

    found = sample_hmc(Cliff([1.0], [-3.0], [3.0]), np.zeros(1), np.random.default_rng(6), samples=50, burn_in=20)
    assert found.thetas.max() <= 0.2


def test_a_slice_narrower_than_rounding_keeps_its_place():
    spike = slice_draw(lambda u: 0.0 if u == 0.3 else -math.inf, 0.3, 0.0, 0.0, 1.0, 1.0, np.random.default_rng(7))
    assert spike == (0.3, 0.0)


def test_shrinking_keeps_the_present_point_inside():
    """From an interval far wider than the slice every draw moves, uniformly on |u| < sqrt(-2 level)."""
    rng, u = np.random.default_rng(2), 0.3
    draws = [slice_draw(lambda v: -0.5 * v * v, u, -0.5 * u * u, -100.0, 100.0, 60.0, rng)[0] for _ in range(2_000)]
    assert u not in draws
    # a uniform height below the density at 0.3, then a uniform point of the slice: the second moment is E[-2 level] / 3
    assert np.mean(np.square(draws)) == pytest.approx((u * u + 2.0) / 3.0, rel=0.1)
    assert np.mean(draws) == pytest.approx(0.0, abs=0.08)
