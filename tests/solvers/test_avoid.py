"""Points that must not be returned: pending ones, and on discrete domains those already evaluated."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.solvers import SOLVERS, solve
from raybo.space import Integer
from tests.solvers.problems import DOMAINS, Counted, Hill, cube, every_point


@pytest.mark.parametrize("name", SOLVERS)
def test_discrete_domains_are_used_up_point_by_point(name):
    """Thirty points, thirty different answers, the best first where the domain is searched completely."""
    domain = DOMAINS["few categories"]
    hill, taken = Hill(domain), np.empty((0, 3))
    for k in range(30):
        counted = Counted(hill)
        found = solve(name, counted, domain, np.random.default_rng(k), avoid=taken, size=4)
        assert found.is_apart
        assert found.evaluations == counted.rows
        assert not (taken == found.x).all(axis=1).any()
        taken = np.vstack([taken, found.x])
    values = hill.value(taken)
    if name != "random-grid":
        np.testing.assert_allclose(values, np.sort(hill.value(every_point(domain)))[::-1], atol=1e-12)
    over = solve(name, hill, domain, np.random.default_rng(0), avoid=taken, size=4)
    assert not over.is_apart
    assert (taken == over.x).all(axis=1).any()


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("apart", [0.0, 1e-3, 0.05, 0.3])
@pytest.mark.parametrize("domain", ["line", "box", "mixed"])
def test_the_distance_is_kept(name, apart, domain):
    """If the best point itself is pending: at least so far from it, and for a climber not much further.

    A climber steps aside by 1 to 3 times the distance, where a hill of curvature at most 10 loses little.
    """
    domain = DOMAINS[domain]
    hill = Hill(domain)
    best = solve("lbfgsb", hill, domain, np.random.default_rng(0), tolerance=1e-9)
    pending = np.vstack([best.x, np.zeros(domain.d)])
    found = solve(name, hill, domain, np.random.default_rng(1), avoid=pending, apart=apart, near=best.x[None])
    distances = np.sqrt(((found.x - pending) ** 2).sum(axis=1))
    assert found.is_apart
    assert np.all(distances >= apart)
    assert np.all(distances > 1e-7)
    if name != "random-grid":
        assert found.value > best.value - 5.0 * (2.0 * max(apart, 1e-3)) ** 2


def test_a_distance_for_each_point():
    domain = DOMAINS["line"]
    pending = np.array([[0.37], [0.9]])
    for apart in ([0.2, 0.0], [0.0, 0.6]):
        x = solve("lbfgsb", Hill(domain), domain, np.random.default_rng(0), avoid=pending, apart=np.array(apart)).x
        assert np.all(np.abs(x - pending[:, 0]) >= np.array(apart))


def test_a_gap_far_from_the_best_is_found():
    """Pending points leave room on a tenth of the line only, out of reach of a step aside."""
    domain = DOMAINS["line"]
    pending = np.array([[u] for u in np.linspace(0.0, 1.0, 51) if not 0.79 < u < 0.93])
    for name in SOLVERS:
        found = solve(
            name, Hill(domain), domain, np.random.default_rng(0), avoid=pending, apart=0.02, size=1, near=None
        )
        assert found.is_apart
        assert 0.79 < found.x[0] < 0.93


@pytest.mark.parametrize("name", ["random-grid", "lbfgsb"])
def test_a_large_discrete_domains_last_point_is_found(name):
    domain = cube(a=Integer(1, 65), b=Integer(1, 65))
    points = every_point(domain)
    avoid = np.delete(points, 3210, axis=0)
    found = solve(name, Hill(domain), domain, np.random.default_rng(0), avoid=avoid, size=5)
    assert found.is_apart
    np.testing.assert_array_equal(found.x, points[3210])


def test_fully_avoided_domain_gives_the_best_point():
    """Distances that cover the whole cube: the best point, and the admission."""
    domain = DOMAINS["line"]
    for name in SOLVERS:
        found = solve(name, Hill(domain), domain, np.random.default_rng(0), avoid=np.array([[0.5]]), apart=0.6)
        assert not found.is_apart
        assert found.value > -0.01


def test_without_points_to_avoid_nothing_changes():
    domain = DOMAINS["mixed"]
    for name in SOLVERS:
        free = solve(name, Hill(domain), domain, np.random.default_rng(3))
        empty = solve(name, Hill(domain), domain, np.random.default_rng(3), avoid=np.empty((0, 5)), apart=0.1)
        np.testing.assert_array_equal(free.x, empty.x)
        assert free.evaluations == empty.evaluations
