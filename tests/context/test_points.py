from __future__ import annotations

import numpy as np
import pytest

from raybo.context import box, cover, grid, histogram
from raybo.space import Categorical, Float, Integer, Space
from tests.context.histories import floats


def stream(key=0):
    return np.random.default_rng(key)


def test_a_cover_is_even():
    points = cover(floats(2), 256, stream())
    assert points.shape == (256, 2)
    counts = np.histogram2d(*points.T, bins=4)[0]
    np.testing.assert_array_equal(counts, 16)
    assert cover(floats(1), 100, stream()).shape == (100, 1)


def test_a_cover_of_few_contexts_is_complete():
    cube = Space({"hour": Integer(0, 3), "host": Categorical(["a", "b"])}).cube
    assert len(cover(cube, 1024, stream())) == 8
    assert len(cover(cube, 5, stream())) <= 5


@pytest.mark.parametrize(("d", "least", "count"), [(1, 100, 100), (2, 100, 100), (4, 100, 256), (1, 1024, 1024)])
def test_published_grids(d, least, count):
    points = grid(floats(d), least)
    assert points.shape == (count, d)
    assert points.min() == 0.0
    assert points.max() == 1.0


def test_published_finer_grids():
    assert len(grid(floats(2), 1024)) == 32**2
    assert len(grid(floats(4), 1024)) == 6**4


def test_a_grid_has_the_values_that_can_occur():
    cube = Space({"host": Categorical(["a", "b", "c"]), "load": Float(0, 1), "hour": Integer(0, 23)}).cube
    points = grid(cube, 100)  # 5 an axis
    assert set(points[:, 0]) == set(cube.levels[0])
    assert len(np.unique(points[:, 1])) == 5
    np.testing.assert_array_equal(points, cube.snap(points))


def test_the_box_is_mean_and_standard_deviation():
    contexts = np.array([[0.2, 0.5], [0.4, 0.5], [0.9, 0.5]])
    points = box(contexts, floats(2), 1024, stream())
    mean, sd = contexts[:, 0].mean(), contexts[:, 0].std(ddof=1)
    assert points[:, 0].min() == pytest.approx(mean - sd, abs=2e-3)
    assert points[:, 0].max() == pytest.approx(mean + sd, abs=2e-3)
    np.testing.assert_allclose(points[:, 1], 0.5)


def test_the_box_stays_inside():
    points = box(np.array([[0.0], [0.0], [1.0]]), floats(1), 256, stream())
    assert points.min() >= 0.0
    assert points.max() <= 1.0
    np.testing.assert_allclose(box(np.array([[0.3]]), floats(1), 64, stream()), [[0.3]], atol=1e-12)
    assert len(box(np.empty((0, 1)), floats(1), 64, stream())) == 64


def test_the_box_holds_the_categories_met():
    cube = Space({"host": Categorical(["a", "b", "c"])}).cube
    levels = cube.levels[0]
    np.testing.assert_array_equal(box(levels[[0, 2, 2]][:, None], cube, 64, stream())[:, 0], levels[[0, 2]])


def test_histogram_counts_the_nearest_points():
    cube = Space({"load": Float(0, 1), "host": Categorical(["a", "b"])}).cube
    a, b = cube.levels[1]
    points = grid(cube, 4)
    p = histogram(np.array([[0.9, a], [0.8, a], [0.1, a], [0.9, b]]), points, cube)
    expected = {(0.0, a): 0.25, (1.0, a): 0.5, (0.0, b): 0.0, (1.0, b): 0.25}
    assert {tuple(point): share for point, share in zip(points, p, strict=True)} == expected
    np.testing.assert_array_equal(histogram(np.empty((0, 2)), points, cube), 0.25)


def test_histograms_keep_categories_farther_than_numbers():
    cube = Space({"load": Float(0, 1), "host": Categorical(["a", "b"])}).cube
    a, b = cube.levels[1]
    points = np.array([[0.9, b], [0.0, a]])
    np.testing.assert_array_equal(histogram(np.array([[0.9, a]]), points, cube), [0.0, 1.0])
