"""The gradient's posterior against published values and against differences of f."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.surrogate import GP, GradientAt, Observations
from tests.surrogate.conftest import differences, gradient_posterior, model, points

# Fan, Wang, Ng, Hu (2024) and its references: four points of the square, values computed independently
X = np.array([[0.1, 0.2], [0.4, 0.7], [0.8, 0.3], [0.6, 0.9]])
Y = np.array([0.5, -0.3, 0.8, 0.1])
X0 = np.array([0.45, 0.5])
PUBLISHED = {
    "rbf": {
        "value": (0.038922698716, 0.183635461451),
        "mean": (1.4259761757, -1.1841069004),
        "cov": (0.4103991187, -0.1838703550, 0.4268097278),
        "trace": 0.837208846422,
        "with value": (0.0538642185, -0.0584853570),
        "after one": 0.639747789236,
        "after two": 0.535514961065,
    },
    "matern52": {
        "value": (-0.003009763263, 0.294210424581),
        "mean": (1.4753027758, -1.2504843776),
        "cov": (2.7848647012, -0.1985763269, 1.4864209087),
        "trace": 4.271285609875,
        "with value": (0.2544093637, -0.1292956463),
        "after one": 3.099578411122,
        "after two": 1.880238908691,
    },
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_gradients_posterior_has_published_values(name):
    gp, told = GP.of(Observations.of(X, Y), model(name), np.log([0.5, 0.8, 1.3, 0.01])), PUBLISHED[name]
    z = np.array([[0.5, 0.6]])
    mean, var = gp.posterior(X0[None])
    np.testing.assert_allclose((mean[0], np.sqrt(var[0])), told["value"], rtol=1e-9)
    at = GradientAt.of(gp, X0)
    np.testing.assert_allclose(at.mean, told["mean"], rtol=1e-9)
    np.testing.assert_allclose(at.cov[np.triu_indices(2)], told["cov"], rtol=1e-8)
    assert at.trace == pytest.approx(told["trace"], rel=1e-10)
    c, var = at.covariances(z)
    np.testing.assert_allclose(c[0], told["with value"], rtol=1e-8)
    assert at.trace - c[0] @ c[0] / (var[0] + 0.01) == pytest.approx(told["after one"], rel=1e-9)
    one = gp.believing(z)
    assert GradientAt.of(one, X0).trace == pytest.approx(told["after one"], rel=1e-9)
    two = one.believing(np.array([[0.3, 0.4]]))
    assert GradientAt.of(two, X0).trace == pytest.approx(told["after two"], rel=1e-9)


@pytest.mark.parametrize(("d", "m", "h", "sd"), [(3, 2, 0.5, 0.3), (2, 1, 0.493196, 0.1), (4, 16, 0.312529, 0.1)])
def test_repeated_central_differences_leave_the_trace_of_theory(d, m, h, sd):
    """RBF with unit scales: d (1 - 2 h^2 exp(-h^2) / (1 + sd^2 / m - exp(-2 h^2))), exactly."""
    x = np.full(d, 0.5)
    design = np.repeat(np.concatenate([x + h * np.eye(d), x - h * np.eye(d)]), m, axis=0)
    observations = Observations.of(design, np.zeros(len(design)))
    assert len(observations.X) == 2 * d
    gp = GP.of(observations, model("rbf"), np.log([1.0] * d + [1.0, sd**2]))
    expected = d * (1.0 - 2.0 * h**2 * np.exp(-(h**2)) / (1.0 + sd**2 / m - np.exp(-2.0 * h**2)))
    assert GradientAt.of(gp, x).trace == pytest.approx(expected, rel=1e-10)
    if (d, m) == (3, 2):
        assert expected == pytest.approx(0.335728938672, rel=1e-10)


def test_gradient_posterior_is_the_joint_posteriors_derivative(gp):
    """Differences of f at points h apart have, divided by h, the gradient's mean and covariance."""
    x, h = np.array([0.4, 0.5, 0.6]), 1e-3
    shifted = np.array([x + h * np.eye(3)[j] * s for j in (0, 2) for s in (1, -1)])
    mean, cov = gp.joint(shifted)
    D = np.array([[1, -1, 0, 0], [0, 0, 1, -1]]) / (2 * h)
    got_mean, got_cov = gradient_posterior(gp, x)
    np.testing.assert_allclose(got_mean[[0, 2]], D @ mean, rtol=1e-4, atol=1e-5)
    # a Matern-3/2 draw has no second derivative: its differences approach the limit in h, not in h squared
    tolerance = 2e-2 if gp.model.kernel == "matern32" else 1e-4
    np.testing.assert_allclose(got_cov[np.ix_([0, 2], [0, 2])], D @ cov @ D.T, rtol=tolerance, atol=tolerance)
    assert not got_mean[1]
    assert not got_cov[1].any()
    assert np.linalg.eigvalsh(got_cov).min() > -1e-10


def test_mean_gradient_is_the_gradient_of_the_mean(gp):
    Z = points(np.random.default_rng(7), 4)
    means = [GradientAt.of(gp, z).mean for z in Z]
    np.testing.assert_allclose(means, gp.posterior_gradient(Z)[2], rtol=1e-9, atol=1e-12)


def test_data_never_add_to_the_trace(gp):
    rng = np.random.default_rng(10)
    x, traces, grown = points(rng, 1), [], gp
    for _ in range(15):
        traces.append(GradientAt.of(grown, x[0]).trace)
        grown = grown.believing(points(rng, 1))
    assert (np.diff(traces) <= 1e-10).all()


def test_many_axes_and_few_points_work():
    rng = np.random.default_rng(8)
    observations = Observations.of(rng.random((5, 100)), rng.standard_normal(5))
    gp = GP.of(observations, model("matern52"), np.log([1.0] * 100 + [1.0, 1e-3]))
    mean, cov = gradient_posterior(gp, rng.random(100))
    assert mean.shape == (100,)
    assert np.linalg.eigvalsh(cov).min() > -1e-9


def test_without_observations_it_is_the_priors(kernel):
    prior = GP.of(Observations.of(np.empty((0, 2)), np.empty(0)), model(kernel), np.log([0.5, 0.25, 2.0, 0.1]))
    mean, cov = gradient_posterior(prior, np.full(2, 0.5))
    factor = {"rbf": 1.0, "matern52": 5.0 / 3.0, "matern32": 3.0}[kernel]
    assert not mean.any()
    np.testing.assert_allclose(cov, 2.0 * factor * np.diag([4.0, 16.0]))


def test_gradient_covariances_are_derivatives_of_the_values_covariance(gp):
    """Differences in x of the joint posterior's covariance between f(x) and f(z)."""
    rng = np.random.default_rng(8)
    x, Z = points(rng, 1)[0], points(rng, 5)
    c, var = GradientAt.of(gp, x).covariances(Z)
    for j in (0, 2):
        numeric = differences(lambda A: gp.joint(np.vstack([A, Z]))[1][:1, 1:], x[None], j)[0]
        np.testing.assert_allclose(c[:, j], numeric, rtol=1e-6, atol=1e-7)
    assert not c[:, 1].any()
    np.testing.assert_allclose(var, gp.posterior(Z)[1], rtol=1e-10)


def test_at_one_point_covariance_slopes_are_the_gradients(gp):
    x = points(np.random.default_rng(9), 1)
    at, slopes = GradientAt.of(gp, x[0]), np.zeros((3, 3))
    for i in range(3):
        unit = np.eye(3)[[i]]
        slopes[i] = at.value_and_gradient(x, lambda c, var, u=unit: (c @ u[0], u, np.zeros(1)))[1][0]
    np.testing.assert_allclose(slopes, at.cov, rtol=1e-8, atol=1e-9)


def test_functions_of_covariances_have_gradients_of_differences(gp):
    rng = np.random.default_rng(12)
    x, Z, u, w = points(rng, 1)[0], points(rng, 4), rng.standard_normal((4, 3)), rng.standard_normal(4)
    at = GradientAt.of(gp, x)

    def function(c, var):
        return (np.sin(c) * u).sum(axis=1) + w * var**2, np.cos(c) * u, 2.0 * w * var

    value, gradient = at.value_and_gradient(Z, function)
    np.testing.assert_allclose(value, function(*at.covariances(Z))[0], rtol=1e-12)
    for j in (0, 2):
        numeric = differences(lambda A: function(*at.covariances(A))[0], Z, j)
        np.testing.assert_allclose(gradient[:, j], numeric, rtol=1e-6, atol=1e-6)
    assert not gradient[:, 1].any()
