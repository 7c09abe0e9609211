from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybo.acquisition import Shortfall, UpperConfidence
from raybo.acquisition.context import LEAST_VARIANCE, ContextConfidence
from raybo.context import Expectation, Lowest, MinimaxApproximation, MmdBall, TotalVariation
from raybo.surrogate import GP, Model, Observations
from tests.acquisition.small_gp import gradient_error
from tests.acquisition.small_gp import random_gp as small_gp

ATOMS = np.array([[0.3], [0.5], [0.8]])
THIRDS = np.full(3, 1.0 / 3.0)
ANYWHERE = np.linspace(0.0, 1.0, 101)[:, None]
HERE = np.array([[0.5]])


def published(kernel):
    """Four points in one number and one context, hyperparameters given."""
    Z = np.column_stack([[0.1, 0.4, 0.7, 0.9], [0.2, 0.5, 0.6, 0.9]])
    observations = Observations.of(Z, np.array([1.0, -0.5, 0.3, 2.0]))
    return GP.of(observations, Model(kernel=kernel), np.log([0.3, 0.5, 1.0, 0.01]))


PUBLISHED = {
    "rbf": {
        "mean": [-0.52644797, -0.55500919, -0.25518934],
        "std": [0.43808555, 0.15149857, 0.49590399],
        "bound": [0.13068035, -0.32776133, 0.48866665],
        "average": (0.097195220181, 1.39564711),
        "worst": {
            0.2: (0.014895874677, 1.31267965),
            0.5: (-0.108553143579, 1.18822846),
            1.0: (-0.254637124252, 1.38007323),
        },
        "among atoms": {0.2: 0.0155524222, 0.5: -0.1069117749, 1.0: -0.2513543868},
        "least": (-0.3343268086, 0.52),
    },
    "matern52": {
        "mean": [-0.41575600, -0.50852161, -0.18124742],
        "std": [0.54199924, 0.28351296, 0.60702484],
        "bound": [0.39724285, -0.08325217, 0.72928984],
        "average": (0.347760172855, 2.30105144),
        "worst": {
            0.2: (0.266201495409, 2.42905013),
            0.5: (0.143863479240, 2.62104817),
            1.0: (-0.004692049105, 3.09295987),
        },
        "among atoms": {},
        "least": (-0.0862969334, 0.51),
    },
}


@pytest.mark.parametrize("kernel", PUBLISHED)
def test_published_values(kernel):
    gp, known = published(kernel), PUBLISHED[kernel]
    mean, var = gp.posterior(np.hstack([np.full((3, 1), 0.5), ATOMS]))
    np.testing.assert_allclose(mean, known["mean"], atol=5e-9)
    np.testing.assert_allclose(np.sqrt(var), known["std"], atol=5e-9)
    average = ContextConfidence(gp, ATOMS, Expectation(THIRDS), 1.5)
    np.testing.assert_allclose(average.bounds(HERE)[0], known["bound"], atol=6e-9)
    value, gradient = average.value_and_gradient(HERE)
    assert value[0] == pytest.approx(known["average"][0], abs=1e-12)
    assert gradient[0, 0] == pytest.approx(known["average"][1], abs=6e-9)


@pytest.mark.parametrize("kernel", PUBLISHED)
def test_published_worst_means(kernel):
    gp, known = published(kernel), PUBLISHED[kernel]
    atoms, p = np.vstack([ATOMS, ANYWHERE]), np.concatenate([THIRDS, np.zeros(101)])
    lowest = ContextConfidence(gp, atoms, Lowest(), 1.5).bounds(HERE)[0]
    assert lowest.min() == pytest.approx(known["least"][0], abs=6e-11)
    assert atoms[lowest.argmin(), 0] == pytest.approx(known["least"][1])
    for radius, expected in known["worst"].items():
        value, gradient = ContextConfidence(gp, atoms, TotalVariation(p, radius), 1.5).value_and_gradient(HERE)
        assert value[0] == pytest.approx(expected[0], abs=1e-12)
        assert gradient[0, 0] == pytest.approx(expected[1], abs=6e-9)
    for radius, expected in known["among atoms"].items():
        among = ContextConfidence(gp, ATOMS, TotalVariation(THIRDS, radius), 1.5)
        assert among.value(HERE)[0] == pytest.approx(expected, abs=1e-10)


# ---- on larger problems


def random_gp(seed, n=40, categorical=(False, False, False), kernel="matern52"):
    rng = np.random.default_rng(seed)
    Z = rng.random((n, len(categorical)))
    for j in np.flatnonzero(categorical):
        Z[:, j] = np.round(2.0 * Z[:, j]) / 2.0
    y = np.sin(Z @ rng.normal(0, 5, len(categorical))) + 0.3 * rng.normal(size=n)
    theta = np.log([*rng.uniform(0.15, 0.6, len(categorical)), 1.3, 0.02])
    return GP.of(Observations.of(Z, y, categorical), Model(kernel=kernel, mean="constant"), theta)


def reductions(atoms, rng):
    a = len(atoms)
    p = rng.dirichlet(np.ones(a))
    with_receivers = np.where(np.arange(a) < (a + 1) // 2, p, 0.0)
    K = np.exp(-0.5 * np.square((atoms[:, None, :] - atoms) / 0.2).sum(axis=2))
    return {
        "expectation": Expectation(p),
        "lowest": Lowest(),
        "total variation": TotalVariation(with_receivers / with_receivers.sum(), 0.4),
        "minimax": MinimaxApproximation(K, p, 0.2),
        "mmd": MmdBall(K, p, 0.2),
    }


NAMES = ["expectation", "lowest", "total variation", "minimax", "mmd"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("a", "n"), [(1, 30), (7, 40), (30, 900), (25, 5)])
def test_values_are_the_reduced_upper_confidence_bounds(name, a, n):
    """Blocks of several points, and several blocks a point, against one prediction at a time."""
    rng = np.random.default_rng(a)
    gp, atoms, X = random_gp(a, n=n), rng.random((a, 1)), rng.random((9, 2))
    reduction = reductions(atoms, rng)[name]
    acquisition = ContextConfidence(gp, atoms, reduction, 1.5)
    Z = np.hstack([np.repeat(X, a, axis=0), np.tile(atoms, (9, 1))])
    u = UpperConfidence(gp, 1.5).value(Z).reshape(9, a)
    np.testing.assert_allclose(acquisition.bounds(X), u, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(acquisition.value(X), reduction.value(u), atol=1e-7)
    np.testing.assert_allclose(acquisition.value_and_gradient(X)[0], acquisition.value(X), atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52"])
def test_context_average_gradients_match_finite_differences(name, kernel):
    rng = np.random.default_rng(3)
    atoms = rng.random((31, 1))
    acquisition = ContextConfidence(random_gp(5, kernel=kernel), atoms, reductions(atoms, rng)[name], 1.5)
    # the worst law in an MMD ball is found to 1e-10, which differences of its value magnify
    assert gradient_error(acquisition, rng.random((12, 2))) < (1e-4 if name == "mmd" else 1e-6)


def test_gradient_over_several_blocks_of_atoms():
    rng = np.random.default_rng(8)
    atoms = rng.random((700, 1))
    p = np.concatenate([np.full(350, 1.0 / 350.0), np.zeros(350)])
    acquisition = ContextConfidence(random_gp(6, n=60), atoms, TotalVariation(p, 0.3), 1.5)
    assert gradient_error(acquisition, rng.random((4, 2))) < 1e-6


def test_a_known_value_has_only_the_means_slope():
    rng = np.random.default_rng(9)
    Z = rng.random((6, 2))
    gp = GP.of(Observations.of(Z, np.sin(5.0 * Z[:, 0]) + Z[:, 1]), Model(), np.log([0.5, 0.5, 1.0, 1e-12]))
    known = ContextConfidence(gp, Z[:1, 1:], Expectation(np.ones(1)), 1.5)
    near = Z[:1] + np.array([1e-6, 0.0])  # where the variance is rising, but is still taken for none
    _, var, dmean, dvar = gp.posterior_gradient(near)
    assert var[0] < LEAST_VARIANCE < 100.0 * abs(dvar[0, 0])
    assert known.value_and_gradient(near[:, :1])[1][0, 0] == pytest.approx(dmean[0, 0], rel=1e-6)


def test_categorical_axes():
    """No gradient along a category of x, and contexts of another category are further away."""
    rng = np.random.default_rng(4)
    gp = random_gp(7, categorical=(False, True, True))
    atoms = np.array([[0.0], [0.5], [1.0]])
    acquisition = ContextConfidence(gp, atoms, Expectation(THIRDS), 1.5)
    X = np.column_stack([rng.random(6), np.round(2.0 * rng.random(6)) / 2.0])
    _, gradient = acquisition.value_and_gradient(X)
    np.testing.assert_array_equal(gradient[:, 1], 0.0)
    step = np.array([6e-6, 0.0])
    numeric = (acquisition.value(X + step) - acquisition.value(X - step)) / 1.2e-5
    np.testing.assert_allclose(gradient[:, 0], numeric, rtol=1e-6, atol=1e-8)


def test_one_atom_is_the_plain_bound():
    gp, X = random_gp(9), np.random.default_rng(5).random((8, 2))
    one = ContextConfidence(gp, np.array([[0.4]]), Expectation(np.ones(1)), 2.0)
    plain = UpperConfidence(gp, 2.0).value_and_gradient(np.column_stack([X, np.full(8, 0.4)]))
    value, gradient = one.value_and_gradient(X)
    np.testing.assert_allclose(value, plain[0], rtol=1e-10)
    np.testing.assert_allclose(gradient, plain[1][:, :2], rtol=1e-8, atol=1e-10)


def test_the_order_of_observations_does_not_matter():
    gp = random_gp(10)
    order = np.random.default_rng(6).permutation(gp.n)
    shuffled = GP.of(Observations.of(gp.X[order], gp.y[order]), gp.model, gp.theta)
    atoms, X = np.random.default_rng(7).random((20, 1)), np.random.default_rng(8).random((5, 2))
    for reduction in reductions(atoms, np.random.default_rng(9)).values():
        a, b = (ContextConfidence(model, atoms, reduction, 1.5).value(X) for model in (gp, shuffled))
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.0, 2.0), st.floats(0.0, 2.0))
def test_a_larger_ball_is_worse(seed, one, other):
    small, large = sorted((one, other))
    rng = np.random.default_rng(seed)
    atoms, X, p = rng.random((16, 1)), rng.random((3, 2)), np.full(16, 1.0 / 16.0)
    gp = random_gp(11, n=12)
    a, b = (ContextConfidence(gp, atoms, TotalVariation(p, radius), 1.5).value(X) for radius in (small, large))
    assert (b <= a + 1e-9).all()
    average = ContextConfidence(gp, atoms, Expectation(p), 1.5).value(X)
    lowest = ContextConfidence(gp, atoms, Lowest(), 1.5).value(X)
    assert (lowest - 1e-9 <= b).all()
    assert (a <= average + 1e-9).all()


def test_certainty_has_a_finite_gradient():
    """At a point and context of the data with almost no noise."""
    Z = np.random.default_rng(1).random((10, 2))
    gp = GP.of(Observations.of(Z, np.sin(5.0 * Z[:, 0])), Model(), np.log([0.5, 0.5, 1.0, 1e-13]))
    values, gradient = ContextConfidence(gp, Z[:1, 1:], Expectation(np.ones(1)), 1.5).value_and_gradient(Z[:1, :1])
    assert np.isfinite(values).all()
    assert np.isfinite(gradient).all()


def test_a_shortfall_is_priced_and_slopes():
    bound = UpperConfidence(small_gp(0, n=8, d=2)[0], 1.0)
    X = np.random.default_rng(1).random((40, 2))
    values = bound.value(X)
    short = Shortfall(bound, float(np.median(values)))
    priced = short.value(X)
    assert (priced <= 0.0).all()
    np.testing.assert_array_equal(priced < 0.0, values < np.median(values))
    np.testing.assert_allclose(priced.min(), 10.0 * (values.min() - np.median(values)))
    assert gradient_error(short, X) < 1e-5
