from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from raybo.context import Expectation, Lowest, MinimaxApproximation, MmdBall, TotalVariation, WorstShare

VALUES = st.floats(-100, 100).map(lambda v: round(v, 6))


def worst(u, radius, p=None, infimum=None):
    """Value and law; an infimum is one more atom of no base weight."""
    u = np.asarray(u, dtype=float)
    p = np.full(len(u), 1.0 / len(u)) if p is None else np.asarray(p)
    if infimum is not None:
        u, p = np.append(u, infimum), np.append(p, 0.0)
    value, q = TotalVariation(p, radius).value_and_weights(u[None, :])
    return value[0], q[0]


def by_linear_program(u, p, radius):
    """min q.u with sum |q - p| <= radius over the simplex; variables q and s >= |q - p|."""
    a = len(u)
    eye = np.eye(a)
    A = np.vstack([np.hstack([eye, -eye]), np.hstack([-eye, -eye]), np.r_[np.zeros(a), np.ones(a)]])
    b = np.concatenate([p, -p, [radius]])
    equal = np.r_[np.ones(a), np.zeros(a)][None, :]
    found = linprog(np.r_[u, np.zeros(a)], A_ub=A, b_ub=b, A_eq=equal, b_eq=[1.0], bounds=(0, None))
    return found.fun


def by_dual(u, p, radius, m):
    """Proposition 2 with T = alpha - beta, tried at every breakpoint."""
    breakpoints = np.append(u, m)
    return max(p @ np.minimum(u, T) - 0.5 * radius * (T - m) for T in breakpoints if m <= T)


# ---- total variation: published values


def test_five_samples_have_the_published_value():
    radii = [0, 0.2, 0.4, 0.5, 1, 1.6, 2, 3]
    u = [5, 1, 4, 2, 3]
    np.testing.assert_allclose([worst(u, r)[0] for r in radii], [3.0, 2.6, 2.2, 2.05, 1.4, 1.0, 1.0, 1.0])
    values = [worst(u, r, infimum=0.0)[0] for r in radii]
    np.testing.assert_allclose(values, [3.0, 2.5, 2.0, 1.80, 0.9, 0.2, 0.0, 0.0], atol=1e-15)


def test_ambiguity_of_eight_sines():
    u, radius = np.sin(np.arange(1, 9)), 8.0**-0.4
    assert radius == pytest.approx(0.435275281648)
    value, q = worst(u, radius)
    assert value == pytest.approx(-0.223716591515, abs=1e-12)
    np.testing.assert_allclose(
        q, [0.125, 0.032362359, 0.125, 0.125, 0.342637641, 0.125, 0.125, 0.0], rtol=0, atol=5e-10
    )
    assert u.mean() == pytest.approx(0.192886374608, abs=1e-12)
    assert worst(u, radius, infimum=-1.2)[0] == pytest.approx(-0.276183743637, abs=1e-12)


def test_ambiguity_of_many_cosines():
    u = np.cos(np.arange(1024))
    assert worst(u, 50.0**-0.4)[0] == pytest.approx(-0.207406454225, abs=1e-12)
    assert u.mean() == pytest.approx(-0.000135521008, abs=1e-12)


def test_ambiguity_of_weighted_samples():
    u, p = [3, 1, 2, 0], [0.1, 0.2, 0.3, 0.4]
    value, q = worst(u, 0.5, p)
    assert value == pytest.approx(0.5)
    np.testing.assert_allclose(q, [0.0, 0.2, 0.15, 0.65], atol=1e-15)
    assert worst(u, 0.5, p, infimum=-1.0)[0] == pytest.approx(0.25)


def test_ambiguity_of_one_observation():
    """Radius 1: half the mean and half the infimum."""
    assert worst(np.full(64, 2.0), 1.0, infimum=-1.0)[0] == pytest.approx(0.5)


# ---- total variation: against other solutions, and what must hold


@pytest.mark.parametrize("seed", range(60))
def test_worst_mean_equals_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    a = int(rng.integers(1, 12))
    u, p = rng.normal(0, 3, a), rng.dirichlet(np.ones(a))
    p[rng.random(a) < 0.3] = 0.0  # atoms that can only receive
    if p.sum() == 0.0:
        p[0] = 1.0
    p /= p.sum()
    radius = rng.uniform(0, 2.3)
    value, q = worst(u, radius, p)
    assert value == pytest.approx(by_linear_program(u, p, radius), abs=1e-9)
    assert value == pytest.approx(by_dual(u, p, min(radius, 2.0), u.min()), abs=1e-12)
    assert np.abs(q - p).sum() <= radius + 1e-12
    assert q.min() >= 0.0
    assert q.sum() == pytest.approx(1.0)


@given(arrays(np.float64, st.integers(1, 20), elements=VALUES), st.floats(0, 3), st.integers(0, 99))
def test_the_order_of_atoms_does_not_matter(u, radius, seed):
    shuffled = np.random.default_rng(seed).permutation(u)
    assert worst(shuffled, radius)[0] == pytest.approx(worst(u, radius)[0], rel=1e-12, abs=1e-9)


@given(arrays(np.float64, st.integers(1, 20), elements=VALUES), st.floats(0, 3), st.floats(0, 3))
def test_the_worst_mean_falls_with_the_radius(u, one, other):
    small, large = sorted((one, other))
    a, b = worst(u, small)[0], worst(u, large)[0]
    assert b <= a + 1e-9
    assert u.min() - 1e-9 <= b
    assert a <= u.mean() + 1e-9
    assert worst(u, 0.0)[0] == pytest.approx(u.mean(), rel=1e-12, abs=1e-9)
    assert worst(u, 2.0)[0] == pytest.approx(u.min(), rel=1e-12, abs=1e-9)


@given(
    arrays(np.float64, st.integers(1, 20), elements=VALUES), st.floats(0, 3), st.floats(-50, 50), st.floats(0.01, 50)
)
def test_worst_mean_moves_and_scales_with_values(u, radius, shift, scale):
    value, q = worst(u, radius, infimum=u.min() - 1.0)
    moved = worst(scale * u + shift, radius, infimum=scale * (u.min() - 1.0) + shift)[0]
    assert moved == pytest.approx(scale * value + shift, rel=1e-9, abs=1e-7)
    assert q @ np.append(u, u.min() - 1.0) == pytest.approx(value, rel=1e-12, abs=1e-9)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.floats(0.01, 1.9))
def test_worst_means_weights_are_its_gradient(seed, radius):
    rng = np.random.default_rng(seed)
    u, p = rng.normal(size=7), rng.dirichlet(np.ones(7))
    assert_gradient(TotalVariation(np.append(p[:-1], 0.0) / p[:-1].sum(), radius), u)


# ---- the others


def assert_gradient(reduction, u, step=1e-7, tolerance=1e-6):
    weights = reduction.value_and_weights(u[None, :])[1][0]
    shifts = step * np.eye(len(u))
    numeric = (reduction.value(u + shifts) - reduction.value(u - shifts)) / (2.0 * step)
    np.testing.assert_allclose(weights, numeric, atol=tolerance)


def test_expectation_and_lowest():
    u = np.random.default_rng(1).normal(size=(5, 7))
    p = np.random.default_rng(2).dirichlet(np.ones(7))
    np.testing.assert_allclose(Expectation(p).value(u), u @ p)
    np.testing.assert_array_equal(Lowest().value(u), u.min(axis=1))
    for reduction in (Expectation(p), Lowest()):
        value, weights = reduction.value_and_weights(u)
        np.testing.assert_allclose(np.einsum("ma,ma->m", u, weights), value)
        assert_gradient(reduction, u[0])


GRID = np.array([0.0, 0.5, 1.0])
KERNEL = np.exp(-0.5 * ((GRID[:, None] - GRID) / 0.5) ** 2)
CENTRE = np.array([0.2, 0.6, 0.2])
U = np.array([[0.0, 1.0, 2.0]])


@pytest.mark.parametrize(
    ("sensitivity", "values"),
    [
        ("exact", {0.1: 0.857140800, 0.3: 0.571422399, 0.5: 0.285703998, 0.8: 0.0}),
        ("fast", {0.1: 0.862473453, 0.3: 0.587420358, 0.5: 0.312367263, 0.8: 0.0}),
    ],
)
def test_published_minimax_approximation(sensitivity, values):
    for radius, value in values.items():
        approximation = MinimaxApproximation(KERNEL, CENTRE, radius, sensitivity)
        assert approximation.value(U)[0] == pytest.approx(value, abs=3e-9)
    assert approximation.distances[0] == pytest.approx(0.748325220, abs=5e-10)
    S = {"exact": 1.520866623, "fast": 1.414213562}[sensitivity]
    assert approximation.slopes(U)[0][0] == pytest.approx(S, abs=5e-9)


@pytest.mark.parametrize("sensitivity", ["exact", "fast"])
@pytest.mark.parametrize("radius", [0.05, 0.3, 0.7, 2.0])
def test_gradient_of_the_minimax_approximation(sensitivity, radius):
    rng = np.random.default_rng(4)
    points = np.sort(rng.random(8))
    K = np.exp(-0.5 * ((points[:, None] - points) / 0.1) ** 2)
    approximation = MinimaxApproximation(K, rng.dirichlet(np.ones(8)), radius, sensitivity, stretch=1.3)
    for u in rng.normal(size=(10, 8)):
        assert_gradient(approximation, u, tolerance=3e-6)


def test_the_minimax_approximation_lies_between_its_bounds():
    rng = np.random.default_rng(5)
    points = np.sort(rng.random(6))
    K = np.exp(-0.5 * ((points[:, None] - points) / 0.2) ** 2)
    p, u = rng.dirichlet(np.ones(6)), rng.normal(size=(20, 6))
    for radius in (0.05, 0.2, 0.5):
        approximation = MinimaxApproximation(K, p, radius, "exact")
        reach = approximation.distances[u.argmin(axis=1)]
        lower = np.maximum(u @ p - radius * approximation.slopes(u)[0], u.min(axis=1))
        upper = np.maximum(u @ p + radius * (u.min(axis=1) - u @ p) / reach, u.min(axis=1))
        exact = MmdBall(K, p, radius).value(u)
        assert (lower <= exact + 1e-6).all()
        assert (exact <= upper + 1e-6).all()
        np.testing.assert_allclose(approximation.value(u), 0.5 * (lower + upper), atol=1e-6)


def test_constant_values_have_a_worst_mean():
    u = np.full((2, 3), 1.7)
    for reduction in (
        TotalVariation(CENTRE, 0.4),
        MmdBall(KERNEL, CENTRE, 0.4),
        MinimaxApproximation(KERNEL, CENTRE, 0.4),
        MinimaxApproximation(KERNEL, CENTRE, 0.4, "exact"),
    ):
        value, weights = reduction.value_and_weights(u)
        np.testing.assert_allclose(value, 1.7)
        assert np.isfinite(weights).all()
        assert not math.isnan(float(weights.sum()))


# ---- the worst share


def test_the_worst_share_by_a_linear_program():
    rng = np.random.default_rng(3)
    for share in (0.05, 0.3, 1.0):
        u, p = rng.normal(size=(4, 9)), rng.dirichlet(np.ones(9))
        values, weights = WorstShare(p, share).value_and_weights(u)
        for row, value, q in zip(u, values, weights, strict=True):
            found = linprog(row, A_eq=np.ones((1, 9)), b_eq=[1.0], bounds=[(0, each / share) for each in p])
            assert value == pytest.approx(found.fun, abs=1e-9)
            assert (row @ q, q.sum()) == (pytest.approx(value), pytest.approx(1.0))
    np.testing.assert_allclose(WorstShare(p, 1.0).value(u), Expectation(p).value(u))
