"""Looking one move ahead: published numbers, brute force by conditioning, differences, and the order of the forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from raybo.acquisition.look_ahead import FiniteLookAhead, OneShotLookAhead
from tests.acquisition.oracles import (
    BASE,
    BETA,
    FINITE,
    INNER,
    PUBLISHED,
    Z,
    covariance,
    mixed_gp,
    mixed_points,
    observing,
    posterior,
)
from tests.acquisition.small_gp import gradient_error

NOTHING = np.empty((0, 2))


@pytest.fixture(params=PUBLISHED)
def kernel(request):
    return request.param


def one_shot(gp, base, pending=NOTHING):
    return OneShotLookAhead(gp, BETA, base, pending)


def lower_bound(gp, X):
    mean, var = gp.posterior(X)
    return mean - BETA * np.sqrt(var)


def outcomes(gp, Z, base):
    """The posteriors after each imagined outcome, conditioned on in full."""
    mean, cov = gp.joint(Z)
    L = np.linalg.cholesky(cov + gp.noise_variance * np.eye(len(Z)))
    return [observing(gp, Z, mean + L @ e) for e in base]


# ---- one-shot


def test_published_value_and_gradients(kernel):
    published = PUBLISHED[kernel]
    value, dZ, dX = one_shot(posterior(kernel), -BASE).value_and_gradient(Z[None], INNER[None])
    assert -value[0] == pytest.approx(published["J"], rel=1e-9)
    np.testing.assert_allclose(-dZ[0], published["dJ/dZ"], rtol=1e-8)
    np.testing.assert_allclose(-dX[0, 0], published["dJ/dx1"], rtol=1e-9)
    single, _, _ = one_shot(posterior(kernel), -BASE[:, :1]).value_and_gradient(Z[None, :1], INNER[None])
    assert -single[0] == pytest.approx(published["J of one"], rel=1e-9)


def test_look_ahead_equals_conditioning_on_each_outcome(kernel):
    gp = mixed_gp(kernel)
    gp = type(gp).of(gp.observations, type(gp.model)(kernel=kernel), gp.theta)  # zero mean: it is not estimated again
    rng = np.random.default_rng(3)
    points, inner, base = mixed_points(rng, 3), mixed_points(rng, 5), rng.standard_normal((5, 3))
    value, _, _ = OneShotLookAhead(gp, BETA, base, np.empty((0, 3))).value_and_gradient(points[None], inner[None])
    after = outcomes(gp, points, base)
    assert value[0] == pytest.approx(np.mean([lower_bound(g, x[None])[0] for g, x in zip(after, inner, strict=True)]))


def test_look_ahead_gradients_match_finite_differences(kernel):
    gp, rng, step = mixed_gp(kernel), np.random.default_rng(4), 6e-6
    pending, base = mixed_points(rng, 2), rng.standard_normal((4, 5))
    Zs = np.stack([mixed_points(rng, 3) for _ in range(2)])
    Xs = np.stack([mixed_points(rng, 4) for _ in range(2)])
    objective = OneShotLookAhead(gp, BETA, base, pending)
    _, dZ, dX = objective.value_and_gradient(Zs, Xs)
    for points, gradient in ((Zs, dZ), (Xs, dX)):
        assert not gradient[:, :, 1].any()
        numeric = np.zeros_like(gradient)
        for i, j in np.ndindex(points.shape[1], 3):
            if j == 1:
                continue
            sides = []
            for sign in (1.0, -1.0):
                moved = points.copy()
                moved[:, i, j] += sign * step
                both = (moved, Xs) if points is Zs else (Zs, moved)
                sides.append(objective.value_and_gradient(*both)[0])
            numeric[:, i, j] = (sides[0] - sides[1]) / (2.0 * step)
        assert np.abs(numeric - gradient).max() < 1e-6 * np.abs(gradient).max()


def test_copies_do_not_know_of_each_other(kernel):
    gp, rng = posterior(kernel), np.random.default_rng(5)
    Zs, Xs = rng.random((3, 2, 2)), rng.random((3, 3, 2))
    together = one_shot(gp, BASE).value_and_gradient(Zs, Xs)
    for i in range(3):
        alone = one_shot(gp, BASE).value_and_gradient(Zs[i : i + 1], Xs[i : i + 1])
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_allclose(a[i], b[0], rtol=1e-9, atol=1e-12)


def test_pending_points_are_fixed_points_of_the_batch(kernel):
    gp = posterior(kernel)
    whole, dZ, dX = one_shot(gp, BASE).value_and_gradient(Z[None], INNER[None])
    value, dz, dx = one_shot(gp, BASE, pending=Z[1:]).value_and_gradient(Z[None, :1], INNER[None])
    assert value == pytest.approx(whole)
    np.testing.assert_allclose(dz, dZ[:, :1], rtol=1e-10)
    np.testing.assert_allclose(dx, dX, rtol=1e-10)


def test_without_surprise_only_the_variance_changes(kernel):
    gp = posterior(kernel)
    value, _, _ = one_shot(gp, np.zeros((1, 2))).value_and_gradient(Z[None], INNER[None, :1])
    assert value[0] == pytest.approx(lower_bound(gp.believing(Z), INNER[:1])[0], rel=1e-9)


def test_the_best_inner_points_bound_every_choice(kernel):
    gp, rng = posterior(kernel), np.random.default_rng(6)
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 61), np.linspace(0, 1, 61)), axis=-1).reshape(-1, 2)
    nested = np.mean([lower_bound(g, grid).max() for g in outcomes(gp, Z, BASE)])
    Xs = grid[rng.integers(len(grid), size=(50, 3))]
    values, _, _ = one_shot(gp, BASE).value_and_gradient(np.repeat(Z[None], 50, axis=0), Xs)
    assert (values <= nested + 1e-12).all()
    best = np.array([grid[np.argmax(lower_bound(g, grid))] for g in outcomes(gp, Z, BASE)])
    assert one_shot(gp, BASE).value_and_gradient(Z[None], best[None])[0][0] == pytest.approx(nested)


# ---- finite


def test_published_envelope_and_its_order(kernel):
    gp, published = posterior(kernel), PUBLISHED[kernel]
    value = FiniteLookAhead(gp, BETA, FINITE).value(Z[:1])[0]
    assert -value == pytest.approx(published["envelope"], rel=1e-9)
    after = lower_bound(gp.believing(Z[:1]), FINITE).max()
    assert -after == pytest.approx(published["least"], abs=1e-6)
    assert value >= after  # and what is known now is no better than that
    assert after >= lower_bound(gp, FINITE).max()


def test_published_nested_value_bounds_the_finite_one(kernel):
    """The inner maximum over the whole square, here a grid of it, at 16 Gauss-Hermite nodes."""
    gp, published = posterior(kernel), PUBLISHED[kernel]
    nodes, weights = np.polynomial.hermite_e.hermegauss(16)
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201)), axis=-1).reshape(-1, 2)
    after = gp.believing(Z[:1])
    std = np.sqrt(after.posterior(grid)[1])
    slopes = covariance(gp, grid, Z[:1])[:, 0] / np.sqrt(gp.posterior(Z[:1])[1][0] + 0.01)
    level = gp.posterior(grid)[0] - BETA * std
    nested = sum(w * (level + slopes * x).max() for x, w in zip(nodes, weights / weights.sum(), strict=True))
    assert -nested == pytest.approx(published["nested"], abs=2e-4)
    assert nested >= FiniteLookAhead(gp, BETA, FINITE).value(Z[:1])[0]


@given(seed=st.integers(0, 1_000))
@settings(max_examples=25, deadline=None)
def test_the_envelope_is_the_integral_over_outcomes(seed):
    rng = np.random.default_rng(seed)
    gp, inner, z = posterior("rbf"), rng.random((6, 2)), rng.random((1, 2))
    inner[3] = inner[1]  # equal lines
    after = gp.believing(z)
    level = gp.posterior(inner)[0] - BETA * np.sqrt(after.posterior(inner)[1])
    slopes = covariance(gp, inner, z)[:, 0] / np.sqrt(gp.posterior(z)[1][0] + 0.01)
    edges = np.linspace(-9.0, 9.0, 20_001)
    middle, mass = 0.5 * (edges[1:] + edges[:-1]), np.diff(ndtr(edges))
    numeric = float((level[:, None] + slopes[:, None] * middle).max(axis=0) @ mass)
    assert FiniteLookAhead(gp, BETA, inner).value(z)[0] == pytest.approx(numeric, abs=1e-6)


def test_the_envelopes_gradient_agrees_with_differences(kernel):
    worth = FiniteLookAhead(posterior(kernel), BETA, FINITE)
    assert gradient_error(worth, np.random.default_rng(7).random((8, 2))) < 1e-6


def test_along_categories_nothing_climbs(kernel):
    rng = np.random.default_rng(8)
    worth = FiniteLookAhead(mixed_gp(kernel), BETA, mixed_points(rng, 6))
    assert not worth.value_and_gradient(mixed_points(rng, 4))[1][:, 1].any()
