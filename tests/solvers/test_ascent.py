from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import Bounds, minimize

from raybo.solvers.ascent import _second_opinion, ascend
from raybo.solvers.solution import Search
from tests.solvers.problems import Counted, Waves, box


class Quadratic:
    """-(x - c)^T A (x - c) / 2 with eigenvalues over `condition` in random directions; c may lie outside the cube."""

    def __init__(self, seed, d, condition, centre):
        rng = np.random.default_rng(seed)
        directions = np.linalg.qr(rng.normal(size=(d, d)))[0]
        self.A = directions * np.logspace(0.0, np.log10(condition), d) @ directions.T
        self.centre = np.broadcast_to(centre, (d,)) + 0.1 * rng.normal(size=d)

    def value(self, X):
        return -0.5 * np.einsum("mi,ij,mj->m", X - self.centre, self.A, X - self.centre)

    def value_and_gradient(self, X):
        return self.value(X), -(X - self.centre) @ self.A


class Rosenbrock:
    """Its negative on [-2, 2]^d; the maximum is 0 at 0.75 on every axis of the cube."""

    def value(self, X):
        return self.value_and_gradient(X)[0]

    def value_and_gradient(self, X):
        Z = 4.0 * X - 2.0
        bend, off = Z[:, 1:] - Z[:, :-1] ** 2, 1.0 - Z[:, :-1]
        gradient = np.zeros_like(Z)
        gradient[:, :-1] = -400.0 * Z[:, :-1] * bend - 2.0 * off
        gradient[:, 1:] += 200.0 * bend
        return -(100.0 * bend**2 + off**2).sum(axis=1), -4.0 * gradient


def climb(function, X, **options):
    d = X.shape[1]
    return ascend(Search(function, box(d)), X, np.ones(d, dtype=bool), **options)


def by_scipy(function, x):
    def loss(z):
        value, gradient = function.value_and_gradient(z[None])
        return -value[0], -gradient[0]

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 100_000}
    return minimize(loss, x, jac=True, method="L-BFGS-B", bounds=Bounds(0.0, 1.0), options=options)


@pytest.mark.parametrize("centre", [0.5, 0.95, 1.3, -2.0], ids=["inside", "near a face", "faces and edges", "corner"])
@pytest.mark.parametrize("condition", [1.0, 100.0, 10_000.0])
@pytest.mark.parametrize("d", [1, 2, 6, 15])
def test_quadratics_are_climbed_as_by_scipy(centre, condition, d):
    """As high as scipy's L-BFGS-B at its tightest, for maxima inside, on faces, on edges and in corners."""
    starts = np.random.default_rng(d).random((5, d))
    for seed in range(3):
        function = Quadratic(seed, d, condition, centre)
        climbs = climb(function, starts, rounds=400, tolerance=1e-12)
        best = -by_scipy(function, starts[0]).fun
        scale = np.abs(function.value(starts)).max()
        np.testing.assert_allclose(climbs.values.max(), best, atol=1e-8 * scale)
        np.testing.assert_allclose(climbs.values[climbs.converged], best, atol=1e-8 * scale)
        assert climbs.converged.any()
        np.testing.assert_allclose(function.value(climbs.X), climbs.values, rtol=1e-12)


@pytest.mark.parametrize("d", [2, 5])
def test_a_curved_valley(d):
    climbs = climb(Rosenbrock(), np.random.default_rng(0).random((6, d)), rounds=300, tolerance=1e-12)
    assert climbs.values.max() > -1e-6
    assert np.abs(climbs.X[np.argmax(climbs.values)] - 0.75).max() < 1e-3


def test_each_climb_ends_where_it_would_alone():
    """Many maxima: sharing the calls does not mix the climbs."""
    function, X = Waves(box(3)), np.random.default_rng(0).random((8, 3))
    together = climb(function, X, tolerance=1e-10)
    for i in range(8):
        alone = climb(function, X[i : i + 1], tolerance=1e-10)
        if together.converged[i]:
            np.testing.assert_allclose(together.X[i], alone.X[0], atol=1e-5)
        else:  # given up, since the highest was out of reach
            assert alone.values[0] <= together.values.max() + 1e-9


def test_calls_are_shared_and_few():
    function, X = Counted(Quadratic(0, 6, 100.0, 0.5)), np.random.default_rng(0).random((4, 6))
    climb(function, X)
    assert function.calls <= 20
    assert function.rows <= 4 * function.calls


def test_a_tighter_tolerance_climbs_higher():
    function, X = Rosenbrock(), np.random.default_rng(1).random((4, 4))
    reached = [climb(function, X, tolerance=t, rounds=300).values.max() for t in (1e-2, 1e-5, 1e-9)]
    assert reached[0] < reached[1] < reached[2]


def test_rounds_are_a_limit():
    counted = Counted(Rosenbrock())
    climbs = climb(counted, np.random.default_rng(1).random((4, 4)), rounds=7, tolerance=1e-12)
    assert counted.calls == 8
    assert not climbs.converged.all()


def test_axes_that_are_held_do_not_move():
    function, X = Quadratic(0, 4, 50.0, 0.6), np.random.default_rng(2).random((5, 4))
    axes = np.array([True, False, True, False])
    climbs = ascend(Search(function, box(4)), X, axes, tolerance=1e-10)
    np.testing.assert_array_equal(climbs.X[:, ~axes], X[:, ~axes])
    _, gradient = function.value_and_gradient(climbs.X)
    inside = (climbs.X > 0.0) & (climbs.X < 1.0) & axes & climbs.converged[:, None]
    assert np.abs(gradient[inside]).max() < 1e-2
    nothing = ascend(Search(function, box(4)), X, np.zeros(4, dtype=bool))
    np.testing.assert_array_equal(nothing.X, X)


def test_starts_in_corners_leave_them():
    function = Quadratic(1, 3, 20.0, 0.5)
    climbs = climb(function, np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.0]]), tolerance=1e-10)
    np.testing.assert_allclose(climbs.values, -by_scipy(function, np.full(3, 0.5)).fun, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e20, 1e200])
def test_the_scale_of_the_function_does_not_matter(scale):
    class Scaled(Quadratic):
        def value_and_gradient(self, X):
            values, gradient = super().value_and_gradient(X)
            return scale * values, scale * gradient

    function, X = Scaled(0, 3, 10.0, 0.5), np.random.default_rng(3).random((3, 3))
    climbs = climb(function, X, tolerance=1e-8, rounds=100)
    assert climbs.values.max() >= scale * (function.value(X).max() * 1e-3)


@pytest.mark.parametrize("height", [1.0, -1e300, 1.7e308])
@pytest.mark.parametrize("slope", [0.0, 5e-324, 1e-310, 1.7e308])
def test_extreme_slopes_do_not_spoil_the_values(height, slope):
    class Ramp:
        def value_and_gradient(self, X):
            return np.full(len(X), height), np.full_like(X, slope)

    climbs = climb(Ramp(), np.full((2, 3), 0.5))
    np.testing.assert_array_equal(climbs.values, height)


def test_a_precipice_does_not_stop_the_climb():
    """Gradients of 1e250 behind the maximum: the model of them may overflow, the climb continues or ends."""

    class Precipice:
        def value_and_gradient(self, X):
            over = np.maximum(X[:, 0] - 0.6, 0.0)
            gradient = np.ones_like(X)
            gradient[:, 0] = np.where(over > 0.0, -1e250, 1.0)
            gradient[:, 1:] = 0.5 - X[:, 1:]
            return X[:, 0] - 1e250 * over - 0.5 * ((X[:, 1:] - 0.5) ** 2).sum(axis=1), gradient

    class Inside(Counted):
        def note(self, X):
            assert np.isfinite(X).all()
            super().note(X)

    climbs = climb(Inside(Precipice()), np.array([[0.1, 0.2], [0.55, 0.9], [0.9, 0.4]]), rounds=100)
    assert climbs.values.max() > 0.4
    assert climbs.X[np.argmax(climbs.values), 0] <= 0.6


@pytest.mark.parametrize("lost", [0.0, -1.0])
def test_axes_without_curvature_go_uphill(lost):
    """Seen after a step over a cliff: the first curvature was 3e14, and rounding left nothing of the second."""
    X, G = np.array([[0.0, 0.5]]), np.array([[-7e5, 0.1]])
    B = np.array([[[3e14, -1e6], [-1e6, lost]]])
    T, S, promised = _second_opinion(X, G, B, np.array([0.2]), X, 0.0 * X, np.zeros(1), 1e-5)
    assert T[0, 0] == 0.0
    assert T[0, 1] > 0.5
    assert promised[0] == (G * S).sum() > 0.0


def test_worthless_starts_stay():
    class Cliff(Quadratic):
        def value_and_gradient(self, X):
            values, gradient = super().value_and_gradient(X)
            return np.where(X[:, 0] > 0.5, np.nan, values), gradient

    X = np.array([[0.9, 0.5], [0.3, 0.2], [0.49, 0.9]])
    climbs = climb(Cliff(0, 2, 4.0, 0.6), X, tolerance=1e-6)
    np.testing.assert_array_equal(climbs.X[0], X[0])
    assert climbs.values[0] == -np.inf
    assert not climbs.converged[0]
    assert np.all(climbs.X[1:, 0] <= 0.5)
    assert np.all(np.isfinite(climbs.values[1:]))


def test_differences_climb_as_high_as_gradients():
    function, X = Quadratic(2, 5, 100.0, 0.9), np.random.default_rng(4).random((4, 5))
    counted = Counted(function)
    search = Search(counted, box(5), gradient="fd")
    climbs = ascend(search, X, np.ones(5, dtype=bool), tolerance=1e-8, rounds=100)
    assert climbs.values.max() == pytest.approx(climb(function, X, tolerance=1e-8, rounds=100).values.max(), abs=1e-4)
    assert search.evaluations == counted.rows
    assert counted.rows >= 11 * counted.calls


def test_differences_are_one_sided_at_the_cubes_faces():
    function, X = Waves(box(4)), np.random.default_rng(5).random((6, 4))
    X[4], X[5, :2] = 0.0, 1.0
    for rows, tolerance in ((slice(0, 4), 1e-7), (slice(4, 6), 1e-2)):
        values, gradient = Search(function, box(4), gradient="fd").value_and_gradient(X[rows])
        np.testing.assert_array_equal(values, function.value(X[rows]))
        np.testing.assert_allclose(gradient, function.value_and_gradient(X[rows])[1], rtol=0, atol=tolerance)
