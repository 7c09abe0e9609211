"""Structured kernels: warped axes, sums over axes, trends. Values beside brute force, gradients beside differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from raybo.surrogate import (
    GP,
    Observations,
    Structure,
    StructuredGP,
    StructuredLikelihood,
    fit_structured,
    standard_model,
)
from raybo.surrogate.warping import warped, warped_in_logs, warped_slope

STEP = 6e-6
CATEGORICAL = (False, False, True, False)
ALL = [
    dict(zip(("is_warped", "is_sum", "has_trend", "has_mean"), on, strict=True))
    for on in itertools.product([False, True], repeat=4)
]
NONE = np.empty((0, 4))


def data(n=14, seed=0, added=False):
    """Points with a category, one of them twice, and values; some of these predicted ones, and twice."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4))
    X[:, 2] = rng.integers(3, size=n) / 3
    X[5] = X[3]
    uncertain = np.where(np.arange(n) % 3 == 0, rng.random(n), 0.0)
    if added:
        X[6], uncertain[6] = X[9], uncertain[9]
    return Observations.of(X, rng.standard_normal(n), CATEGORICAL, uncertain if added else None)


def thetas(structure, seed=1):
    return structure.start + 0.3 * np.random.default_rng(seed).standard_normal(len(structure.start))


def matern(q):
    s = math.sqrt(5.0 * q)
    return (1.0 + s + 5.0 * q / 3.0) * math.exp(-s)


def brute(structure, theta, x, z):
    """k(x, z) as the module's docstring writes it."""
    d, theta = 4, list(np.exp(theta))
    lengths, rest = theta[:d], theta[d:]
    s = rest.pop(0)
    t = rest.pop(0) if structure.is_sum else 0.0
    u = rest.pop(0) if structure.has_trend else 0.0
    x, z = list(x), list(z)
    if structure.is_warped:
        for place, j in enumerate((0, 1, 3)):
            a, b = rest[place], rest[3 + place]
            x[j], z[j] = 1 - (1 - x[j] ** a) ** b, 1 - (1 - z[j] ** a) ** b
    q = [(float(x[j] != z[j]) if j == 2 else (x[j] - z[j]) ** 2) / lengths[j] ** 2 for j in range(d)]
    inner = sum((2 * x[j] - 1) * (2 * z[j] - 1) for j in (0, 1, 3)) / math.sqrt(3)
    return s * matern(sum(q)) + t / d * sum(map(matern, q)) + u * (inner + inner**2)


@pytest.mark.parametrize("parts", ALL)
def test_the_kernel_is_the_formula(parts):
    structure = Structure.of(CATEGORICAL, **parts)
    theta, X = thetas(structure), data().X
    kernel = structure.kernel(theta)
    W = kernel.inner(X)
    expected = [[brute(structure, theta, x, z) for z in X] for x in X]
    np.testing.assert_allclose(kernel.matrix(W, W), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(kernel.matrix_and_slopes(W, W)[0], expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(kernel.diagonal(W), np.diagonal(expected), rtol=1e-9)


@pytest.mark.parametrize("parts", ALL)
def test_posterior_and_likelihood_are_those_of_the_single_values(parts):
    """Brute force on all values, repeats one by one, with the generalised least squares mean where there is one."""
    structure = Structure.of(CATEGORICAL, **parts)
    theta, rng = thetas(structure), np.random.default_rng(2)
    X = data().X
    X, y = np.vstack([X, X[:2]]), rng.standard_normal(len(X) + 2)
    K = np.array([[brute(structure, theta, x, z) for z in X] for x in X])
    A = K + np.exp(theta[-1]) * np.eye(len(X))
    one = np.ones(len(X))
    mean = one @ np.linalg.solve(A, y) / (one @ np.linalg.solve(A, one)) if structure.has_mean else 0.0
    observations = Observations.of(X, y, CATEGORICAL)
    gp = StructuredGP.of(observations, structure, theta, NONE)
    new = data(seed=3).X[:5]
    k = np.array([[brute(structure, theta, x, z) for z in X] for x in new])
    own = np.array([brute(structure, theta, x, x) for x in new])
    found_mean, found_var = gp.posterior(new)
    np.testing.assert_allclose(found_mean, mean + k @ np.linalg.solve(A, y - mean), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found_var, own - np.einsum("mn,nm->m", k, np.linalg.solve(A, k.T)), rtol=1e-5, atol=1e-6)
    joint_mean, joint = gp.joint(new)
    np.testing.assert_allclose(joint_mean, found_mean)
    np.testing.assert_allclose(np.diagonal(joint), found_var, rtol=1e-6, atol=1e-8)
    r = y - mean
    expected = -0.5 * (r @ np.linalg.solve(A, r) + np.linalg.slogdet(A)[1] + len(y) * math.log(2 * math.pi))
    likelihood = StructuredLikelihood(observations, structure)
    assert likelihood.log_marginal(theta)[0] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("parts", ALL)
def test_the_likelihoods_gradient(parts, added):
    structure, observations = Structure.of(CATEGORICAL, **parts), data(added=added)
    assert (observations.added is not None) == added
    assert observations.counts.max() == 2.0
    theta, likelihood = thetas(structure), StructuredLikelihood(observations, structure)
    _, gradient = likelihood.log_posterior(theta)
    steps = STEP * np.eye(len(theta))
    differences = [
        (likelihood.log_posterior(theta + step)[0] - likelihood.log_posterior(theta - step)[0]) / (2 * STEP)
        for step in steps
    ]
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("parts", ALL)
def test_the_posteriors_gradient(parts):
    structure = Structure.of(CATEGORICAL, **parts)
    gp = StructuredGP.of(data(), structure, thetas(structure), NONE)
    X = data(seed=4).X[:5]
    mean, var, dmean, dvar = gp.posterior_gradient(X)
    np.testing.assert_allclose((mean, var), gp.posterior(X), rtol=1e-9, atol=1e-12)
    assert not dmean[:, 2].any()
    assert not dvar[:, 2].any()
    for j in (0, 1, 3):
        step = STEP * np.eye(4)[j]
        above, below = gp.posterior(X + step), gp.posterior(X - step)
        np.testing.assert_allclose(dmean[:, j], (above[0] - below[0]) / (2 * STEP), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(dvar[:, j], (above[1] - below[1]) / (2 * STEP), rtol=1e-5, atol=1e-5)


def test_without_parts_it_is_the_standard_model():
    observations, structure = data(), Structure.of(CATEGORICAL)
    theta, X = thetas(structure), data(seed=5).X
    known = GP.of(observations, standard_model(), theta)
    np.testing.assert_allclose(StructuredGP.of(observations, structure, theta, NONE).posterior(X), known.posterior(X))
    believing = StructuredGP.of(observations, structure, theta, X[:3])
    np.testing.assert_allclose(believing.posterior(X), known.believing(X[:3]).posterior(X), rtol=1e-7, atol=1e-9)


def test_parts_that_make_no_difference_are_left_out():
    assert Structure.of((True, True), is_warped=True, has_trend=True).parts == Structure.of((True, True)).parts
    assert not Structure.of((False,), is_sum=True).is_sum


def test_warping_bends_as_it_says():
    X = np.linspace(0.0, 1.0, 11)[:, None]
    one, a, b = np.ones(1), np.array([0.4]), np.array([3.0])
    np.testing.assert_allclose(warped(X, one, one), X, atol=1e-9)
    bent = warped(X, a, b)
    assert (np.diff(bent[:, 0]) > 0).all()
    assert bent[1] > 0.5  # the first tenth has more than half of the room
    inner = X[1:-1]
    slope = (warped(inner + STEP, a, b) - warped(inner - STEP, a, b)) / (2 * STEP)
    np.testing.assert_allclose(warped_slope(inner, a, b), slope, rtol=1e-7)
    up, down = math.exp(STEP), math.exp(-STEP)
    in_a, in_b = warped_in_logs(inner, a, b)
    np.testing.assert_allclose(in_a, (warped(inner, a * up, b) - warped(inner, a * down, b)) / (2 * STEP), rtol=1e-6)
    np.testing.assert_allclose(in_b, (warped(inner, a, b * up) - warped(inner, a, b * down)) / (2 * STEP), rtol=1e-6)
    assert np.isfinite(warped_slope(np.array([[0.0], [1.0]]), a, b)).all()


def test_the_fit_finds_a_sum_and_a_logarithm():
    """A sum's share of the variance grows where f is one; an axis that needs a logarithm is bent towards its end."""
    rng = np.random.default_rng(0)
    X = rng.random((40, 3))
    structure = Structure.of((False,) * 3, is_sum=True)
    theta, _ = fit_structured(Observations.of(X, np.sin(9 * X).sum(axis=1)), structure)
    assert theta[4] > theta[3] + 1.0
    structure = Structure.of((False,), is_warped=True)
    x = rng.random((40, 1)) ** 3
    theta, height = fit_structured(Observations.of(x, np.sin(2 * np.log(x[:, 0] + 1e-4))), structure)
    assert theta[2] < -0.3
    assert height > fit_structured(Observations.of(x, np.sin(2 * np.log(x[:, 0] + 1e-4))), Structure.of((False,)))[1]


def test_climbs_end_no_lower_than_they_start():
    structure = Structure.of(CATEGORICAL, is_warped=True, is_sum=True, has_trend=True, has_mean=True)
    likelihood, start = StructuredLikelihood(data(), structure), thetas(structure)
    theta, height = fit_structured(data(), structure, [start])
    assert height == pytest.approx(likelihood.log_posterior(theta)[0])
    assert height >= likelihood.log_posterior(start)[0]
