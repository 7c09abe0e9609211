"""The contract of every solver, on every domain, with every function."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from raybo.solvers import SOLVERS, solve
from tests.solvers.problems import DOMAINS, Broken, Counted, Flat, Hill, Narrow, Nothing, Waves, every_point

FUNCTIONS = {
    "hill": Hill,
    "waves": Waves,
    "flat": lambda domain: Flat(),
    "broken": Broken,
    "nothing": lambda d: Nothing(),
}
EVERY = [(name, preset) for name in SOLVERS for preset in ("standard", "paper")]
CLIMBERS = [name for name in SOLVERS if name != "random-grid"]


@pytest.mark.parametrize(("name", "preset"), EVERY)
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_returned(name, preset, domain, function):
    domain, seed = DOMAINS[domain], 7
    counted = Counted(FUNCTIONS[function](domain))
    found = solve(name, counted, domain, np.random.default_rng(seed), preset=preset, size=60)
    assert found.evaluations == counted.rows
    assert found.seconds > 0.0
    assert 0 <= found.converged <= found.climbs
    assert found.is_apart
    # a point that can be run, with the value it has there
    assert found.x.shape == (domain.d,)
    assert found.x.dtype == np.float64
    np.testing.assert_array_equal(domain.snap(found.x[None])[0], found.x)
    value = counted.function.value(found.x[None])[0]
    assert found.value == (value if np.isfinite(value) else -np.inf)
    # the same stream, the same answer
    again = solve(name, counted.function, domain, np.random.default_rng(seed), preset=preset, size=60)
    np.testing.assert_array_equal(again.x, found.x)
    told, again_told = dataclasses.asdict(found), dataclasses.asdict(again)
    assert {key: told[key] for key in told if key not in ("x", "seconds")} == {
        key: again_told[key] for key in again_told if key not in ("x", "seconds")
    }


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_a_function_with_holes_has_a_finite_maximum(name, preset):
    for domain in ("box", "mixed", "many integers"):
        found = solve(name, Broken(DOMAINS[domain]), DOMAINS[domain], np.random.default_rng(0), preset=preset, size=200)
        assert np.isfinite(found.value), domain
        assert 0.2 <= found.x[0] <= 0.6


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_different_streams_look_elsewhere(name, preset):
    points = [solve(name, Flat(), DOMAINS["box"], np.random.default_rng(s), preset=preset, size=5).x for s in range(3)]
    assert len({tuple(x) for x in points}) == 3


@pytest.mark.parametrize("name", CLIMBERS)
@pytest.mark.parametrize("top", [0.37, 0.0, 1.0, 1.4, -0.3])
def test_climbers_find_hilltops_inside_and_on_faces(name, top):
    for d in (1, 3):
        domain = DOMAINS["line"] if d == 1 else DOMAINS["box"]
        hill = Hill(domain, np.full(domain.d, top))
        found = solve(name, hill, domain, np.random.default_rng(1))
        best = np.clip(hill.top, 0.0, 1.0)
        assert found.value >= hill.value(best[None])[0] - 1e-3
        np.testing.assert_allclose(found.x, best, atol=2e-2)


@pytest.mark.parametrize(("name", "preset"), [(name, preset) for name in CLIMBERS for preset in ("standard", "paper")])
@pytest.mark.parametrize("function", [Hill, Waves])
def test_small_discrete_domains_are_searched_completely(name, preset, function):
    domain = DOMAINS["few categories"]
    counted = Counted(function(domain))
    found = solve(name, counted, domain, np.random.default_rng(0), preset=preset)
    assert counted.rows == 30
    assert found.value == counted.function.value(every_point(domain)).max()


@pytest.mark.parametrize("name", CLIMBERS)
@pytest.mark.parametrize("domain", ["many categories", "many integers"])
def test_large_discrete_domains_of_separable_functions_are_solved(name, domain):
    domain = DOMAINS[domain]
    for function in (Hill(domain), Waves(domain)):
        found = solve(name, function, domain, np.random.default_rng(0))
        assert found.value == pytest.approx(function.value(every_point(domain)).max(), abs=1e-12)


@pytest.mark.parametrize("name", CLIMBERS)
def test_mixed_domains_are_solved_on_every_axis(name):
    """The best integer and category are found exactly, and the continuous axes closely."""
    domain = DOMAINS["mixed"]
    hill = Hill(domain)
    found = solve(name, hill, domain, np.random.default_rng(0))
    levels = domain.levels
    assert found.x[1] == levels[1][np.argmin(np.abs(levels[1] - 0.37))]
    assert found.x[2] == levels[2][np.argmin(np.cos(37.0 * levels[2]))]
    assert found.x[4] == levels[4][np.argmin(np.abs(levels[4] - 0.37))]
    np.testing.assert_allclose(found.x[[0, 3]], 0.37, atol=2e-2)


@pytest.mark.parametrize("name", CLIMBERS)
def test_points_near_are_started_from(name):
    """A hill on a plain, too narrow for uniform candidates to hit."""
    domain, near = DOMAINS["box"], np.full((1, 4), 0.82)
    assert solve(name, Narrow(), domain, np.random.default_rng(0), near=near).value > 0.99
    assert solve(name, Narrow(), domain, np.random.default_rng(0)).value == 0.0


def test_arguments_are_not_changed():
    domain, near, avoid = DOMAINS["mixed"], np.full((2, 5), 0.41), np.full((1, 5), 0.2)
    for name in SOLVERS:
        solve(name, Hill(domain), domain, np.random.default_rng(0), near=near, avoid=avoid, apart=0.1)
    np.testing.assert_array_equal(near, 0.41)
    np.testing.assert_array_equal(avoid, 0.2)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="random-grid, lbfgsb, nelder-mead, cg"):
        solve("newton", Flat(), DOMAINS["line"], np.random.default_rng(0))


@pytest.mark.parametrize("name", CLIMBERS)
def test_without_gradients_the_answer_is_the_same(name):
    domain = DOMAINS["mixed"]
    options = {} if name == "nelder-mead" else {"gradient": "fd"}

    class Values:
        value = Hill(domain).value

    found = solve(name, Values(), domain, np.random.default_rng(0), **options)
    assert found.value == pytest.approx(solve(name, Hill(domain), domain, np.random.default_rng(0)).value, abs=1e-3)
