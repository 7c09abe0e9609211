"""Small data sets and models that the surrogate's tests share."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.surrogate import GP, KERNELS, Flat, Gamma, Hyperparameter, LogNormal, Model, Observations

PAPER = Model(
    kernel="matern32",
    lengthscale=Hyperparameter(Flat(), 1e-5, 1e5, 1.0),
    outputscale=Hyperparameter(fixed=1.0),
    noise_variance=Hyperparameter(fixed=1e-4),
    shared_lengthscale=True,
)


def model(kernel, **changes) -> Model:
    parts = {
        "lengthscale": Hyperparameter(LogNormal(-1.0, 1.5), 5e-3, 20.0, 0.4),
        "outputscale": Hyperparameter(Gamma(2.0, 1.5), 1e-2, 1e2, 1.0),
        "noise_variance": Hyperparameter(LogNormal(-6.0, 1.5), 1e-6, 1.0, 1e-3),
    }
    return Model(kernel=kernel, **{**parts, **changes})


@pytest.fixture(params=KERNELS)
def kernel(request):
    return request.param


@pytest.fixture
def mixed():
    """Nine observations on two numeric axes and a categorical one between them."""
    rng = np.random.default_rng(3)
    X = rng.random((9, 3))
    X[:, 1] = rng.choice([1 / 6, 0.5, 5 / 6], 9)
    return Observations.of(X, rng.standard_normal(9), (False, True, False))


@pytest.fixture
def gp(kernel, mixed):
    theta = np.log([0.4, 0.9, 0.7, 1.3, 0.01])
    return GP.of(mixed, model(kernel), theta)
