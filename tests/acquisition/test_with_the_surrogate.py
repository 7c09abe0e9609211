"""Acquisitions over the surrogate's own GP, on a domain with integers and categories."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.acquisition import (
    Average,
    Inflated,
    JointDraw,
    LogAverage,
    LogExpectedImprovement,
    LogProbabilityOfImprovement,
    UpperConfidence,
)
from raybo.solvers import SOLVERS, solve
from raybo.solvers.inexactness import measure
from raybo.space import Categorical, Float, Integer, Space
from raybo.surrogate import GP, Model, Observations, draw_function
from tests.acquisition.small_gp import SmallGP, expected_improvement, gradient_error, probability_of_improvement

CUBE = Space(
    {
        "a": Float(0, 1),
        "b": Float(1e-3, 1, log=True),
        "c": Integer(1, 9),
        "d": Categorical(list("abc")),
        "e": Float(0, 1),
    }
).cube


def surrogate(lengthscale=0.5, n=25, cube=CUBE):
    rng = np.random.default_rng(0)
    X = cube.snap(rng.random((n, cube.d)))
    y = np.sin(5.0 * X).sum(axis=1)
    y = (y - y.mean()) / y.std()
    theta = np.log([lengthscale] * cube.d + [1.2, 1e-3])
    return GP.of(Observations(X, y, np.ones(n), 0.0, cube.categorical), Model(), theta)


MAKERS = {
    "ucb": lambda gp, top: UpperConfidence(gp, 2.0),
    "ei": lambda gp, top: expected_improvement(gp, top),
    "log-ei": lambda gp, top: LogExpectedImprovement(gp, top, 1.7),
    "pi": lambda gp, top: probability_of_improvement(gp, top),
    "log-pi": lambda gp, top: LogProbabilityOfImprovement(gp, top),
    "mean of ucb": lambda gp, top: Average([UpperConfidence(g, 2.0) for g in (gp, surrogate(0.2))]),
    "log mean of ei": lambda gp, top: LogAverage([LogExpectedImprovement(g, top) for g in (gp, surrogate(0.2))]),
    "draw": lambda gp, top: Inflated(gp, draw_function(gp, np.random.default_rng(1), levels=CUBE.levels), 2.0),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_acquisition_gradients_match_through_the_surrogate(kind):
    """Along ordered axes as central differences; along the categorical one 0."""
    gp = surrogate()
    acquisition = MAKERS[kind](gp, float(gp.y.max()))
    X = CUBE.snap(np.random.default_rng(2).random((30, 5)))
    ordered = np.flatnonzero(~np.array(CUBE.categorical))
    np.testing.assert_array_equal(acquisition.value_and_gradient(X)[1][:, 3], 0.0)

    class Ordered:  # the same, of the ordered axes alone
        def full(self, Z):
            Y = np.resize(X, (len(Z), 5))
            Y[:, ordered] = Z
            return Y

        def value(self, Z):
            return acquisition.value(self.full(Z))

        def value_and_gradient(self, Z):
            values, gradient = acquisition.value_and_gradient(self.full(Z))
            return values, gradient[:, ordered]

    assert gradient_error(Ordered(), X[:, ordered]) < 1e-6


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_maximises_every_acquisition(kind, solver):
    gp = surrogate()
    acquisition = MAKERS[kind](gp, float(gp.y.max()))
    found = solve(solver, acquisition, CUBE, np.random.default_rng(0))
    assert found.value == pytest.approx(acquisition.value(found.x[None])[0], rel=1e-9, abs=1e-12)
    np.testing.assert_array_equal(CUBE.snap(found.x[None])[0], found.x)
    if kind in ("ucb", "log-ei"):
        result = measure(acquisition, CUBE, np.random.default_rng(1), found, points=512)
        assert result.gap >= -1e-12
        assert result.gap < (1.0 if solver == "random-grid" else 0.05)


def test_agrees_with_a_gp_of_a_few_lines():
    cube = Space({f"x{i}": Float(0, 1) for i in range(3)}).cube
    gp = surrogate(0.4, 20, cube)
    small = SmallGP(gp.X, gp.y, 0.4, 1.2, 1e-3)
    X, top = np.random.default_rng(0).random((40, 3)), float(gp.y.max())
    for make in (
        lambda g: UpperConfidence(g, 1.5),
        lambda g: LogExpectedImprovement(g, top),
        lambda g: JointDraw(g, 3),
    ):
        np.testing.assert_allclose(make(gp).value(X), make(small).value(X), rtol=1e-7, atol=1e-5)
