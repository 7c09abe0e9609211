"""Small data sets, models and slow but plain forms that the surrogate's tests share."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.surrogate import (
    GP,
    KERNELS,
    Flat,
    Gamma,
    GradientAt,
    Hyperparameter,
    LogNormal,
    Model,
    Observations,
    random_grid_model,
)

STEP = 6e-6  # of central differences: the errors of rounding and of the third derivative are equal here
PAPER = random_grid_model()
CATEGORIES = np.array([1 / 6, 0.5, 5 / 6])


def model(kernel, **changes) -> Model:
    parts = {
        "lengthscale": Hyperparameter(LogNormal(-1.0, 1.5), 5e-3, 20.0, 0.4),
        "outputscale": Hyperparameter(Gamma(2.0, 1.5), 1e-2, 1e2, 1.0),
        "noise_variance": Hyperparameter(LogNormal(-6.0, 1.5), 1e-6, 1.0, 1e-3),
    }
    return Model(kernel=kernel, **{**parts, **changes})


def flat(kernel, **changes) -> Model:
    """With priors that add nothing, so that the posterior of theta is its likelihood."""
    parts = {
        "lengthscale": Hyperparameter(Flat(), 5e-3, 20.0, 0.4),
        "outputscale": Hyperparameter(Flat(), 1e-2, 1e2, 1.0),
        "noise_variance": Hyperparameter(Flat(), 1e-6, 1.0, 1e-3),
    }
    return Model(kernel=kernel, **{**parts, **changes})


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


def naive_matrix(gp, A, B):
    """The kernel of a GP between the rows of A and B, by loops."""
    flags = gp.observations.categorical
    rows = [[naive_kernel(gp.model.kernel, a, b, gp.lengthscale, flags) for b in B] for a in A]
    return gp.outputscale * np.array(rows).reshape(len(A), len(B))


def naive_posterior(gp, X):
    A = naive_matrix(gp, gp.X, gp.X) + np.diag(gp.observations.noise(gp.noise_variance))
    K = naive_matrix(gp, X, gp.X)
    return K @ np.linalg.solve(A, gp.y), naive_matrix(gp, X, X) - K @ np.linalg.solve(A, K.T)


def naive_log_marginal(gp):
    """The log marginal likelihood of a GP's observations, one by one, by a dense solve."""
    A = naive_matrix(gp, gp.X, gp.X) + np.diag(gp.observations.noise(gp.noise_variance))
    r = gp.y - gp.prior_mean
    return -0.5 * (r @ np.linalg.solve(A, r) + np.linalg.slogdet(A)[1] + len(r) * np.log(2 * np.pi))


def told(gp, X, y):
    """The GP conditioned on further observations, from scratch."""
    return GP.of(gp.observations.with_more(X, y), gp.model, gp.theta)


def gradient_posterior(gp, x):
    """Mean (d,) and covariance (d, d) of the gradient of f at x."""
    at = GradientAt.of(gp, x)
    return at.mean, at.cov


def points(rng, m):
    """Points with a category in the middle."""
    X = rng.random((m, 3))
    X[:, 1] = rng.choice(CATEGORIES, m)
    return X


def differences(function, X, axis):
    """Central differences of a function of (m, d) points along an axis."""
    up, down = X.copy(), X.copy()
    up[:, axis] += STEP
    down[:, axis] -= STEP
    return (function(up) - function(down)) / (2 * STEP)


@pytest.fixture(params=KERNELS)
def kernel(request):
    return request.param


@pytest.fixture
def mixed():
    """Nine observations on two numeric axes and a categorical one between them."""
    rng = np.random.default_rng(3)
    X = rng.random((9, 3))
    X[:, 1] = rng.choice(CATEGORIES, 9)
    return Observations.of(X, rng.standard_normal(9), (False, True, False))


@pytest.fixture
def gp(kernel, mixed):
    theta = np.log([0.4, 0.9, 0.7, 1.3, 0.01])
    return GP.of(mixed, model(kernel), theta)
