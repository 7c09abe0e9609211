"""The computations of the figure inexact-bounds, against brute force."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from raybo.acquisition import UpperConfidence

FILE = Path(__file__).parents[2] / "trials" / "papers" / "inexact_bounds.py"
BOUNDS = runpy.run_path(str(FILE))
B, R, TAU, THEORY = BOUNDS["B"], BOUNDS["R"], BOUNDS["TAU"], BOUNDS["theory_kappa"]
SOLVERS, GRIDS = BOUNDS["SOLVERS"], BOUNDS["GRIDS"]


def kernel(X, Z):
    """Matern-5/2, one pair at a time."""
    r = np.array([[np.sqrt(5.0 * ((x - z) ** 2).sum()) / BOUNDS["LENGTHSCALE"] for z in Z] for x in X])
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


def test_functions_have_the_stated_norm_and_maximum():
    """Interpolation from below: no set of points shows a larger norm, and those of the bells show all of it."""
    for seed in range(3):
        f, rng = BOUNDS["Bells"](seed), np.random.default_rng(seed)
        for X in (rng.random((40, 2)), f.centres):
            y = kernel(X, f.centres) @ f.weights
            np.testing.assert_allclose(f(X), y, rtol=1e-12)
            norm = np.sqrt(y @ np.linalg.solve(kernel(X, X) + 1e-10 * np.eye(len(X)), y))
            assert norm <= B + 1e-6
        assert norm == pytest.approx(B, abs=1e-6)
        values = f(rng.random((50_000, 2)))
        assert values.max() <= f.maximum
        assert f.maximum == pytest.approx(values.max(), abs=1e-3)
        assert (values >= 0.0).all()  # eta needs no shift


def test_the_lipschitz_constant_is_tight():
    rng = np.random.default_rng(0)
    X, step = rng.random((400, 2)), 1e-4 * rng.standard_normal((400, 2))
    length = np.sqrt((step**2).sum(axis=1))
    for seed in range(3):
        f = BOUNDS["Bells"](seed)
        assert (np.abs(f(X + step) - f(X)) <= BOUNDS["LIPSCHITZ"] * length).all()
    near = np.array([[0.5, 0.5], [0.5005, 0.5]])  # (k(., a) - k(., b)) / norm, between a and b
    weights = np.array([1.0, -1.0])
    norm = np.sqrt(weights @ kernel(near, near) @ weights)
    rise = B * (kernel(near, near) @ weights / norm) @ weights
    assert rise == pytest.approx(BOUNDS["LIPSCHITZ"] * 0.0005, rel=1e-3)
    Z = rng.random((300, 2))
    distances = np.sqrt(((Z[:, None] - Z) ** 2).sum(axis=-1))
    assert (B * np.sqrt(np.maximum(2.0 - 2.0 * kernel(Z, Z), 0.0)) <= BOUNDS["LIPSCHITZ"] * distances + 1e-9).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_runs_match_a_naive_loop(solver, monkeypatch):
    """With the inverse in place of factors, and the acquisition's maximum from a dense grid."""
    steps, seen = 9, []
    gp_of = BOUNDS["gp_of"]

    def note(X, y):
        seen.append((X, y))
        return gp_of(X, y)

    monkeypatch.setitem(BOUNDS["run"].__globals__, "gp_of", note)
    curves = BOUNDS["run"](solver, 1, steps)
    X, y = seen[-1]
    f = BOUNDS["Bells"](1)
    axis = np.linspace(0.0, 1.0, 61)
    dense = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    regret = inexactness = shifted = deviations = 0.0
    for t in range(1, steps + 1):
        K = kernel(X[: t - 1], X[: t - 1])
        gain = 0.5 * np.log(np.linalg.det(np.eye(t - 1) + K / TAU)) if t > 1 else 0.0
        c = 1 if solver == "L-BFGS-B" else 2
        kappa = B + R * np.sqrt(2.0 * (gain + 1.0 + np.log(c / BOUNDS["DELTA"])))
        assert curves.kappa[t - 1] == pytest.approx(kappa, rel=1e-9)

        def upper(Z, t=t, K=K, kappa=kappa):
            if t == 1:
                return np.full(len(Z), kappa), np.ones(len(Z))
            inverse, k = np.linalg.inv(K + TAU * np.eye(t - 1)), kernel(Z, X[: t - 1])
            std = np.sqrt(1.0 - np.einsum("ij,jk,ik->i", k, inverse, k))
            return k @ inverse @ y[: t - 1] + kappa * std, std

        (value,), (std,) = upper(X[[t - 1]])
        highest = max(upper(dense)[0].max(), value)
        regret += f.maximum - f(X[[t - 1]])[0]
        inexactness += 1.0 - value / highest
        shifted += 1.0 - (value + B) / (highest + B)
        deviations += std
        assert curves.regret[t - 1] == pytest.approx(regret, rel=1e-9)
        assert curves.deviations[t - 1] == pytest.approx(deviations, rel=1e-9)
        assert curves.inexactness[t - 1] >= inexactness - 1e-9  # the dense grid stays below the maximum
        assert curves.inexactness[t - 1] == pytest.approx(inexactness, abs=0.01 * t)
        assert curves.shifted[t - 1] == pytest.approx(shifted, abs=0.005 * t)
        assert curves.shifted[t - 1] <= curves.inexactness[t - 1]
        after = 0.5 * np.log(np.linalg.det(np.eye(t) + kernel(X[:t], X[:t]) / TAU))
        assert curves.gain[t - 1] == pytest.approx(after, rel=1e-9)
        assert deviations <= np.sqrt(4.0 * t * TAU * after)
        assert curves.deviations_by_gain[t - 1] == pytest.approx(np.sqrt(4.0 * t * TAU * after), rel=1e-9)
        three = (B + 2.0 * kappa) * curves.inexactness[t - 1] + 2.0 * kappa * deviations
        assert curves.theorem_3(curves.deviations)[t - 1] == pytest.approx(three, rel=1e-9)


@pytest.mark.parametrize("solver", GRIDS)
def test_distances_match_the_drawn_grid(solver, monkeypatch):
    """Of all points that the bound was asked for at a step, the one nearest to the maximiser of the function."""
    grids = []
    original = UpperConfidence.value

    def note(self, X):
        grids.append(X.copy())
        return original(self, X)

    monkeypatch.setattr(UpperConfidence, "value", note)
    monkeypatch.setitem(
        BOUNDS["run"].__globals__, "measure", lambda *rest, **named: type("Exact", (), {"eta": 1.0, "eta_fixed": 1.0})
    )
    curves, f = BOUNDS["run"](solver, 0, 5), BOUNDS["Bells"](0)
    steps = np.diff(np.concatenate([[0.0], curves.distances]))[1:]
    sizes = [GRIDS[solver] * t for t in range(2, 6)]
    rows = np.vstack(grids)
    assert len(rows) == sum(sizes)
    drawn = np.split(rows, np.cumsum(sizes)[:-1])
    nearest = [np.sqrt(((grid - f.maximiser) ** 2).sum(axis=1)).min() for grid in drawn]
    np.testing.assert_allclose(steps, nearest, rtol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_regret_stays_below_every_bound_at_every_step(solver):
    curves = BOUNDS["run"](solver, 3, 15)
    found = BOUNDS["bounds"](curves, solver)
    assert len(found) == (4 if solver in GRIDS else 2)
    for bound in found.values():
        assert (curves.regret <= bound).all()
    assert (found["Theorem 3"] <= found["Theorem 3, with the gain"]).all()
