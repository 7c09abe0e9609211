from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from raybo.context import MmdBall, mmd_radius
from raybo.context.ambiguity import RIDGE
from raybo.surrogate.kernels import profile
from tests.context.test_ambiguity import CENTRE, KERNEL, U, assert_gradient


def test_published_radius():
    assert mmd_radius(1) == pytest.approx(4.145966, abs=5e-7)
    assert mmd_radius(10) == pytest.approx(1.311070, abs=5e-7)
    assert mmd_radius(100) == pytest.approx(0.414597, abs=5e-7)


@pytest.mark.parametrize(
    ("radius", "value", "law"),
    [
        (0.1, 0.847913338, [0.276043, 0.6, 0.123957]),
        (0.3, 0.546335930, [0.453664, 0.546336, 0.0]),
        (0.5, 0.292423976, [0.707576, 0.292424, 0.0]),
        (0.8, 0.0, [1.0, 0.0, 0.0]),
    ],
)
def test_published_values(radius, value, law):
    found, q = MmdBall(KERNEL, CENTRE, radius).value_and_weights(U)
    assert found[0] == pytest.approx(value, abs=2e-9)
    np.testing.assert_allclose(q[0], law, atol=6e-7)


def problem(seed, a, lengthscale, kernel="matern52"):
    rng = np.random.default_rng(seed)
    points = np.sort(rng.random(a))
    K = profile(kernel, ((points[:, None] - points) / lengthscale) ** 2)
    counts = rng.multinomial(max(3, a // 2), rng.dirichlet(np.ones(a)))
    u = np.sin(rng.normal(0, 6) * points + rng.normal()) + 0.5 * np.cos(rng.normal(0, 15) * points)
    return K, counts / counts.sum(), u


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("radius", [0.05, 0.2, 0.5])
def test_mmd_worst_mean_equals_a_general_solver(seed, radius):
    K, p, u = problem(seed, 8, 0.2)
    ridged = K + RIDGE * np.eye(8)
    value, w = MmdBall(K, p, radius).value_and_weights(u[None, :])
    found = minimize(
        lambda w: w @ u,
        p,
        jac=lambda w: u,
        bounds=[(0, None)] * 8,
        constraints=[
            {"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones(8)},
            {
                "type": "ineq",
                "fun": lambda w: radius**2 - (w - p) @ ridged @ (w - p),
                "jac": lambda w: -2.0 * ridged @ (w - p),
            },
        ],
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert (w[0] - p) @ ridged @ (w[0] - p) <= radius**2 * (1 + 1e-7)
    assert value[0] <= found.fun + 1e-8
    assert value[0] == pytest.approx(found.fun, abs=1e-6)


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
@pytest.mark.parametrize("lengthscale", [0.02, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("radius", [0.01, 0.1, 0.4])
def test_mmd_weights_are_optimal_on_the_published_grid(kernel, lengthscale, radius):
    """Lagrange's bound: for any multiplier t > 0 and any c, min over the simplex of the Lagrangian is below the value.

    The duality gap at the multipliers of the solution is at most 1e-7 of the values' spread.
    """
    K, p, u = problem(3, 100, lengthscale, kernel)
    ridged = K + RIDGE * np.eye(100)
    value, w = MmdBall(K, p, radius).value_and_weights(u[None, :])
    w = w[0]
    z = w - p
    assert w.min() >= 0.0
    assert w.sum() == pytest.approx(1.0)
    assert z @ ridged @ z <= radius**2 * (1 + 1e-6)
    pull = ridged @ z
    # the multiplier that fits stationarity on the support best: u + t pull = constant
    support = w > 1e-12
    a, b = u[support] - u[support].mean(), pull[support] - pull[support].mean()
    t = max(0.0, -float(a @ b) / max(float(b @ b), 1e-300)) if support.sum() > 1 else 0.0
    gradient = u + t * pull
    # the Lagrangian is convex: below its value at w by at most w.gradient - min gradient
    gap = w @ gradient - gradient.min() + 0.5 * t * (radius**2 - z @ ridged @ z)
    assert gap <= 2e-6 * np.ptp(u)
    assert value[0] == pytest.approx(w @ u)


@pytest.mark.parametrize("radius", [0.05, 0.2, 0.6])
def test_mmd_weights_are_the_gradient(radius):
    for seed in range(4):
        K, p, u = problem(seed, 10, 0.15)
        assert_gradient(MmdBall(K, p, radius), u, step=1e-6, tolerance=1e-5)


def test_the_worst_mean_falls_with_the_radius():
    K, p, u = problem(7, 30, 0.2)
    values = [MmdBall(K, p, radius).value(u[None, :])[0] for radius in (0.0, 0.01, 0.05, 0.2, 0.5, 1.0, 2.0)]
    assert values[0] == pytest.approx(p @ u)
    assert values[-1] == pytest.approx(u.min())
    assert (np.diff(values) <= 1e-9).all()


def test_ties_for_the_least():
    K, p, _ = problem(8, 12, 0.2)
    u = np.r_[np.zeros(6), np.ones(6)]
    for radius in (0.01, 0.1, 0.5):
        value, w = MmdBall(K, p, radius).value_and_weights(u[None, :])
        assert 0.0 <= value[0] <= p @ u + 1e-12
        assert np.isfinite(w).all()
