"""The GP of learning curves: its covariance beside brute force, its gradients beside differences, what it believes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raybo.surrogate.curves import (
    ENDS,
    SPAN,
    CurveLikelihood,
    CurvePoints,
    EndsOfCurves,
    fit_curves,
    start_of_curves,
)

STEP = 6e-6


def matern(q):
    s = math.sqrt(5.0 * q)
    return (1.0 + s + 5.0 * q / 3.0) * math.exp(-s)


def brute(theta, x, s, z, t):
    """k((x, s), (z, t)) as the module's docstring writes it, the second axis a category."""
    lengths, (outputscale, _, own, common) = np.exp(theta[:2]), np.exp(theta[2:])
    q = (x[0] - z[0]) ** 2 / lengths[0] ** 2 + (x[1] != z[1]) / lengths[1] ** 2
    e = (1 - s) * (1 - t) * matern(((s - t) / SPAN) ** 2)
    return outputscale * matern(q) * (1 + own * e) + common * e


@pytest.fixture
def points():
    """Of five configurations, one of them twice; at the last step and before."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(5), rng.integers(2, size=5)]).astype(float)
    X[4] = X[0]
    X = np.repeat(X, 3, axis=0)
    y = rng.standard_normal(15)
    y[12:] = y[:3] + 0.02 * rng.standard_normal(3)
    return CurvePoints(X, np.tile([0.2, 0.6, 1.0], 5), y, (False, True))


@pytest.fixture
def theta():
    return start_of_curves(2) + 0.3 * np.random.default_rng(1).standard_normal(6)


def test_the_ends_are_those_of_the_covariance_that_is_written_down(points, theta):
    rows = list(zip(points.X, points.s, strict=True))
    A = np.array([[brute(theta, *a, *b) for b in rows] for a in rows]) + math.exp(theta[3]) * np.eye(15)
    X = np.array([[0.3, 0.0], [0.9, 1.0], points.X[0]])
    K = np.array([[brute(theta, x, 1.0, *b) for b in rows] for x in X])
    mean, var = EndsOfCurves.of(points, theta).posterior(X)
    np.testing.assert_allclose(mean, K @ np.linalg.solve(A, points.y), rtol=1e-8)
    expected = math.exp(theta[2]) - np.einsum("ij,ji->i", K, np.linalg.solve(A, K.T))
    np.testing.assert_allclose(var, expected, rtol=1e-6)
    sign, logdet = np.linalg.slogdet(A)
    likelihood = -0.5 * (points.y @ np.linalg.solve(A, points.y) + logdet + 15 * math.log(2 * math.pi))
    prior = ENDS.log_prior(theta[:4])[0] - 0.5 * (theta[4] + 1.0) ** 2 - 0.5 * (theta[5] / 1.5) ** 2
    assert sign == 1.0
    assert CurveLikelihood(points).log_posterior(theta)[0] == pytest.approx(likelihood + prior, rel=1e-9)


def test_gradients_are_those_of_differences(points, theta):
    likelihood = CurveLikelihood(points)
    steps = STEP * np.eye(6)
    numeric = [
        (likelihood.log_posterior(theta + h)[0] - likelihood.log_posterior(theta - h)[0]) / (2 * STEP) for h in steps
    ]
    np.testing.assert_allclose(likelihood.log_posterior(theta)[1], numeric, rtol=1e-5, atol=1e-6)
    ends, X, h = EndsOfCurves.of(points, theta), np.array([[0.3, 0.0], [0.8, 1.0]]), np.array([STEP, 0.0])
    mean, var, dmean, dvar = ends.posterior_gradient(X)
    np.testing.assert_allclose((mean, var), ends.posterior(X), rtol=1e-9)
    up, down = ends.posterior(X + h), ends.posterior(X - h)
    np.testing.assert_allclose(dmean[:, 0], (up[0] - down[0]) / (2 * STEP), rtol=1e-5)
    np.testing.assert_allclose(dvar[:, 0], (up[1] - down[1]) / (2 * STEP), rtol=1e-5)
    assert not dmean[:, 1].any()
    joint_mean, cov = ends.joint(X)
    np.testing.assert_allclose(joint_mean, mean)
    np.testing.assert_allclose(np.diag(cov), var, rtol=1e-6)


def test_a_point_that_is_believed_is_surer_and_moves_nothing(points, theta):
    there = np.array([[0.5, 1.0]])
    alone, with_it = EndsOfCurves.of(points, theta), EndsOfCurves.of(points, theta, there)
    near = np.vstack([there, [[0.55, 1.0]]])
    np.testing.assert_allclose(with_it.posterior(near)[0], alone.posterior(near)[0], atol=1e-8)
    assert (with_it.posterior(near)[1] < 0.5 * alone.posterior(near)[1]).all()


def test_who_is_behind_early_is_expected_behind_at_the_end():
    """From a few whole curves it has learnt that they rise alike; a product of kernels would not know."""
    rng = np.random.default_rng(2)
    X, s = rng.random((12, 3)), np.array([0.3, 0.5, 0.7, 1.0])
    level = rng.standard_normal(12)
    curves = level[:, None] - 3.0 * (1.0 - s) + 0.05 * rng.standard_normal((12, 4))
    seen = [(i, j) for i in range(12) for j in range(4) if i < 5 or j < 2]  # five to the end, the others half
    points = CurvePoints(
        X[[i for i, _ in seen]], s[[j for _, j in seen]], np.array([curves[i, j] for i, j in seen]), (False,) * 3
    )
    theta = fit_curves(points, [start_of_curves(3)], at_most=300)
    mean, var = EndsOfCurves.of(points, theta).posterior(X[5:])
    assert np.abs(mean - level[5:]).max() < 0.3
    assert np.sqrt(var).max() < 0.4
    assert (
        CurveLikelihood(points).log_posterior(theta)[0] > CurveLikelihood(points).log_posterior(start_of_curves(3))[0]
    )


def test_a_fit_to_fewer_points_keeps_the_best(points):
    fewer = points.thinned(10)
    assert len(fewer.y) == len(fewer.X) == len(fewer.s) == 10
    assert set(np.sort(points.y)[-2:]) <= set(fewer.y)
    assert len(points.thinned(15).y) == 15
