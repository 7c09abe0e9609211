"""Mixtures of surrogates: their moments are those of the mixture."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.surrogate import GP, Mixture, joint_draws
from tests.surrogate.conftest import differences, model, points


@pytest.fixture
def mixture(kernel, mixed):
    thetas = np.log([[0.4, 0.9, 0.7, 1.3, 0.01], [0.2, 0.5, 0.3, 0.7, 0.1], [1.0, 2.0, 0.5, 2.0, 0.001]])
    return Mixture(tuple(GP.of(mixed, model(kernel), theta) for theta in thetas))


def test_one_member_is_itself(gp):
    X = points(np.random.default_rng(0), 4)
    for ours, its in zip(Mixture((gp,)).posterior_gradient(X), gp.posterior_gradient(X), strict=True):
        np.testing.assert_allclose(ours, its, rtol=1e-12)


def test_the_forms_agree_and_the_gradients_are_those_of_differences(mixture):
    X = points(np.random.default_rng(1), 5)
    mean, var, dmean, dvar = mixture.posterior_gradient(X)
    np.testing.assert_allclose([mean, var], mixture.posterior(X), rtol=1e-10)
    joint_mean, cov = mixture.joint(X)
    np.testing.assert_allclose([joint_mean, np.diag(cov)], [mean, var], rtol=1e-9)
    for j in (0, 2):
        for analytic, i in ((dmean, 0), (dvar, 1)):
            numeric = differences(lambda Z, i=i: mixture.posterior(Z)[i], X, j)
            np.testing.assert_allclose(analytic[:, j], numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.statistical
def test_moments_are_those_of_draws_from_the_members(mixture):
    """Each entry within 6 standard errors over 30,000 draws, errors estimated from them; false alarms below 1e-6."""
    X = points(np.random.default_rng(2), 3)
    rng = np.random.default_rng(3)
    draws = np.concatenate([joint_draws(gp, X, rng, 10_000) for gp in mixture.members])
    mean, cov = mixture.joint(X)
    assert (np.abs(draws.mean(axis=0) - mean) < 6 * np.sqrt(np.diag(cov) / 30_000)).all()
    centred = draws - mean
    products = centred[:, :, None] * centred[:, None, :]
    error = products.std(axis=0) / np.sqrt(30_000)
    assert (np.abs(products.mean(axis=0) - cov) < 6 * error).all()


def test_believing_is_each_members(mixture):
    X = points(np.random.default_rng(4), 2)
    believed = mixture.believing(X)
    assert believed.d == mixture.d == 3
    for ours, its in zip(believed.members, mixture.members, strict=True):
        np.testing.assert_array_equal(ours.L, its.believing(X).L)
    np.testing.assert_allclose(believed.posterior(X)[0], mixture.posterior(X)[0], rtol=1e-9)
