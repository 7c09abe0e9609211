"""Stories that methods make of their tags, their recommendations, and the fits behind proposals."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest

import raybo
from raybo.methods import METHODS, RETIRED, Method, kept, load, make
from raybo.methods.story import OverTrials, PathInSpace
from raybo.record.goals import Goals
from raybo.record.states import State
from raybo.record.trial import Declared, Record, Trial
from tests.methods.studies import run

NAMES = ["x0", "x1"]
KNOWN = {**METHODS, **{name: kept(name) for name in RETIRED}}  # homes by name


def trials(*tags):
    return [
        Trial(i, Record(np.zeros(2), each, State.FINISHED), Declared(None, None, Goals()))
        for i, each in enumerate(tags)
    ]


def test_who_tells_what():
    def those_with(part):
        return {name for name in KNOWN if getattr(load(KNOWN[name]), part) is not getattr(Method, part)}

    assert those_with("story") >= {
        *("uhe", "uhe-checked", "exp3-random", "portfolio", "a-gp-ucb", "wang-defreitas", "gp-ucb"),
        *("gibo", "mpd", "min-ucb", "la-min-ucb", "ars", "turbo"),
    }
    local = {"gibo", "mpd", "min-ucb", "la-min-ucb", "ars"}
    assert those_with("recommendation") >= local
    family = {name for name, home in KNOWN.items() if "unknown_hyperparameters" in home}
    assert those_with("fitted_hyperparameters") >= family


@pytest.mark.parametrize("name", [*METHODS, *map(kept, RETIRED)])
def test_trials_without_tags_tell_nothing(name):
    method = make(name)
    assert method.story([], NAMES) is None
    assert method.story(trials({}, {"origin": "added"}), NAMES) is None
    assert method.recommendation({}) is None
    assert method.fitted_hyperparameters({}) is None


def test_bandit_stories_show_arms_and_draws():
    even, sure = {"log_weights": [0.0, 0.0], "gamma": 0.5}, {"log_weights": [0.0, 50.0], "gamma": 0.5}
    story = make("uhe").story(trials({}, {**even, "arm": 1}, {**sure, "arm": 2}, {**sure, "arm": 2}), NAMES)
    likely, first, second = story.plots[0].series
    assert likely.trials == (1, 2, 3)
    assert likely.values == pytest.approx((0.5, 0.25, 0.25))
    assert (first.trials, second.trials) == ((1,), (2, 3))
    assert "1 of 3 times" in story.caption


def test_length_scales_are_told_with_their_bounds():
    tags = {"upper": [1.0, 0.5], "theta": [math.log(0.2), math.log(0.1), 0.0, 0.0]}
    story = make("wang-defreitas").story(trials(tags, tags), NAMES)
    assert [series.look for series in story.plots[0].series] == ["followed", "limit"] * 2
    assert [series.values[0] for series in story.plots[0].series] == pytest.approx([0.2, 1.0, 0.1, 0.5])
    divided = make("a-gp-ucb").story(trials({"lengthscale": [0.3, 0.4]}), NAMES)
    assert [series.values for series in divided.plots[0].series] == [(0.3,), (0.4,)]
    assert make("a-gp-ucb").story(trials({"lengthscale": [0.3]}, {"lengthscale": [0.3, math.nan]}), NAMES) is None


def test_a_centre_is_recommended_and_its_path_told():
    method = make("gibo")
    moves = trials({"centre": [0.5, 0.5]}, {"role": "explore"}, {"centre": [0.5, 0.5]}, {"centre": [0.8, 0.9]})
    path, steps = method.story(moves, NAMES).plots
    assert isinstance(path, PathInSpace)
    assert path.trials == (0, 3)
    np.testing.assert_array_equal(path.points, [[0.5, 0.5], [0.8, 0.9]])
    assert isinstance(steps, OverTrials)
    assert steps.series[0].values == pytest.approx((0.5,))
    assert method.story(moves[:3], NAMES) is None
    np.testing.assert_array_equal(method.recommendation(moves[3].tags), [0.8, 0.9])


def test_a_region_is_told_run_by_run():
    tags = [{"region": {"run": run, "length": length}} for run, length in ((1, 0.8), (1, 0.4), (2, 0.8))]
    first, second = make("turbo").story(trials(*tags), NAMES).plots[0].series
    assert (first.trials, first.values, first.name) == ((0, 1), (0.8, 0.4), "run 1")
    assert (second.trials, second.values, second.name) == ((2,), (0.8,), "run 2")


def test_inexactness_is_told_where_it_was_measured():
    searcher = run("gp-ucb", 1, 8, initial=2, diagnostics=2)
    told = [t.tags["inexactness"] for t in searcher.trials if "inexactness" in t.tags]
    eta, gap = (plot.series[0] for plot in searcher.method.story(searcher.trials, ["x0"]).plots)
    assert eta.values == tuple(each["eta"] for each in told)
    assert gap.values == tuple(each["gap"] for each in told)
    assert len(told) == 3


def test_stories_show_the_fits_in_use():
    method, theta = make("map"), [0.1, 0.2, 0.3]
    np.testing.assert_array_equal(method.fitted_hyperparameters({"theta": theta}), [theta])
    np.testing.assert_array_equal(
        method.fitted_hyperparameters({"theta": theta, "thetas": [theta, theta]}), [theta] * 2
    )
    used = method.fitted_hyperparameters({"theta": theta, "lengthscale": [0.5]})
    np.testing.assert_allclose(used, [[math.log(0.5), 0.2, 0.3]])


def test_only_methods_read_their_tags():
    """`tags["..."]` and `tags.get("...")` are for methods; others hand the whole of them on, or show it as it is."""
    root = Path(raybo.__file__).parent
    for file in [*(root / "reporting").glob("*.py"), *(root / "experiments").glob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            inner = node.value if isinstance(node, (ast.Subscript, ast.Attribute)) else None
            if isinstance(inner, ast.Attribute) and inner.attr == "tags":
                assert isinstance(node, ast.Attribute), f"{file.name}:{node.lineno}"
                assert node.attr == "items", f"{file.name}:{node.lineno}"
