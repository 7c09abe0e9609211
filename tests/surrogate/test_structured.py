"""Structured kernels: warped axes, sums over axes, trends. Values beside brute force, gradients beside differences."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from raybo.surrogate import GP, Hyperparameter, Likelihood, Observations, most_likely, standard_model, structured_model
from raybo.surrogate.warping import warped, warped_in_logs, warped_slope

STEP = 6e-6
CATEGORICAL = (False, False, True, False)
ALL = [
    {"is_warped": is_warped, "is_sum": is_sum, "has_trend": has_trend, "mean": mean}
    for is_warped, is_sum, has_trend, mean in itertools.product(*[[False, True]] * 3, ["zero", "constant"])
]


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


def thetas(model, seed=1):
    return model.start(4) + 0.3 * np.random.default_rng(seed).standard_normal(model.size(4))


def fitted(observations, model):
    return most_likely(Likelihood(observations, model), [model.start(observations.X.shape[1])])


def matern(q):
    s = math.sqrt(5.0 * q)
    return (1.0 + s + 5.0 * q / 3.0) * math.exp(-s)


def brute(model, theta, x, z):
    """k(x, z) as the module's docstring writes it."""
    structure = model.structure
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
    model = structured_model(CATEGORICAL, **parts)
    theta, X = thetas(model), data().X
    kernel = model.kernel_at(theta, CATEGORICAL)
    W = kernel.inner(X)
    expected = [[brute(model, theta, x, z) for z in X] for x in X]
    np.testing.assert_allclose(kernel.matrix(W, W), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(kernel.matrix_and_gradients(W, W)[0], expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(kernel.diagonal(W), np.diagonal(expected), rtol=1e-9)


@pytest.mark.parametrize("parts", ALL)
def test_merged_and_single_values_have_one_posterior(parts):
    """Brute force on all values, repeats one by one, with the generalised least squares mean where there is one."""
    model = structured_model(CATEGORICAL, **parts)
    theta, rng = thetas(model), np.random.default_rng(2)
    X = data().X
    X, y = np.vstack([X, X[:2]]), rng.standard_normal(len(X) + 2)
    K = np.array([[brute(model, theta, x, z) for z in X] for x in X])
    A = K + np.exp(theta[-1]) * np.eye(len(X))
    one = np.ones(len(X))
    mean = one @ np.linalg.solve(A, y) / (one @ np.linalg.solve(A, one)) if model.mean == "constant" else 0.0
    observations = Observations.of(X, y, CATEGORICAL)
    gp = GP.of(observations, model, theta)
    new = data(seed=3).X[:5]
    k = np.array([[brute(model, theta, x, z) for z in X] for x in new])
    own = np.array([brute(model, theta, x, x) for x in new])
    found_mean, found_var = gp.posterior(new)
    np.testing.assert_allclose(found_mean, mean + k @ np.linalg.solve(A, y - mean), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found_var, own - np.einsum("mn,nm->m", k, np.linalg.solve(A, k.T)), rtol=1e-5, atol=1e-6)
    joint_mean, joint = gp.joint(new)
    np.testing.assert_allclose(joint_mean, found_mean)
    np.testing.assert_allclose(np.diagonal(joint), found_var, rtol=1e-6, atol=1e-8)
    r = y - mean
    expected = -0.5 * (r @ np.linalg.solve(A, r) + np.linalg.slogdet(A)[1] + len(y) * math.log(2 * math.pi))
    likelihood = Likelihood(observations, model)
    assert likelihood.log_marginal(theta)[0] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("parts", ALL)
def test_the_likelihoods_gradient(parts, added):
    model, observations = structured_model(CATEGORICAL, **parts), data(added=added)
    assert (observations.added is not None) == added
    assert observations.counts.max() == 2.0
    theta, likelihood = thetas(model), Likelihood(observations, model)
    _, gradient = likelihood.log_posterior(theta)
    steps = STEP * np.eye(len(theta))
    differences = [
        (likelihood.log_posterior(theta + step)[0] - likelihood.log_posterior(theta - step)[0]) / (2 * STEP)
        for step in steps
    ]
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("parts", ALL)
def test_the_posteriors_gradient(parts):
    model = structured_model(CATEGORICAL, **parts)
    gp = GP.of(data(), model, thetas(model))
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
    observations, model = data(), structured_model(CATEGORICAL)
    theta, X = thetas(model), data(seed=5).X
    gp, known = GP.of(observations, model, theta), GP.of(observations, standard_model(), theta)
    np.testing.assert_allclose(gp.posterior(X), known.posterior(X))
    believing = gp.believing(X[:3]).posterior(X)
    np.testing.assert_allclose(believing, known.believing(X[:3]).posterior(X), rtol=1e-7, atol=1e-9)
    likelihood, plain = Likelihood(observations, model), Likelihood(observations, standard_model())
    assert likelihood.log_marginal(theta)[0] == pytest.approx(plain.log_marginal(theta)[0], rel=1e-12)
    np.testing.assert_allclose(likelihood.log_marginal(theta)[1], plain.log_marginal(theta)[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("parts", ALL)
def test_pending_points_leave_the_mean(parts):
    """They are as good as observed at their mean, once each, whatever was predicted before."""
    model = structured_model(CATEGORICAL, **parts)
    gp, X = GP.of(data(added=True), model, thetas(model)), data(seed=5).X
    beside = gp.believing(X[:3])
    np.testing.assert_allclose(beside.posterior(X)[0], gp.posterior(X)[0], rtol=1e-7, atol=1e-7)
    assert (beside.posterior(X[:3])[1] < 1e-2).all()
    noise = beside.observations.noise(1.0)
    np.testing.assert_array_equal(noise, [*gp.observations.noise(1.0), 1.0, 1.0, 1.0])


def test_the_value_alone_is_that_of_the_posterior():
    for parts in ALL:
        model = structured_model(CATEGORICAL, **parts)
        likelihood = Likelihood(data(added=True), model)
        assert likelihood.log_density(thetas(model)) == likelihood.log_posterior(thetas(model))[0]


def test_parts_that_make_no_difference_are_left_out():
    choices = structured_model((True, True), is_warped=True, has_trend=True)
    assert choices == structured_model((True, True))
    assert structured_model((False,), is_sum=True) == structured_model((False,))


def test_fixed_hyperparameters_of_a_structured_model_stay():
    free = structured_model(CATEGORICAL, is_sum=True, has_trend=True)
    fixed = replace(free, outputscale=Hyperparameter(fixed=2.0))
    theta, _ = most_likely(Likelihood(data(), fixed), [fixed.start(4)])
    assert theta[4] == np.log(2.0)
    value, gradient = fixed.log_prior(theta)
    assert gradient[4] == 0.0
    theta[4] = 0.0
    assert fixed.log_prior(theta)[0] == value


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
    model = structured_model((False,) * 3, is_sum=True)
    theta, _ = fitted(Observations.of(X, np.sin(9 * X).sum(axis=1)), model)
    assert theta[4] > theta[3] + 1.0
    x = rng.random((40, 1)) ** 3
    logarithm = Observations.of(x, np.sin(2 * np.log(x[:, 0] + 1e-4)))
    theta, height = fitted(logarithm, structured_model((False,), is_warped=True))
    assert theta[2] < -0.3
    assert height > fitted(logarithm, structured_model((False,)))[1]


def test_climbs_end_no_lower_than_they_start():
    model = structured_model(CATEGORICAL, is_warped=True, is_sum=True, has_trend=True, mean="constant")
    likelihood, start = Likelihood(data(), model), thetas(model)
    theta, height = most_likely(likelihood, [start])
    assert height == pytest.approx(likelihood.log_posterior(theta)[0])
    assert height >= likelihood.log_posterior(start)[0]
