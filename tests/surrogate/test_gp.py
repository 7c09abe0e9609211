"""The posterior against a naive form, the published oracle, and its own shortcuts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybo.errors import NumericalError
from raybo.surrogate import GP, Hyperparameter, LogNormal, Model, Observations, cholesky
from tests.surrogate.conftest import PAPER, model

STEP = 6e-6  # of central differences: the error of f's own rounding and of the third derivative meet here


def naive_kernel(name, a, b, lengthscale, categorical):
    q = 0.0
    for j, (u, v) in enumerate(zip(a, b, strict=True)):
        q += (float(u != v) if categorical[j] else (u - v) ** 2) / lengthscale[j] ** 2
    r = np.sqrt(q)
    if name == "rbf":
        return np.exp(-q / 2)
    if name == "matern32":
        return (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)
    return (1 + np.sqrt(5) * r + 5 / 3 * q) * np.exp(-np.sqrt(5) * r)


def naive_posterior(gp, X):
    lengthscale, outputscale, noise = gp.hyperparameters
    flags = gp.observations.categorical

    def k(A, B):
        return outputscale * np.array([[naive_kernel(gp.model.kernel, a, b, lengthscale, flags) for b in B] for a in A])

    A = k(gp.X, gp.X) + np.diag(noise / gp.observations.counts)
    K = k(X, gp.X)
    return K @ np.linalg.solve(A, gp.y), k(X, X) - K @ np.linalg.solve(A, K.T)


def points(rng, m):
    X = rng.random((m, 3))
    X[:, 1] = rng.choice([1 / 6, 0.5, 5 / 6], m)
    return X


def test_the_posterior_is_that_of_the_naive_loop(gp):
    X = points(np.random.default_rng(0), 6)
    mean, cov = naive_posterior(gp, X)
    got_mean, got_var = gp.posterior(X)
    joint_mean, joint_cov = gp.joint(X)
    np.testing.assert_allclose(got_mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(got_var, np.diag(cov), rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(joint_mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(joint_cov, cov, rtol=1e-8, atol=1e-10)


def test_published_oracle_of_mean_deviation_likelihood_and_information_gain():
    """Kim, Liu, Chen's model on three points of the line, at length-scale 1."""
    X, y = np.array([[0.0], [1.0], [2.5]]), np.array([0.2, -0.4, 0.7])
    gp = GP.of(Observations.of(X, y), PAPER, np.log([1.0, 1.0, 1e-4]))
    mean, var = gp.posterior(np.array([[0.5], [1.8], [4.0]]))
    np.testing.assert_allclose(mean, [-0.141233680989, 0.151147390423, 0.215536523934], rtol=1e-10)
    np.testing.assert_allclose(np.sqrt(var), [0.409622111470, 0.607535375279, 0.962669084359], rtol=1e-10)
    np.testing.assert_allclose(gp.information_gain, 13.6429825521, rtol=1e-10)


def test_gradients_in_x_are_those_of_central_differences_and_vanish_along_categories(gp):
    X = points(np.random.default_rng(1), 5)
    mean, var, dmean, dvar = gp.posterior_gradient(X)
    np.testing.assert_allclose((mean, var), gp.posterior(X), rtol=1e-9)
    for j in (0, 2):
        up, down = X.copy(), X.copy()
        up[:, j] += STEP
        down[:, j] -= STEP
        for analytic, i in ((dmean, 0), (dvar, 1)):
            numeric = (gp.posterior(up)[i] - gp.posterior(down)[i]) / (2 * STEP)
            np.testing.assert_allclose(analytic[:, j], numeric, rtol=1e-6, atol=1e-7)
    assert not dmean[:, 1].any()
    assert not dvar[:, 1].any()


def test_chunks_do_not_change_the_posterior(gp):
    X = points(np.random.default_rng(2), 9_000)
    mean, var = gp.posterior(X)
    np.testing.assert_allclose(gp.posterior(X[4_090:4_100])[0], mean[4_090:4_100], rtol=1e-12)
    np.testing.assert_allclose(gp.posterior(X[4_090:4_100])[1], var[4_090:4_100], rtol=1e-9)


def test_appending_points_equals_conditioning_on_all_at_once(gp):
    rng = np.random.default_rng(4)
    X, y, Z = points(rng, 4), rng.standard_normal(4), points(rng, 20)
    grown = gp.append(X, y)
    whole = GP.of(grown.observations, gp.model, gp.theta)
    np.testing.assert_allclose(grown.posterior(Z), whole.posterior(Z), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(grown.L @ grown.L.T, whole.L @ whole.L.T, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("kept", "new"), [(9, 3), (7, 3), (3, 5), (9, 0), (6, 0)])
def test_a_factor_used_again_gives_the_same_posterior(gp, kept, new):
    """Of nine points the first `kept` stay, and `new` others follow; three of eight are too few to be of use."""
    rng = np.random.default_rng(8)
    X, y = np.vstack([gp.X[:kept], points(rng, new)]), rng.standard_normal(kept + new)
    observations, Z = Observations.of(X, y, gp.observations.categorical), points(rng, 20)
    again = GP.of(observations, gp.model, gp.theta, earlier=gp)
    fresh = GP.of(observations, gp.model, gp.theta)
    np.testing.assert_allclose(again.posterior(Z), fresh.posterior(Z), rtol=1e-8, atol=1e-10)
    other = GP.of(observations, gp.model, gp.theta + 0.1, earlier=gp)
    np.testing.assert_allclose(other.posterior(Z), GP.of(observations, gp.model, gp.theta + 0.1).posterior(Z))


def test_appending_a_repeated_point_stays_accurate(gp):
    again = gp
    for _ in range(30):
        again = again.append(gp.X[:1], gp.y[:1])
    Z = points(np.random.default_rng(5), 20)
    whole = GP.of(again.observations, gp.model, gp.theta)
    np.testing.assert_allclose(again.posterior(Z), whole.posterior(Z), rtol=1e-6, atol=1e-8)


def test_believing_leaves_the_mean_and_shrinks_the_variance(gp):
    rng = np.random.default_rng(6)
    pending, Z = points(rng, 3), points(rng, 50)
    believed = gp.believing(pending)
    np.testing.assert_allclose(believed.posterior(Z)[0], gp.posterior(Z)[0], atol=1e-8)
    assert (believed.posterior(Z)[1] <= gp.posterior(Z)[1] + 1e-10).all()
    assert (believed.posterior(pending)[1] < 0.02).all()
    assert gp.believing(np.empty((0, 3))) is gp


def test_counted_observations_equal_repeated_ones(kernel):
    rng = np.random.default_rng(7)
    X = np.repeat(rng.random((4, 2)), [1, 3, 2, 1], axis=0)[rng.permutation(7)]
    y = rng.standard_normal(7)
    counted = Observations.of(X, y)
    single = Observations(X, y, np.ones(7), 0.0, (False, False))
    assert counted.X.shape == (4, 2)
    assert counted.counts.sum() == 7
    theta, Z = np.log([0.3, 0.5, 1.1, 0.05]), rng.random((10, 2))
    a, b = GP.of(counted, model(kernel), theta), GP.of(single, model(kernel), theta)
    np.testing.assert_allclose(a.posterior(Z), b.posterior(Z), rtol=1e-9, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 30), d=st.integers(1, 4), scale=st.floats(0.005, 20.0))
def test_the_variance_lies_between_zero_and_the_prior(seed, n, d, scale):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)).round(1)  # many duplicates
    gp = GP.of(Observations.of(X, rng.standard_normal(n)), model("matern52"), np.log([scale] * d + [1.0, 1e-6]))
    var = gp.posterior(np.vstack([X, rng.random((20, d))]))[1]
    assert (var >= 0.0).all()
    assert (var <= 1.0 + 1e-9).all()


def test_points_one_ulp_apart_at_huge_lengthscales_take_jitter_and_not_more():
    x = np.full((40, 1), 0.5)
    for i in range(1, 40):
        x[i] = np.nextafter(x[i - 1], 1.0)
    smooth = Model(kernel="rbf", noise_variance=Hyperparameter(LogNormal(-6.0, 1.5), 1e-12, 1.0, 1e-3))
    gp = GP.of(Observations.of(x, np.zeros(40)), smooth, np.log([20.0, 1.0, 1e-12]))
    assert np.isfinite(gp.posterior(np.array([[0.1], [0.5]]))).all()
    A = np.ones((40, 40))
    assert 0.0 < cholesky(A)[1] <= 1e-8


def test_a_matrix_that_nothing_mends_is_refused():
    with pytest.raises(NumericalError, match="not positive definite"):
        cholesky(-np.eye(3))
