from __future__ import annotations

import math

import numpy as np
import pytest

from raybo.common.errors import TrialError
from raybo.context import Density, best_expected, best_for, expected, fit_joint
from raybo.space import Categorical, Space
from tests.context.histories import Met, demand, floats, newsvendor, newsvendor_expectation, of_ackley, of_newsvendor


def test_a_lucky_context_does_not_win():
    """High stock pays only when demand happens to be high, which it once was."""
    rng = np.random.default_rng(0)
    history = Met(floats(1), floats(1))
    X = np.linspace(0.0, 1.0, 30)[:, None]
    C = demand(rng, 30)
    C[20] = 0.9
    y = newsvendor(X, C)
    for row in range(30):
        history.trial(X[row], C[row], y[row])
    assert np.argmax(history.y) == 20
    number, mean, sd = best_expected(history)
    assert number != 20
    x = history.X[number, 0]
    assert 0.46394 - newsvendor_expectation(x) < 0.05
    assert abs(mean - newsvendor_expectation(x)) < 5.0 * sd + 0.1
    assert 0.0 < sd < 0.3


def test_context_expectation_is_the_mean_over_the_density():
    """Against the average of predictions, one by one, and the variance of that average."""
    history = of_ackley(25)
    density = Density.of(history.contexts, history.context_cube)
    gp = fit_joint(history, density, np.random.default_rng(0)).gp
    atoms, p = density.atoms(64, np.random.default_rng(1))
    X = np.random.default_rng(2).random((5, 2))
    mean, std = expected(gp, X, atoms, p)
    for i, x in enumerate(X):
        Z = np.hstack([np.repeat(x[None, :], 64, axis=0), atoms])
        values, cov = gp.joint(Z)
        assert mean[i] == pytest.approx(p @ values, abs=1e-9)
        assert std[i] == pytest.approx(math.sqrt(p @ cov @ p), abs=1e-6)


def test_values_come_in_their_own_units():
    a = of_newsvendor(20)
    b = Met(floats(1), floats(1))
    for x, c, y in zip(a.X, a.C, a.y, strict=True):
        b.trial(x, c, 1000.0 * y - 7.0)
    number, mean, sd = best_expected(a)
    scaled = best_expected(b)
    assert scaled[0] == number
    assert scaled[1] == pytest.approx(1000.0 * mean - 7.0, rel=1e-3)
    assert scaled[2] == pytest.approx(1000.0 * sd, rel=1e-2)


def test_for_a_known_context():
    """The best stock is the demand, if that is known."""
    history = of_newsvendor(60, seed=3)
    for c in (0.1, 0.4):
        number, mean, _ = best_for(history, np.array([c]))
        assert abs(history.X[number, 0] - c) < 0.1
        assert mean == pytest.approx(4.0 * c, abs=0.3)


def test_context_expectation_depends_only_on_history():
    history = of_ackley(30)
    assert best_expected(history) == best_expected(history.copy())
    assert best_for(history, np.array([0.5])) == best_for(history.copy(), np.array([0.5]))


def test_trials_without_a_context_can_be_recommended():
    """They have no part in the model, but their points have an expectation."""
    history = of_newsvendor(40, seed=4)
    number = history.trial([0.19], None, -5.0)
    best = best_expected(history)[0]
    assert best == number or newsvendor_expectation(history.X[best, 0]) > newsvendor_expectation(0.19) - 0.05


def test_failed_and_pending_trials_are_not_recommended():
    history = of_newsvendor(10)
    for _ in range(5):
        history.trial([0.188], [0.2], failed=True)
        history.trial([0.188], [0.2])
    assert best_expected(history)[0] < 10


def test_with_too_little_known_the_best_value_wins():
    history = Met(floats(1), floats(1))
    with pytest.raises(TrialError, match="no trial has finished"):
        best_expected(history)
    history.trial([0.1], None, failed=True)
    history.trial([0.1], None, 1.0)
    history.trial([0.2], [0.5], 3.0)
    history.trial([0.3], None, 2.0)
    number, value, sd = best_expected(history)
    assert (number, value) == (2, 3.0)
    assert math.isnan(sd)
    assert best_for(history, np.array([0.1]))[:2] == (2, 3.0)


@pytest.mark.parametrize("y", [[2.0] * 6, [1e300, -1e300, 0.0, 1.0, 2.0, 3.0], [5e-324 * i for i in range(6)]])
def test_context_expectation_of_awkward_values(y):
    rng = np.random.default_rng(5)
    history = Met(floats(1), floats(1))
    for value in y:
        history.trial(rng.random(1), rng.random(1), value)
    number, mean, sd = best_expected(history)
    assert 0 <= number < 6
    assert np.isfinite([mean, sd]).all()


def test_categorical_contexts():
    """Two of three segments in four like a large x; the mean over them decides."""
    cube = Space({"segment": Categorical(["a", "b", "c"])}).cube
    rng, history = np.random.default_rng(6), Met(floats(1), cube)
    for _ in range(40):
        x, k = rng.random(1), int(rng.choice(3, p=[0.5, 0.25, 0.25]))
        history.trial(x, cube.levels[0][[k]], -float((x[0] - [0.9, 0.9, 0.1][k]) ** 2))
    assert abs(history.X[best_expected(history)[0], 0] - 0.7) < 0.15
    assert abs(history.X[best_for(history, cube.levels[0][[2]])[0], 0] - 0.1) < 0.15


def test_context_expectation_of_many_trials():
    history = of_newsvendor(320, seed=7)
    number, _, sd = best_expected(history)
    assert 0.46394 - newsvendor_expectation(history.X[number, 0]) < 0.02
    assert sd < 0.1


def test_earliest_of_equal_points_is_recommended():
    history = of_newsvendor(20)
    best, c = best_expected(history)[0], np.array([0.2])
    x = history.X[best]
    for _ in range(2):
        history.trial(x, c, float(newsvendor(x[None, :], c[None, :])[0]))
    again = best_expected(history)[0]
    assert again == np.flatnonzero((history.X == history.X[again]).all(axis=1))[0]
    assert (history.X == history.X[again]).all(axis=1).sum() == 3
