"""ars: pairs of trials, the step against a plain form, and workers."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.common.errors import MethodError
from raybo.methods import make
from raybo.methods.many_dimensions.ars import delta
from raybo.searcher import Searcher
from tests.methods.studies import coordinates, floats, hill, run, run_workers


def test_directions_come_in_pairs_about_the_centre():
    searcher = run("ars", 3, 8, start="centre", directions=2)
    for plus, minus in zip(searcher.trials[::2], searcher.trials[1::2], strict=True):
        assert (plus.tags["side"], minus.tags["side"]) == (1, -1)
        assert plus.tags["direction"] == minus.tags["direction"]
    first, second = searcher.trials[:2]
    np.testing.assert_allclose(coordinates(first), 0.5 + 0.05 * delta(first.tags["direction"], 3))
    np.testing.assert_allclose(coordinates(first) + coordinates(second), 1.0)
    assert [t.tags["iteration"] for t in searcher.trials] == [1] * 4 + [2] * 4


@pytest.mark.parametrize("top", [None, 2])
def test_the_step_is_the_published_one(top):
    searcher = run("ars", 3, 9, start="centre", directions=4, top=top, alpha=0.1, nu=0.02)
    pairs = searcher.trials[:8]
    plus, minus = np.array([t.value for t in pairs[::2]]), np.array([t.value for t in pairs[1::2]])
    kept = np.argsort(-np.maximum(plus, minus))[: top or 4]
    sigma = np.std(np.concatenate([plus[kept], minus[kept]]))
    directions = np.array([delta(t.tags["direction"], 3) for t in pairs[::2]])
    step = 0.1 / (len(kept) * sigma) * ((plus - minus)[kept] @ directions[kept])
    np.testing.assert_allclose(searcher.trials[8].tags["centre"], 0.5 + step, rtol=1e-10)


def test_equal_returns_leave_the_centre_where_it_is():
    searcher = run("ars", 2, 5, lambda x: 7.0 + 0.0 * hill(x), directions=2, start="centre", restart=False)
    assert searcher.trials[4].tags["centre"] == [0.5, 0.5]
    assert searcher.trials[4].tags["iteration"] == 2


def test_ars_climbs():
    searcher = run("ars", 4, 200, start="centre", directions=2, nu=0.02, restart=False)
    assert hill(searcher.history.last_tag("centre")) > 0.2 * hill([0.5] * 4)


def test_late_results_of_pairs_are_dropped():
    searcher = Searcher(floats(2), "ars", "max", 0, None, initial=0, directions=1)
    a, b = searcher.ask(), searcher.ask()
    c, d = searcher.ask(), searcher.ask()  # a further direction of the same iteration
    assert {t.tags["iteration"] for t in (a, b, c, d)} == {1}
    assert c.tags["direction"] != a.tags["direction"]
    for trial in (c, d):
        searcher.tell(trial, hill(coordinates(trial)))
    following = searcher.ask()
    assert following.tags["iteration"] == 2
    searcher.tell(a, 1e6)
    searcher.tell(b, -1e6)
    searcher.tell(following, 0.0)
    assert searcher.ask().tags["iteration"] == 2


def test_failed_sides_count_as_the_worst():
    searcher = Searcher(floats(2), "ars", "max", 0, None, initial=0, directions=1, start="centre")
    plus, minus = searcher.ask(), searcher.ask()
    searcher.fail(plus, "unlucky")
    searcher.tell(minus, 0.0)
    assert searcher.ask().tags["centre"] == [0.5, 0.5]  # nothing is known to be better
    nothing = Searcher(floats(2), "ars", "max", 0, None, initial=0, directions=1)
    for _ in range(6):
        nothing.fail(nothing.ask(), "unlucky")
    assert nothing.ask().tags["iteration"] == 4


@pytest.mark.parametrize("workers", [1, 5, 32])
def test_workers_stay_inside_the_cube(workers):
    searcher = run_workers("ars", 3, 60, workers, fail={2, 9}, directions=2, nu=0.4, initial=0)
    X = np.array([coordinates(t) for t in searcher.trials])
    assert ((X >= 0.0) & (X <= 1.0)).all()
    assert searcher.trials[-1].tags["iteration"] >= 60 // (4 + 2 * workers)


def test_bad_options_are_refused():
    for options in ({"alpha": 0.0}, {"nu": -1.0}, {"directions": 0}, {"top": 0}):
        with pytest.raises(MethodError, match=next(iter(options))):
            make("ars", **options)
