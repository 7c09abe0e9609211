"""The posterior against a naive form, published values, and its own shortcuts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybo.surrogate import GP, Hyperparameter, LogNormal, Model, Observations
from tests.surrogate.conftest import (
    PAPER,
    differences,
    flat,
    model,
    naive_kernel,
    naive_matrix,
    naive_posterior,
    points,
    told,
)

ORACLE_X, ORACLE_Y = np.array([[0.0], [1.0], [2.5]]), np.array([0.2, -0.4, 0.7])


def test_the_posterior_is_that_of_the_naive_loop(gp):
    X = points(np.random.default_rng(0), 6)
    mean, cov = naive_posterior(gp, X)
    got_mean, got_var = gp.posterior(X)
    joint_mean, joint_cov = gp.joint(X)
    np.testing.assert_allclose(got_mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(got_var, np.diag(cov), rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(joint_mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(joint_cov, cov, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(joint_cov, joint_cov.T)
    assert np.linalg.eigvalsh(joint_cov).min() > -1e-12


def test_the_random_grid_models_posterior_is_published():
    """Kim, Liu, Chen's model on three points of the line, at length-scale 1, with noise 1e-4 and with noise 1."""
    gp = GP.of(Observations.of(ORACLE_X, ORACLE_Y), PAPER, np.log([1.0, 1.0, 1e-4]))
    mean, var = gp.posterior(np.array([[0.5], [1.8], [4.0]]))
    np.testing.assert_allclose(mean, [-0.141233680989, 0.151147390423, 0.215536523934], rtol=1e-11)
    np.testing.assert_allclose(np.sqrt(var), [0.409622111470, 0.607535375279, 0.962669084359], rtol=1e-11)
    bound = mean + np.sqrt(np.log(3.0) * var)
    np.testing.assert_allclose(bound, [0.288110536581, 0.787933816354, 1.224555307904], rtol=1e-11)
    assert gp.information_gain == pytest.approx(13.6429825521, rel=1e-11)
    noisy = GP.of(gp.observations, PAPER, np.log([1.0, 1.0, 1.0]))
    assert noisy.information_gain == pytest.approx(1.0005817825, rel=1e-9)


def test_published_posterior_of_the_uhe_model():
    gp = GP.of(Observations.of(np.array([[0.0], [0.5]]), np.array([1.0, -1.0])), Model(), np.log([0.5, 1.0, 0.01]))
    mean, var = gp.posterior(np.array([[0.25], [0.1]]))
    np.testing.assert_allclose(mean, [0.0, 0.6656910942], atol=1e-9)
    np.testing.assert_allclose(var, [0.1047431052, 0.0448632360], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "noise", "gain"),
    [
        ("matern52", 0.01, 4.4583403506),
        ("matern52", 0.1, 2.2692107048),
        ("rbf", 0.01, 4.3914839391),
        ("rbf", 0.1, 2.2166690463),
    ],
)
def test_published_information_gains_equal_their_chain_form(name, noise, gain):
    X, theta = np.array([[0.0], [1.0]]), np.log([1.0, 1.0, noise])
    one = GP.of(Observations.of(X[:1], np.zeros(1)), model(name), theta)
    two = GP.of(Observations.of(X, np.zeros(2)), model(name), theta)
    assert two.information_gain == pytest.approx(gain, abs=1e-9)
    chain = 0.5 * np.log1p(1.0 / noise) + 0.5 * np.log1p(one.posterior(X[1:])[1][0] / noise)
    assert two.information_gain == pytest.approx(chain, rel=1e-12)


def test_repeated_observations_leave_a_floor_of_variance():
    """noise / (n + noise) at a point seen n times, with unit outputscale."""
    X = np.full((5, 1), 0.3)
    gp = GP.of(Observations.of(X, np.zeros(5)), model("matern52"), np.log([0.5, 1.0, 0.01]))
    assert gp.posterior(X[:1])[1][0] == pytest.approx(0.0019960080, abs=1e-10)


def test_gradients_in_x_are_those_of_central_differences(gp):
    X = points(np.random.default_rng(1), 5)
    mean, var, dmean, dvar = gp.posterior_gradient(X)
    np.testing.assert_allclose((mean, var), gp.posterior(X), rtol=1e-9)
    for j in (0, 2):
        for analytic, i in ((dmean, 0), (dvar, 1)):
            numeric = differences(lambda Z, i=i: gp.posterior(Z)[i], X, j)
            np.testing.assert_allclose(analytic[:, j], numeric, rtol=1e-6, atol=1e-7)
    assert not dmean[:, 1].any()
    assert not dvar[:, 1].any()


def test_gradients_at_the_data_are_finite_and_right(gp):
    """At coinciding points the profile's square root has no derivative; its form in q has."""
    dmean = gp.posterior_gradient(gp.X)[2]
    for j in (0, 2):
        numeric = differences(lambda Z: gp.posterior(Z)[0], gp.X, j)
        tolerance = 1e-3 if gp.model.kernel == "matern32" else 1e-6  # whose mean has a kinked slope there
        np.testing.assert_allclose(dmean[:, j], numeric, rtol=tolerance, atol=tolerance)


def test_blocks_do_not_change_the_posterior(gp):
    X = points(np.random.default_rng(2), 4_000)
    whole = gp.posterior_gradient(X)
    np.testing.assert_allclose(gp.posterior(X), whole[:2], rtol=1e-9)
    for part, all_rows in zip(gp.posterior_gradient(X[1_360:1_370]), whole, strict=True):
        np.testing.assert_allclose(part, all_rows[1_360:1_370], rtol=1e-9, atol=1e-11)


def test_without_observations_it_is_the_prior(kernel):
    prior = GP.of(Observations.of(np.empty((0, 2)), np.empty(0)), model(kernel), np.log([0.3, 0.3, 1.7, 0.1]))
    X = np.random.default_rng(3).random((4, 2))
    mean, var, dmean, dvar = prior.posterior_gradient(X)
    np.testing.assert_array_equal([mean, var], prior.posterior(X))
    np.testing.assert_array_equal([mean, var], [np.zeros(4), np.full(4, 1.7)])
    assert not dmean.any()
    assert not dvar.any()
    expected = [[1.7 * naive_kernel(kernel, a, b, [0.3, 0.3], [False, False]) for b in X] for a in X]
    np.testing.assert_allclose(prior.joint(X)[1], expected, rtol=1e-12)
    assert prior.information_gain == 0.0
    once = prior.believing(X[:1])
    np.testing.assert_allclose(once.posterior(X), told(prior, X[:1], np.zeros(1)).posterior(X), rtol=1e-12)


def test_constant_means_are_generalised_least_squares_estimates(kernel, mixed):
    theta = np.log([0.05, 0.9, 0.05, 1.3, 0.01])
    shifted = Observations.of(mixed.X, mixed.y + 100.0, mixed.categorical)
    gp = GP.of(shifted, model(kernel, mean="constant"), theta)
    A = naive_matrix(gp, gp.X, gp.X) + 0.01 * np.eye(9)
    ones = np.linalg.solve(A, np.ones(9))
    assert gp.prior_mean == pytest.approx(ones @ shifted.y / ones.sum(), rel=1e-10)
    centred = GP.of(Observations.of(mixed.X, shifted.y - gp.prior_mean, mixed.categorical), model(kernel), theta)
    X = points(np.random.default_rng(4), 5)
    np.testing.assert_allclose(gp.posterior(X)[0], centred.posterior(X)[0] + gp.prior_mean, rtol=1e-10)
    np.testing.assert_allclose(gp.posterior_gradient(X)[2], centred.posterior_gradient(X)[2], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(gp.joint(X)[0], gp.posterior(X)[0], rtol=1e-12)
    assert gp.believing(X).prior_mean == gp.prior_mean


def test_leave_one_out_means_are_those_of_gps_without_the_point(gp):
    kept = gp.observations
    means = [
        GP.of(
            Observations.of(np.delete(kept.X, i, 0), np.delete(kept.y, i) - gp.prior_mean, kept.categorical),
            replace(gp.model, mean="zero"),
            gp.theta,
        ).mean(kept.X[i : i + 1])[0]
        for i in range(gp.n)
    ]
    np.testing.assert_allclose(gp.leave_one_out(), np.array(means) + gp.prior_mean, atol=1e-8)


def test_growing_a_factor_point_by_point_keeps_digits(gp):
    rng = np.random.default_rng(5)
    grown = gp
    for _ in range(60):
        grown = grown.believing(points(rng, 1))
    whole = GP.of(grown.observations, gp.model, gp.theta)
    np.testing.assert_allclose(grown.L, whole.L, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("kept", "new"), [(9, 3), (7, 3), (3, 5), (9, 0), (6, 0)])
def test_a_factor_used_again_gives_the_same_posterior(gp, kept, new):
    """Of nine points the first `kept` stay, and `new` others follow; three of eight are too few to be of use."""
    rng = np.random.default_rng(8)
    X, y = np.vstack([gp.X[:kept], points(rng, new)]), rng.standard_normal(kept + new)
    observations, Z = Observations.of(X, y, gp.observations.categorical), points(rng, 20)
    again = GP.of(observations, gp.model, gp.theta, earlier=gp)
    fresh = GP.of(observations, gp.model, gp.theta)
    np.testing.assert_allclose(again.posterior(Z), fresh.posterior(Z), rtol=1e-8, atol=1e-10)
    assert (again.kernel is gp.kernel) == (kept != 3)
    other = GP.of(observations, gp.model, gp.theta + 0.1, earlier=gp)
    np.testing.assert_array_equal(other.posterior(Z), GP.of(observations, gp.model, gp.theta + 0.1).posterior(Z))


def test_a_factor_is_not_reused_for_other_noise(gp):
    doubled = Observations.of(np.vstack([gp.X, gp.X]), np.append(gp.y, gp.y), gp.observations.categorical)
    fresh = GP.of(doubled, gp.model, gp.theta)
    again = GP.of(doubled, gp.model, gp.theta, earlier=gp)
    assert again.kernel is not gp.kernel
    np.testing.assert_array_equal(again.L, fresh.L)


def test_believing_a_repeated_point_stays_accurate(gp):
    again = gp
    for _ in range(30):
        again = again.believing(gp.X[:1])
    Z, mean = points(np.random.default_rng(5), 20), gp.posterior(gp.X[:1])[0]
    merged = Observations.of(
        np.vstack([gp.X, np.repeat(gp.X[:1], 30, axis=0)]), np.append(gp.y, np.repeat(mean, 30)), (False, True, False)
    )
    whole = GP.of(merged, gp.model, gp.theta)
    np.testing.assert_allclose(again.posterior(Z), whole.posterior(Z), rtol=1e-6, atol=1e-8)


def test_a_factor_that_cannot_grow_is_made_anew():
    """A repeat without noise leaves a pivot of rounding error, where exact arithmetic leaves the noise."""
    theta = np.log([0.5, 1.0, 1e-18])
    gp = GP.of(Observations.of(np.array([[0.2], [0.8]]), np.array([1.0, -1.0])), model("rbf"), theta)
    assert gp.jitter == 0.0
    again = gp.believing(gp.X)
    assert 0.0 < again.jitter <= 1e-8
    np.testing.assert_allclose(again.posterior(gp.X)[0], gp.y, atol=1e-6)
    more = again.believing(np.array([[0.5]]))
    assert more.jitter == again.jitter
    A = naive_matrix(more, more.X, more.X) + (1e-18 + more.jitter) * np.eye(5)
    np.testing.assert_allclose(more.L @ more.L.T, A, rtol=0.0, atol=1e-13)


def test_believing_leaves_the_mean_and_shrinks_the_variance(gp):
    rng = np.random.default_rng(6)
    pending, Z = points(rng, 3), points(rng, 50)
    believed = gp.believing(pending)
    np.testing.assert_allclose(believed.posterior(Z)[0], gp.posterior(Z)[0], rtol=1e-12, atol=1e-13)
    assert (believed.posterior(Z)[1] <= gp.posterior(Z)[1] + 1e-10).all()
    assert (believed.posterior(pending)[1] < 0.01).all()
    from_scratch = told(gp, pending, gp.posterior(pending)[0])
    np.testing.assert_allclose(believed.posterior(Z), from_scratch.posterior(Z), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(believed.L, from_scratch.L, rtol=1e-10, atol=1e-12)
    assert gp.believing(np.empty((0, 3))) is gp
    twice = gp.believing(pending[:1]).believing(pending[1:])
    np.testing.assert_allclose(twice.posterior(Z), believed.posterior(Z), rtol=1e-9, atol=1e-12)


def test_counted_observations_equal_repeated_ones(kernel):
    rng = np.random.default_rng(7)
    X = np.repeat(rng.random((4, 2)), [1, 3, 2, 1], axis=0)[rng.permutation(7)]
    y = rng.standard_normal(7)
    counted, single = Observations.of(X, y), Observations(X, y, np.ones(7), np.zeros(7), (False, False))
    assert counted.X.shape == (4, 2)
    theta, Z = np.log([0.3, 0.5, 1.1, 0.05]), rng.random((10, 2))
    a, b = GP.of(counted, model(kernel), theta), GP.of(single, model(kernel), theta)
    np.testing.assert_allclose(a.posterior(Z), b.posterior(Z), rtol=1e-9, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 30),
    d=st.integers(1, 4),
    scale=st.floats(1e-5, 1e5),
    noise=st.sampled_from([1e-12, 1e-6, 1.0]),
    name=st.sampled_from(["rbf", "matern32", "matern52"]),
)
def test_the_variance_lies_between_zero_and_the_prior(seed, n, d, scale, noise, name):
    """Also for coinciding and nearly coinciding points, and length-scales far beyond the cube."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)).round(1)
    X[: n // 2] += np.spacing(X[: n // 2])
    gp = GP.of(Observations.of(X, rng.standard_normal(n)), model(name), np.log([scale] * d + [1.0, noise]))
    mean, var = gp.posterior(np.vstack([X, rng.random((20, d))]))
    assert np.isfinite(mean).all()
    assert (var >= 0.0).all()
    assert (var <= 1.0 + 1e-9).all()
    assert all(np.isfinite(part).all() for part in gp.posterior_gradient(X))


def test_points_one_ulp_apart_need_little_jitter():
    x = 0.5 + np.arange(40)[:, None] * np.spacing(0.5)
    smooth = Model(kernel="rbf", noise_variance=Hyperparameter(LogNormal(-6.0, 1.5), 1e-12, 1.0, 1e-3))
    gp = GP.of(Observations.of(x, np.zeros(40)), smooth, np.log([20.0, 1.0, 1e-16]))
    assert gp.n == 40
    assert 0.0 < gp.jitter <= 1e-8
    assert np.isfinite(gp.posterior(np.array([[0.1], [0.5]]))).all()


def test_noiseless_data_have_variances_of_rounding_error(kernel):
    X = np.linspace(0.0, 1.0, 40)[:, None]
    gp = GP.of(Observations.of(X, np.sin(9.0 * X[:, 0])), flat(kernel), np.log([0.02, 1.0, 1e-18]))
    assert gp.jitter == 0.0
    for var in (gp.posterior(X)[1], gp.posterior_gradient(X)[1]):
        assert var.min() >= 0.0
        assert var.max() < 1e-12


def test_variances_near_data_keep_digits_at_little_noise():
    """One observation seen from ever nearer: 1 - k^2 / (1 + noise), written without its cancellation."""
    noise = 1e-9
    gp = GP.of(Observations.of(np.array([[0.5]]), np.ones(1)), flat("rbf"), np.log([0.3, 1.0, noise]))
    for gap in (1e-2, 1e-4, 1e-6, 0.0):
        x = 0.5 + gap
        exact = (noise - np.expm1(-(((x - 0.5) / 0.3) ** 2))) / (1.0 + noise)
        assert gp.posterior(np.array([[x]]))[1][0] == pytest.approx(exact, abs=1e-14)
