"""Values inform about a gradient as published, as by brute force, and for designs as theory says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import chi2

from raybo.acquisition.gradient_information import DirectionCertainty, TraceReduction
from raybo.solvers import solve
from raybo.space import Float, Space
from raybo.surrogate import GP, GradientAt, Model, Observations, joint_draws
from tests.acquisition.oracles import PUBLISHED, X0, mixed_gp, mixed_points, observing, posterior, prior
from tests.acquisition.small_gp import gradient_error

KINDS = (TraceReduction, DirectionCertainty)


@pytest.fixture(params=PUBLISHED)
def kernel(request):
    return request.param


def test_published_traces_after_one_and_two_points(kernel):
    gp, told = posterior(kernel), PUBLISHED[kernel]
    at, Z = GradientAt.of(gp, X0), np.array([[0.5, 0.6], [0.3, 0.4]])
    assert at.trace == pytest.approx(told["trace"], rel=1e-10)
    assert at.trace - TraceReduction(at).value(Z)[0] == pytest.approx(told["after one"], rel=1e-10)
    after = GradientAt.of(gp.believing(Z[:1]), X0)
    assert after.trace - TraceReduction(after).value(Z)[1] == pytest.approx(told["after two"], rel=1e-10)


def test_published_certainty_of_the_direction(kernel):
    certainty = DirectionCertainty(GradientAt.of(posterior(kernel), X0))
    assert certainty.value(np.array([[0.5, 0.6]]))[0] == pytest.approx(PUBLISHED[kernel]["certainty"], rel=1e-10)
    assert ndtr(math.sqrt(certainty.certainty)) == pytest.approx(PUBLISHED[kernel]["p"], rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_information_gradient_matches_finite_differences(kernel, kind):
    rng = np.random.default_rng(1)
    gp = mixed_gp(kernel)
    acquisition = kind(GradientAt.of(gp, mixed_points(rng, 1)[0]))
    points = mixed_points(rng, 6)
    value, gradient = acquisition.value_and_gradient(points)
    np.testing.assert_allclose(value, acquisition.value(points), rtol=1e-12)
    assert not gradient[:, 1].any()
    for j in (0, 2):
        shift = 6e-6 * np.eye(3)[j]
        numeric = (acquisition.value(points + shift) - acquisition.value(points - shift)) / 1.2e-5
        np.testing.assert_allclose(gradient[:, j], numeric, rtol=1e-6, atol=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_information_gradient_matches_on_many_axes(kernel, kind):
    rng = np.random.default_rng(2)
    observations = Observations.of(rng.random((40, 30)), rng.standard_normal(40))
    gp = GP.of(observations, Model(kernel=kernel), np.log([*rng.uniform(0.8, 1.6, 30), 1.0, 0.01]))
    acquisition = kind(GradientAt.of(gp, np.full(30, 0.5)))
    assert gradient_error(acquisition, 0.3 + 0.4 * rng.random((4, 30))) < 1e-6


@given(z=st.tuples(*[st.floats(0.0, 1.0)] * 2), seed=st.integers(0, 20))
@settings(max_examples=40, deadline=None)
def test_the_reduction_is_that_of_conditioning_on_z(z, seed):
    gp = mixed_gp("rbf" if seed % 2 else "matern52", seed)
    x = mixed_points(np.random.default_rng(seed), 1)[0]
    z = np.array([[z[0], 0.5, z[1]]])
    at = GradientAt.of(gp, x)
    after = GradientAt.of(gp.believing(z), x).trace
    reduction = TraceReduction(at).value(z)[0]
    assert reduction >= 0.0
    assert at.trace - reduction == pytest.approx(after, rel=1e-7, abs=1e-9)


def test_the_certainty_is_a_mean_over_outcomes(kernel):
    """Every outcome conditioned on in turn, at Gauss-Hermite nodes: the integrand is quadratic in the outcome."""
    gp, z = posterior(kernel), np.array([[0.5, 0.6]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    mean, var = gp.posterior(z)
    total = 0.0
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        y = mean + math.sqrt(var[0] + 0.01) * node
        after = GradientAt.of(observing(gp, z, y), X0)
        total += weight * float(after.mean @ np.linalg.solve(after.cov, after.mean))
    assert DirectionCertainty(GradientAt.of(gp, X0)).value(z)[0] == pytest.approx(total, rel=1e-9)


# ---- designs


def farthest_pick(gp, x, half_width=0.2, seed=0):
    """The best point for the gradient at x within x -+ half_width on one axis."""
    grid = np.linspace(x - half_width, x + half_width, 40_001)[:, None]
    values = TraceReduction(GradientAt.of(gp, np.array([x]))).value(grid)
    return float(grid[int(np.argmax(values)), 0]), float(values.max())


@pytest.mark.parametrize(
    ("name", "distance"), [("rbf", 1.0), ("matern52", (1.0 + math.sqrt(5.0)) / (2 * math.sqrt(5.0)))]
)
def test_the_first_point_lies_at_the_theorys_distance(name, distance):
    l = 0.2  # noqa: E741 - the length-scale's own letter
    z, _ = farthest_pick(prior(name, l, 0.01), 0.5, half_width=0.5)
    assert abs(z - 0.5) == pytest.approx(distance * l, abs=3e-5)


def test_the_pick_beside_an_observed_centre():
    gp = prior("rbf", 1.0, 0.01).believing(np.array([[0.5]]))
    z, reduction = farthest_pick(gp, 0.5, half_width=0.5)
    assert abs(z - 0.5) == pytest.approx(0.431813, abs=5e-5)
    assert 1.0 - reduction == pytest.approx(0.178327, abs=1e-6)


def test_picks_alternate_between_the_faces_of_the_cube():
    gp, x, picks, traces = prior("rbf", 0.75, 0.01).believing(np.array([[0.5]])), np.array([0.5]), [], []
    for _ in range(4):
        traces.append(GradientAt.of(gp, x).trace)
        z, _ = farthest_pick(gp, 0.5)
        picks.append(z)
        gp = gp.believing(np.array([[z]]))
    assert traces == pytest.approx([1.777778, 0.437713, 0.126086, 0.094156], abs=1e-6)
    assert sorted(picks[:2]) == pytest.approx([0.3, 0.7])
    assert sorted(picks[2:]) == pytest.approx([0.3, 0.7])


def test_a_greedy_batch_matches_published_central_differences():
    """The bound of Theorem 1: 2 m d points chosen one by one leave a trace at most that of the best such design."""
    d, m, sd, h = 3, 2, 0.3, 0.5
    expected = d * (1.0 - 2.0 * h**2 * math.exp(-(h**2)) / (1.0 + sd**2 / m - math.exp(-2.0 * h**2)))
    assert expected == pytest.approx(0.335728938672, rel=1e-10)
    x, gp = np.full(d, 0.5), prior("rbf", 1.0, sd**2, d)
    cube = Space({f"x{i}": Float(0, 1) for i in range(d)}).cube
    rng = np.random.default_rng(0)
    near = np.concatenate([x + h * np.eye(d), x - h * np.eye(d)])
    for _ in range(2 * m * d):
        found = solve("lbfgsb", TraceReduction(GradientAt.of(gp, x)), cube, rng, size=64, starts=5, near=near)
        gp = gp.believing(found.x[None])
    assert GradientAt.of(gp, x).trace <= expected


@pytest.mark.statistical
def test_the_trace_bounds_the_gradients_error():
    """|grad f - mu|^2 <= 2 log(1/delta) trace with probability 1 - delta at least, delta = 0.2.

    Exact draws of the gradient; 4,000 of them; false alarms below 1e-3 even if the bound held with equality.
    """
    gp, delta = posterior("rbf"), 0.2
    cov = GradientAt.of(gp, X0).cov
    rng = np.random.default_rng(0)
    errors = rng.multivariate_normal(np.zeros(2), cov, size=4_000)
    share = np.mean((errors**2).sum(axis=1) <= 2.0 * math.log(1.0 / delta) * np.trace(cov))
    assert share >= 1.0 - delta - 3.1 * math.sqrt(delta * (1.0 - delta) / 4_000)
    assert chi2.cdf(2.0 * math.log(1.0 / delta), 1) >= 1.0 - delta  # the worst case: all variance along one direction


@pytest.mark.statistical
def test_draws_exceed_upper_bounds_like_normal_variables():
    """P(f <= mean + 3 std) = Phi(3) at any point; 40,000 draws; false alarms below 1e-3."""
    gp = posterior("matern52")
    draws = joint_draws(gp, X0[None], np.random.default_rng(1), 40_000)[:, 0]
    mean, var = gp.posterior(X0[None])
    share = np.mean(draws <= mean[0] + 3.0 * math.sqrt(var[0]))
    assert share == pytest.approx(0.998650, abs=3.3 * math.sqrt(0.99865 * 0.00135 / 40_000))
