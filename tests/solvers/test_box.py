"""Searching near a point: boxes as domains, climbs from given starts, and many copies climbed as one."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.solvers import solve
from raybo.solvers.box import Box, Within
from raybo.solvers.from_starts import ascent_from, joint_ascent
from raybo.space import Categorical, Float, Integer, Space

MIXED = Space({"x": Float(0, 1), "n": Integer(1, 10), "c": Categorical(["a", "b", "c"]), "big": Integer(1, 10**6)}).cube
COARSE = Space({"n": Integer(1, 3), "x": Float(0, 1)}).cube


class Hill:
    """-|x - top|^2."""

    def __init__(self, top):
        self.top = np.asarray(top)

    def value(self, X):
        return -np.square(X - self.top).sum(axis=1)

    def value_and_gradient(self, X):
        return self.value(X), -2.0 * (X - self.top)


def test_boxes_stay_in_the_cube_with_whole_categories():
    box = Box.around(MIXED, MIXED.snap(np.full((1, 4), 0.95))[0], 0.2)
    assert box.low == pytest.approx([0.75, 0.75, 0.0, 0.75], abs=0.01)
    assert (box.high <= 1.0).all()
    assert len(box.levels[1]) == 3
    assert len(box.levels[2]) == 3
    assert box.levels[0] is None


def test_box_points_can_be_run_and_lie_inside():
    rng = np.random.default_rng(0)
    for _ in range(20):
        centre = MIXED.snap(rng.random((1, 4)))[0]
        box = Box.around(MIXED, centre, 0.15)
        X = box.outwards(box.snap(rng.random((30, 4))))
        np.testing.assert_allclose(MIXED.snap(X), X, atol=1e-12)
        np.testing.assert_array_equal(X[:, 2], MIXED.snap(X)[:, 2])  # categories to the last digit
        assert ((X >= box.low - 1e-12) & (X <= box.high + 1e-12)).all()
        np.testing.assert_allclose(box.snap(box.inwards(X)), box.inwards(X), atol=1e-12)


def test_a_coarse_axis_reaches_the_next_levels():
    box = Box.around(COARSE, np.array([0.5, 0.5]), 0.1)
    np.testing.assert_allclose(box.outwards(np.array([[0.0, 0.0], [1.0, 1.0]])), [[1 / 6, 0.4], [5 / 6, 0.6]])


def test_a_solver_finds_the_best_of_the_box():
    box = Box.around(COARSE, np.array([1 / 6, 0.2]), 0.1)
    found = solve("lbfgsb", Within(Hill([0.9, 0.9]), box), box, np.random.default_rng(0))
    np.testing.assert_allclose(box.outwards(found.x[None])[0], [0.5, 0.3], atol=1e-6)


def test_the_gradient_within_is_in_the_boxs_coordinates():
    box = Box.around(COARSE, np.array([0.5, 0.5]), 0.1)
    function, U, step = Within(Hill([0.9, 0.1]), box), np.array([[0.3, 0.6]]), 6e-6
    numeric = [(function.value(U + s) - function.value(U - s))[0] / (2 * step) for s in step * np.eye(2)]
    np.testing.assert_allclose(function.value_and_gradient(U)[1][0], numeric, rtol=1e-8)


def test_a_climb_never_ends_below_its_starts():
    cube = Space({f"x{i}": Float(0, 1) for i in range(3)}).cube
    starts = np.random.default_rng(1).random((5, 3))
    found, ends = ascent_from(starts, Hill([0.2, 1.3, 0.6]), cube, np.random.default_rng(0))
    np.testing.assert_allclose(found.x, [0.2, 1.0, 0.6], atol=1e-3)
    assert ends.shape == (5, 3)
    top = np.array([[0.2, 1.0, 0.6]])
    assert ascent_from(top, Hill([0.2, 1.3, 0.6]), cube, np.random.default_rng(0))[0].value >= Hill(
        [0.2, 1.3, 0.6]
    ).value(top)


def test_small_domains_are_searched_completely():
    start = MIXED.snap(np.full((1, 4), 0.5))
    target = MIXED.snap(np.array([[0.3, 0.05, 0.9, 0.2]]))[0]
    found, _ = ascent_from(start, Hill(target), MIXED, np.random.default_rng(0))
    np.testing.assert_allclose(found.x, target, atol=1e-3)
    small = Space({"n": Integer(1, 3), "c": Categorical(["a", "b"])}).cube
    found, _ = ascent_from(small.snap(np.zeros((1, 2))), Hill([0.9, 0.9]), small, np.random.default_rng(0))
    np.testing.assert_allclose(found.x, [5 / 6, 0.75])


def test_copies_climb_together_to_their_own_maxima():
    tops = np.array([[0.2, 0.3, 0.4], [0.9, 1.4, 0.1], [-0.5, 0.5, 0.5]])

    def function(U):
        return -np.square(U - tops).sum(axis=1), -2.0 * (U - tops)

    ends, values = joint_ascent(function, np.full((3, 3), 0.5), np.zeros(3), np.ones(3))
    np.testing.assert_allclose(ends, np.clip(tops, 0.0, 1.0), atol=1e-4)
    np.testing.assert_allclose(values, function(ends)[0])


def test_a_copy_ending_below_its_start_stays():
    def misleading(U):
        return -np.square(U).sum(axis=1), 2.0 * U  # the gradient has the wrong sign

    ends, values = joint_ascent(misleading, np.full((2, 2), 0.5), np.zeros(2), np.ones(2))
    np.testing.assert_array_equal(ends, np.full((2, 2), 0.5))
    np.testing.assert_allclose(values, -0.5)
