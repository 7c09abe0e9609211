"""Problems with several metrics and constraints: published values, and the real jobs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raybo.record.pareto import hypervolume
from trials.constrained import CONSTRAINED, gramacy
from trials.fast_boosting import fast_boosting
from trials.several_goals import FRONTS, zdt1
from trials.small_forest import small_forest


@pytest.mark.parametrize(
    ("name", "front"),
    [
        ("zdt1", lambda u: [u, *[0.0] * 5]),
        ("zdt2", lambda u: [u, *[0.0] * 5]),
        ("dtlz2", lambda u: [u, *[0.5] * 5]),
    ],
)
def test_best_hypervolume_matches_the_known_front(name, front):
    problem = FRONTS[name]
    Y = -np.array([problem.function(np.array(front(u))) for u in np.linspace(0.0, 1.0, 3_000)])
    assert hypervolume(Y, -np.array(problem.reference)) == pytest.approx(problem.best, abs=2e-3)


def test_a_sphere_is_the_front_of_dtlz2():
    problem, rng = FRONTS["dtlz2_of_3"], np.random.default_rng(0)
    for u in rng.random((20, 2)):
        assert np.linalg.norm(problem.function(np.array([*u, *[0.5] * 4]))) == pytest.approx(1.0)


def test_vehicle_values_match_the_published_polynomials():
    """All thickness 1 mm and 3 mm, by hand from the coefficients."""
    low, high = (FRONTS["vehicle_safety"].function(np.full(5, u)) for u in (0.0, 1.0))
    assert low == pytest.approx([1661.7078225, 8.3046, 0.0708], abs=1e-9)
    assert high[0] == pytest.approx(1704.5588675, abs=1e-9)


def test_constrained_optima_are_feasible():
    at = {
        "gramacy": (0.19541, 0.40437),
        "gardner1": (1.5 * math.pi, 0.0),
        "gardner2": (1.5 * math.pi, 1.2532359),
        "pressure_vessel": (0.8125, 0.4375, 42.098445, 176.6366),
        "tension_string": (0.051689061, 0.356717736, 11.28896),
    }
    for name, problem in CONSTRAINED.items():
        value, *numbers = problem.function(*at[name])
        assert value == pytest.approx(problem.best, rel=2e-3)
        assert max(numbers) < 2e-2 * max(1.0, abs(value)), name


def test_several_metric_jobs_are_objectives():
    assert zdt1({f"x{i + 1}": 0.5 for i in range(6)}) == pytest.approx({"f1": 0.5, "f2": 3.8416876})
    assert set(gramacy({"x": 0.2, "y": 0.4})) == {"value", "c1", "c2"}
    assert zdt1.goals.metrics == {"f1": "min", "f2": "min"}


@pytest.mark.slow
def test_more_trees_take_longer_and_more_room():
    config = {"max_depth": 3, "learning_rate": 0.1, "subsample": 0.8, "max_features": "sqrt"}
    few, many = (fast_boosting({**config, "n_estimators": n}) for n in (3, 300))
    assert few["milliseconds"] < many["milliseconds"]
    assert 0.8 < few["accuracy"] < many["accuracy"]
    forest = {"max_depth": 8, "min_samples_leaf": 2, "max_features": 0.1, "bootstrap": True}
    small, large = (small_forest({**forest, "n_estimators": n}) for n in (3, 40))
    assert small["kilobytes"] < 300 < large["kilobytes"]
    assert small["accuracy"] < large["accuracy"]
