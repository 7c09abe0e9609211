from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybo.solvers import grid_size, random_grid
from tests.solvers.problems import DOMAINS, Hill, Waves, box


class Recorded:
    def __init__(self, function):
        self.function, self.calls = function, []

    def value(self, X):
        self.calls.append(X.copy())
        return self.function.value(X)


@given(
    size=st.integers(1, 300), chunk=st.integers(1, 320), seed=st.integers(0, 2**32), name=st.sampled_from(list(DOMAINS))
)
def test_the_best_of_its_points_whatever_the_chunk(size, chunk, seed, name):
    domain = DOMAINS[name]
    function = Recorded(Waves(domain))
    found = random_grid(function, domain, np.random.default_rng(seed), size=size, chunk=chunk)
    grid = np.vstack(function.calls)
    assert len(grid) == size == found.evaluations
    assert len(function.calls) == math.ceil(size / chunk)
    np.testing.assert_array_equal(domain.snap(grid), grid)
    values = function.function.value(grid)
    assert found.value == values.max()
    np.testing.assert_array_equal(found.x, grid[np.argmax(values)])


def test_more_points_never_lower_the_value():
    domain = DOMAINS["mixed"]
    values = [random_grid(Hill(domain), domain, np.random.default_rng(0), size=n).value for n in (1, 3, 10, 100, 1000)]
    assert np.all(np.diff(values) >= 0.0)
    assert values[-1] > values[0]


def test_a_streams_grids_differ_and_repeat():
    domain, function = DOMAINS["box"], Recorded(Waves(DOMAINS["box"]))
    for _ in range(2):
        rng = np.random.default_rng(5)
        for _ in range(3):
            random_grid(function, domain, rng, size=40)
    first, second = function.calls[:3], function.calls[3:]
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert len({tuple(grid[0]) for grid in first}) == 3


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("n", "d", "distance"), [(100, 1, 0.005), (100, 2, 0.05), (10_000, 2, 0.005), (10_000, 3, 0.025713)]
)
def test_distance_of_the_nearest_point(n, d, distance):
    """Gamma(1 + 1/d) (n V_d)^(-1/d) on average for uniform points, with 6,400,000 / n grids: within 5 standard errors.

    False alarms 6e-7 each; the standard deviation is at most 1.01 times the mean, and at d = 1 that of an exponential.
    """
    volume = math.pi ** (d / 2) / math.gamma(d / 2 + 1)
    assert math.gamma(1 + 1 / d) * (n * volume) ** (-1 / d) == pytest.approx(distance, rel=1e-3)
    repeats = 6_400_000 // n if n < 1000 else 640

    class Nearness:
        def value(self, X):
            return -np.sqrt(((X - 0.5) ** 2).sum(axis=1))

    rng, domain = np.random.default_rng(0), box(d)
    nearest = [-random_grid(Nearness(), domain, rng, size=n, chunk=n).value for _ in range(min(repeats, 4000))]
    error = 5.0 * np.std(nearest) / math.sqrt(len(nearest))
    assert abs(np.mean(nearest) - distance) < max(error, 0.02 * distance)


def test_levels_are_drawn_uniformly():
    """A chi-squared statistic of 12 integers among 12,000 points, below its 1 - 1e-6 quantile, 48.9."""
    domain, function = DOMAINS["mixed"], Recorded(Waves(DOMAINS["mixed"]))
    random_grid(function, domain, np.random.default_rng(0), size=12_000)
    counts = np.unique(np.vstack(function.calls)[:, 1], return_counts=True)[1]
    assert len(counts) == 12
    assert ((counts - 1000.0) ** 2 / 1000.0).sum() < 48.9


def test_random_grids_have_the_published_sizes():
    assert [grid_size(t) for t in (1, 2, 80)] == [100, 200, 8000]
    assert [grid_size(t, 100, power=0.0) for t in (1, 2, 80)] == [100, 100, 100]
    assert [grid_size(t, 3, power=2.0) for t in (1, 2, 5)] == [3, 12, 75]
    for wrong in ({"t": 0}, {"t": 1, "points": 0}):
        with pytest.raises(ValueError, match="counted from 1"):
            grid_size(**wrong)
    with pytest.raises(ValueError, match="at least one point"):
        random_grid(Waves(DOMAINS["line"]), DOMAINS["line"], np.random.default_rng(0), size=0)


def test_a_joint_draw_is_asked_once():
    class Joint:
        is_joint = True
        calls = 0

        def value(self, X):
            self.calls += 1
            return X[:, 0]

    draw = Joint()
    random_grid(draw, DOMAINS["box"], np.random.default_rng(0), size=1000, chunk=10)
    assert draw.calls == 1
