"""Fronts: what no point dominates, the volume that is dominated, and the boxes that are not."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.record.pareto import cells, hypervolume, non_dominated


def points(k, n=14, seed=0, steps=None):
    Y = np.random.default_rng(seed).random((n, k))
    return Y if steps is None else np.round(Y * steps) / steps  # with ties


def by_inclusion_and_exclusion(Y, reference):
    """The volume of the union of the boxes between the reference and each row."""
    sizes = np.maximum(Y - reference, 0.0)
    total = 0.0
    for mask in range(1, 1 << len(sizes)):
        rows = [i for i in range(len(sizes)) if mask >> i & 1]
        total += (-1) ** (len(rows) + 1) * sizes[rows].min(axis=0).prod()
    return total


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("steps", [None, 4])
def test_hypervolume_is_that_of_the_union_of_boxes(k, steps):
    for seed in range(5):
        Y = points(k, n=9, seed=seed, steps=steps)
        reference = np.full(k, 0.15)
        assert hypervolume(Y, reference) == pytest.approx(by_inclusion_and_exclusion(Y, reference), abs=1e-12)


def test_a_grid_has_the_hypervolume_of_its_stairs():
    assert hypervolume(np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 3.0], [0.5, 0.5]]), np.zeros(2)) == 6.0


@pytest.mark.parametrize("k", [2, 3])
def test_hypervolume_of_values_of_any_size(k):
    """Differences and products beyond the largest float are no more than it, and those within it are exact."""
    largest = float(np.finfo(np.float64).max)
    Y = largest * np.vstack([2.0 * np.eye(k) - 1.0, np.full(k, 0.5)])
    assert hypervolume(np.nextafter(Y, 0.0), np.full(k, -largest)) == largest
    scales = np.array([2.0**600, 2.0**500, 2.0**-900])[:k]
    Y, reference = points(k), np.full(k, 0.15)
    assert hypervolume(Y * scales / 2.0**80, reference * scales / 2.0**80) == pytest.approx(
        hypervolume(Y, reference) * scales.prod(initial=2.0 ** (-80 * k)), rel=1e-12
    )


@pytest.mark.parametrize("k", [2, 3, 4])
def test_points_below_the_reference_add_no_volume(k):
    Y = points(k)
    beyond = np.vstack([Y, np.concatenate([[5.0], np.full(k - 1, -1.0)])])
    assert hypervolume(beyond, np.zeros(k)) == pytest.approx(hypervolume(Y, np.zeros(k)))
    assert hypervolume(np.full((1, k), -1.0), np.zeros(k)) == 0.0
    assert hypervolume(np.empty((0, k)), np.zeros(k)) == 0.0


@pytest.mark.parametrize("steps", [None, 3])
def test_non_dominated_is_what_a_loop_finds(steps):
    Y = points(3, n=60, steps=steps)
    slow = [not any((other >= y).all() and (other > y).any() for other in Y) for y in Y]
    assert non_dominated(Y).tolist() == slow


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("steps", [None, 3])
def test_cells_are_what_is_not_dominated(k, steps):
    """Random points above the reference lie in exactly one cell where they are not dominated, and in none else."""
    Y, reference = points(k, steps=steps), np.full(k, 0.1)
    lower, upper = cells(Y, reference)
    U = reference + 1.4 * np.random.default_rng(9).random((3_000, k))
    inside = ((U[:, None] >= lower) & (U[:, None] < upper)).all(axis=2).sum(axis=1)
    dominated = (Y[None] >= U[:, None]).all(axis=2).any(axis=1)
    assert set(inside[~dominated]) == {1}
    assert not inside[dominated].any()


def test_an_empty_front_gives_one_cell():
    lower, upper = cells(np.empty((0, 3)), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(lower, [[1.0, 2.0, 3.0]])
    assert np.isinf(upper).all()
