"""The size of an initial design, and that its points are recognised as such."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.methods import METHODS, needs_context
from raybo.methods.parts.initial_design import design_size
from raybo.record.events import Planned
from raybo.record.history import History
from raybo.searcher import Searcher
from raybo.space import Float, Space
from tests.methods.studies import coordinates, floats, hill


@pytest.mark.parametrize(
    ("d", "planned", "published", "size"),
    [
        (2, None, 20, 20),  # nobody says how long the study is
        (2, 100, 20, 20),
        (2, 40, 20, 10),  # a quarter
        (6, 16, 60, 7),  # d + 1, which shows every axis
        (20, 20, 200, 10),  # but never more than half
        (50, 60, 10, 30),
        (3, 1, 30, 1),
    ],
)
def test_short_studies_have_short_designs(d, planned, published, size):
    history = History(Space({f"x{i}": Float(0, 1) for i in range(d)}).cube)
    if planned is not None:
        history.apply(Planned(trials=planned))
    assert design_size(history, published, None) == size
    assert design_size(history, published, 4) == 4


DESIGNS = [*((name, {}) for name in METHODS if not needs_context(name)), ("auto", {"initial": 10})]


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize(("name", "options"), DESIGNS)
def test_design_points_promise_no_gain(name, options):
    """A study is not ended for small gains inside a design; the other proposals do say what they gain."""
    searcher = Searcher(floats(2), name, "max", seed=0, trials=40, **options)
    for x in np.random.default_rng(0).random((7, 2)):
        searcher.add({"x0": x[0], "x1": x[1]}, hill(x))
    has_gain = []
    for _ in range(10):
        asked = searcher.apply(searcher.propose(searcher.history, with_gain=True))
        trial = searcher.trials[asked.trial]
        if "design" in searcher.explain(trial):
            assert "gain" not in asked.data
        has_gain.append("gain" in asked.data)
        searcher.tell(trial, hill(coordinates(trial)))
    assert any(has_gain) is (name != "sobol")


def test_a_proposal_carries_a_gain_on_request_only():
    searcher = Searcher(floats(2), "random", "max", seed=0)
    for x in np.random.default_rng(0).random((7, 2)):
        searcher.add({"x0": x[0], "x1": x[1]}, hill(x))
    assert "gain" not in searcher.propose(searcher.history).data
    assert searcher.propose(searcher.history, with_gain=True).data["gain"] >= 0.0
