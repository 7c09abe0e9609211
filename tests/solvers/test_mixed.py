from __future__ import annotations

import numpy as np
import pytest

from raybo.solvers import multistart_ascent
from raybo.solvers.domain import all_points, climbable, continuous, count_points, one_axis_moves
from raybo.solvers.mixed import climb_within_levels, is_small, polish, search_axes
from raybo.solvers.solution import Search
from raybo.solvers.starts import choose_starts, raw_candidates
from raybo.space import Categorical, Float, Integer
from tests.solvers.problems import DOMAINS, Hill, cube, every_point


class Coupled:
    """Integers that must move together with categories, and a continuous axis whose best place depends on both."""

    def value(self, X):
        away = X[:, 1] - X[:, 0]
        return -(away**2) - 2.0 * (X[:, 0] - 0.6) ** 2 - (X[:, 2] - 0.5 * X[:, 0]) ** 2

    def value_and_gradient(self, X):
        gradient = np.zeros_like(X)
        away, off = X[:, 1] - X[:, 0], X[:, 2] - 0.5 * X[:, 0]
        gradient[:, 0] = 2.0 * away - 4.0 * (X[:, 0] - 0.6) + off
        gradient[:, 1], gradient[:, 2] = -2.0 * away, -2.0 * off
        return self.value(X), gradient


def test_what_a_domain_is_made_of():
    mixed = DOMAINS["mixed"]
    np.testing.assert_array_equal(climbable(mixed), [True, True, False, True, True])
    np.testing.assert_array_equal(continuous(mixed), [True, False, False, True, False])
    np.testing.assert_array_equal(climbable(DOMAINS["one value on an axis"]), [False, True, True])
    assert count_points(mixed) == np.inf
    few = DOMAINS["few categories"]
    assert count_points(few) == 30
    assert is_small(few)
    assert not is_small(DOMAINS["many integers"])
    np.testing.assert_array_equal(all_points(few), every_point(few))


def test_moves_visit_all_levels_if_few():
    domain = cube(a=Integer(1, 5), b=Float(0, 1), c=Categorical([1, 2, 3]), only=Categorical([0]))
    x = domain.snap(np.array([[0.1, 0.3, 0.5, 0.5]]))
    moves = one_axis_moves(domain, np.vstack([x, x]), np.random.default_rng(0))
    assert moves.shape == (2, 8, 4)
    assert np.all((moves[0] != x).sum(axis=1) <= 1)
    np.testing.assert_array_equal(moves[0][:5, 0], domain.levels[0])
    np.testing.assert_array_equal(moves[0][5:, 2], domain.levels[2])


def test_moves_among_many_levels_include_the_neighbours():
    domain = cube(a=Integer(1, 400), b=Categorical(list(range(50))))
    levels = domain.levels[0]
    for here in (0, 7, 399):
        x = np.array([[levels[here], domain.levels[1][3]]])
        moves = one_axis_moves(domain, x, np.random.default_rng(here))[0]
        tried = set(moves[:24, 0])
        neighbours = [i for i in range(here - 4, here + 5) if i != here and 0 <= i < 400]
        assert tried.issuperset(levels[neighbours])
        assert len(tried) > 12
        assert len(set(moves[24:, 1])) > 12
        np.testing.assert_array_equal(domain.snap(moves), moves)


def test_no_moves_without_discrete_axes():
    assert one_axis_moves(DOMAINS["box"], np.zeros((3, 4)), np.random.default_rng(0)).shape == (3, 0, 4)


def test_axes_are_searched_until_none_gains():
    domain = cube(a=Integer(1, 12), b=Integer(1, 12), c=Integer(1, 12))
    function, rng = Coupled(), np.random.default_rng(0)
    search = Search(function, domain)
    X, values = search.try_points(rng.random((20, 3)))
    ends, reached = search_axes(search, X, values, rng)
    np.testing.assert_allclose(function.value(ends), reached)
    assert np.all(reached >= values)
    moves = one_axis_moves(domain, ends, rng)
    assert np.all(function.value(moves.reshape(-1, 3)).reshape(20, -1).max(axis=1) <= reached)
    np.testing.assert_array_equal(search.try_points(X)[1], values)  # the given rows are unchanged


def test_separable_functions_need_one_sweep():
    domain = DOMAINS["many categories"]
    hill, rng = Hill(domain), np.random.default_rng(0)
    search = Search(hill, domain)
    _, reached = search_axes(search, *search.try_points(rng.random((3, 7))), rng, sweeps=1)
    np.testing.assert_allclose(reached, hill.value(every_point(domain)).max())


def test_polish_moves_both_kinds_of_axes():
    domain = cube(a=Integer(1, 30), b=Integer(1, 8), c=Float(0, 1))
    function, rng = Coupled(), np.random.default_rng(1)
    search = Search(function, domain)
    X, values = search.try_points(rng.random((6, 3)))
    ends, reached = polish(search, X, values, rng, turns=10, tolerance=1e-9)
    np.testing.assert_array_equal(domain.snap(ends), ends)
    np.testing.assert_allclose(ends[:, 2], 0.5 * ends[:, 0], atol=1e-3)
    discrete = all_points(cube(a=Integer(1, 30), b=Integer(1, 8)))
    best = function.value(np.column_stack([discrete, 0.5 * discrete[:, 0]])).max()
    assert reached.max() == pytest.approx(best, abs=1e-6)
    assert search.solution(rng).value == reached.max()


def test_raw_candidates():
    domain, rng = DOMAINS["mixed"], np.random.default_rng(0)
    assert raw_candidates(domain, rng, 30).shape == (30, 5)
    near = domain.snap(np.array([[0.5, 0.5, 0.5, 0.5, 0.5], [0.9, 0.1, 0.1, 0.02, 0.9]]))
    candidates = raw_candidates(domain, rng, 30, near, perturbations=4000)
    assert candidates.shape == (4032, 5)
    np.testing.assert_array_equal(candidates[30:32], near)
    assert np.all((candidates >= 0.0) & (candidates <= 1.0))
    moved = candidates[32:] - np.tile(near, (2000, 1))
    assert np.std(moved[:, 0]) == pytest.approx(0.05, rel=0.1)
    assert np.mean(moved[:, 2] != 0.0) == pytest.approx(0.2, abs=0.04)  # a category is redrawn on one axis in d


def test_starts_do_not_all_lie_in_one_basin():
    X = np.vstack([np.full((10, 2), 0.2) + 0.001 * np.arange(10)[:, None], [[0.8, 0.8]], [[0.2, 0.8]]])
    values = np.concatenate([10.0 + np.arange(10), [5.0, 1.0]])
    assert choose_starts(X, values, 3) == [9, 10, 11]
    assert choose_starts(X, values, 4) == [9, 10, 11, 8]
    assert choose_starts(X, values, 3, distance=0.0) == [9, 8, 7]
    assert choose_starts(X[:2], values[:2], 4) == [1, 0]


class Ridge:
    """A function that rises along a nearly straight edge in the continuous axes and falls steeply on both sides of it.

    Every level of the first axis has an edge of its own; that of the level below the middle one is the highest.
    """

    WIDTH = 3e-5

    def __init__(self, levels):
        self.middle, self.step = levels[80], levels[1] - levels[0]

    def point(self, along):
        return np.array([self.middle, 0.2 + along * (0.3 + 0.01 * along) + 0.5 * self.middle, along])

    def value(self, X):
        return self.value_and_gradient(X)[0]

    def value_and_gradient(self, X):
        a, r, along = X.T
        off = (r - 0.2 - along * (0.3 + 0.01 * along) - 0.5 * a) / self.WIDTH
        levels = (a - self.middle + self.step) / self.step
        rise = np.where(along < 0.9, 5.0, -5.0)
        value = rise * (along - 0.9) - 0.5 * off**2 - 0.3 * levels**2
        slope = off / self.WIDTH
        steps = [0.5 * slope - 0.6 * levels / self.step, -slope, rise + (0.3 + 0.02 * along) * slope]
        return value, np.stack(steps, axis=1)


def test_a_narrow_ridge_is_climbed_at_fixed_levels():
    domain = cube(a=Float(0.0, 16.0, step=0.1), r=Float(0, 1), along=Float(0, 1))
    ridge = Ridge(domain.levels[0])
    near = ridge.point(0.2)[None, :]
    (start,) = ridge.value(near)
    for seed in range(5):
        plain, held = (
            multistart_ascent(ridge, domain, np.random.default_rng(seed), near=near, hold=hold).value
            for hold in (False, True)
        )
        assert plain == start  # what the climbs within levels are for
        assert held > -0.7


def test_climbs_within_levels_change_one_axis_at_most():
    domain = DOMAINS["mixed"]
    rng = np.random.default_rng(0)
    near = domain.snap(rng.random((3, domain.d)))
    search = Search(Hill(domain), domain)
    X, values = climb_within_levels(search, near, rng, rounds=5, tolerance=1e-4)
    np.testing.assert_allclose(search.function.value(X), values)
    np.testing.assert_array_equal(domain.snap(X), X)
    for x in X:
        changes = []
        for axis in np.flatnonzero(~continuous(domain)):
            levels = domain.levels[axis]
            index = np.searchsorted(levels, near[:, axis])
            away = np.abs(np.searchsorted(levels, x[axis]) - index)
            changes.append(np.where(domain.categorical[axis], np.minimum(away, 1), away))
        assert np.min(np.sum(changes, axis=0)) <= 1


def test_no_climbs_within_levels_without_continuous_axes():
    domain = DOMAINS["many integers"]
    near = domain.snap(np.full((1, domain.d), 0.5))
    rng = np.random.default_rng(0)
    X, _ = climb_within_levels(Search(Hill(domain), domain), near, rng, rounds=5, tolerance=1e-4)
    assert len(X) == 0
    assert multistart_ascent(Hill(domain), domain, rng, near=near, hold=True).climbs > 0
