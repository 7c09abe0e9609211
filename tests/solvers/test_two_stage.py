"""Two stages: what a coarse function finds, improved with the one that is meant."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.solvers import SOLVERS, solve
from raybo.solvers.two_stage import COMPARED, GRID, two_stages
from tests.solvers.problems import DOMAINS, Counted, Hill, Narrow, Waves, every_point

CLIMBERS = [name for name in SOLVERS if name != "random-grid"]


def rng(seed=0):
    return np.random.default_rng(seed)


def two_hills(domain):
    """A hill, and a coarse picture of it: as high, with its top somewhat aside."""
    return Hill(domain, np.full(domain.d, 0.45)), Hill(domain, np.full(domain.d, 0.37))


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("domain", DOMAINS)
def test_what_is_returned(name, domain):
    domain = DOMAINS[domain]
    coarse, meant = (Counted(function) for function in two_hills(domain))
    found = two_stages(name, coarse, meant, domain, rng(), size=60)
    np.testing.assert_array_equal(domain.snap(found.x[None])[0], found.x)
    assert found.value == meant.function.value(found.x[None])[0]
    assert found.evaluations == meant.rows
    assert found.is_apart
    again = two_stages(name, coarse, meant, domain, rng(), size=60)
    np.testing.assert_array_equal(again.x, found.x)


@pytest.mark.parametrize("name", CLIMBERS)
def test_the_meant_functions_top_is_climbed_to(name):
    domain = DOMAINS["box"]
    coarse, meant = two_hills(domain)
    found = two_stages(name, coarse, meant, domain, rng())
    np.testing.assert_allclose(found.x, meant.top, atol=1e-2)
    first = solve(name, coarse, domain, rng())
    np.testing.assert_allclose(first.x, coarse.top, atol=2e-2)
    assert found.value > meant.value(first.x[None])[0]


def test_the_meant_function_is_seldom_asked():
    domain = DOMAINS["box"]
    coarse, meant = (Counted(function) for function in two_hills(domain))
    two_stages("lbfgsb", coarse, meant, domain, rng())
    assert meant.rows < 20 < 500 < coarse.rows


def test_the_coarse_function_decides_discrete_axes():
    domain = DOMAINS["mixed"]
    coarse, meant = two_hills(domain)
    first = solve("lbfgsb", coarse, domain, rng()).x
    found = two_stages("lbfgsb", coarse, meant, domain, rng()).x
    np.testing.assert_array_equal(found[[1, 2, 4]], first[[1, 2, 4]])
    np.testing.assert_allclose(found[[0, 3]], 0.37, atol=1e-2)


def test_the_first_stages_point_stands_without_a_gain():
    domain = DOMAINS["few categories"]
    coarse, meant = two_hills(domain)
    found = two_stages("lbfgsb", coarse, meant, domain, rng())
    np.testing.assert_array_equal(found.x, solve("lbfgsb", coarse, domain, rng()).x)


@pytest.mark.parametrize("name", CLIMBERS)
def test_one_function_for_both_needs_one_stage(name):
    domain = DOMAINS["mixed"]
    waves = Counted(Waves(domain))
    found = two_stages(name, waves, waves, domain, rng())
    first = solve(name, waves.function, domain, rng())
    np.testing.assert_array_equal(found.x, first.x)
    assert found.evaluations == first.evaluations == waves.rows


def test_a_random_grids_best_few_are_compared():
    """Of the points that the coarse function likes best, the one that the meant function likes best; none is moved."""
    domain = DOMAINS["box"]
    coarse, meant = (Counted(function) for function in two_hills(domain))
    found = two_stages("random-grid", coarse, meant, domain, rng(3))
    grid = rng(3).random((GRID, domain.d))
    liked = grid[np.argsort(-coarse.function.value(grid), kind="stable")[:COMPARED]]
    np.testing.assert_array_equal(found.x, liked[np.argmax(meant.function.value(liked))])
    assert (coarse.rows, meant.rows) == (GRID, COMPARED)
    small = two_stages("random-grid", coarse, meant, domain, rng(3), size=20)
    assert small.value == meant.function.value(grid[:20]).max()


@pytest.mark.parametrize("name", SOLVERS)
def test_points_to_avoid_are_not_returned(name):
    domain = DOMAINS["line"]
    coarse, meant = two_hills(domain)
    found = two_stages(name, coarse, meant, domain, rng(), avoid=meant.top[None, :], apart=0.02)
    assert found.is_apart
    assert 0.02 <= abs(found.x[0] - 0.37) < 0.1


@pytest.mark.parametrize("name", CLIMBERS)
def test_the_first_stage_avoids_them_too(name):
    """Without axes to climb along the answer is the coarse function's best among the points that are left."""
    domain = DOMAINS["few categories"]
    coarse, points = Waves(domain), every_point(domain)
    order = np.argsort(-coarse.value(points), kind="stable")
    found = two_stages(name, coarse, Hill(domain), domain, rng(), avoid=points[order[:3]])
    np.testing.assert_array_equal(found.x, points[order[3]])


@pytest.mark.parametrize("name", CLIMBERS)
def test_all_points_taken_returns_the_coarse_functions(name):
    domain = DOMAINS["one point"]
    coarse, meant = two_hills(domain)
    found = two_stages(name, coarse, meant, domain, rng(), avoid=domain.snap(np.zeros((1, 1))))
    assert not found.is_apart


@pytest.mark.parametrize("name", CLIMBERS)
def test_the_first_stage_starts_near_too(name):
    domain, near, meant = DOMAINS["box"], np.full((1, 4), 0.82), Counted(Narrow())
    assert two_stages(name, Narrow(), meant, domain, rng(), near=near).value > 0.99
