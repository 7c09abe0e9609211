"""Running out of memory is learnt as a constraint: the search keeps away from where it happens."""

from __future__ import annotations

import numpy as np
import pytest

import raybo
from raybo.methods.default.auto import Auto
from raybo.methods.parts.memory_limit import with_memory_limit
from raybo.record.events import Failed

N = 30


def searched(method, needs=lambda x, y: x + 0.3 * y, cause="memory", seed=0, n=N, **declared):
    """A study whose loss falls towards where memory is short, and the trials that ran out of it."""
    space = {"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}
    searcher = raybo.Searcher(space, method, mode="min", seed=seed, trials=n, **declared)
    lacking = []
    for number in range(n):
        trial = searcher.ask()
        x, y = trial.config["x"], trial.config["y"]
        if needs(x, y) > 0.7:
            searcher.apply(Failed(number, reason="out of memory", cause=cause))
            lacking.append(number)
        elif declared:
            searcher.tell(trial, {"loss": (1 - x) ** 2 + (y - 0.5) ** 2, "size": x})
        else:
            searcher.tell(trial, (1 - x) ** 2 + (y - 0.5) ** 2)
    return searcher, lacking


@pytest.mark.parametrize("method", ["auto", "ei", "gp-ucb"])
def test_proposals_leave_where_memory_ran_out(method):
    found, late = [], []
    for seed in range(2):
        searcher, lacking = searched(method, seed=seed)
        found.append(searcher.best.value)
        late.append(sum(number >= N // 2 for number in lacking))
        told = [trial for trial in searcher.trials if "feasible" in trial.tags]
        assert told  # it says how likely its memory suffices
    assert max(late) <= N // 4  # half of them would be, beyond the edge to which the loss pulls
    assert min(found) < 0.3


def test_the_probability_falls_where_memory_ran_out():
    searcher, _ = searched("sobol", n=20)
    limited = with_memory_limit(searcher.history)
    assert not limited.goals.is_plain
    assert limited.margins.shape == (len(limited.y), 1)
    assert (limited.margins == 1).all()
    rng = np.random.default_rng(0)
    for _ in range(3):
        x = Auto().propose(searcher.history, rng).x
        assert x[0] + 0.3 * x[1] < 0.8


def test_other_failures_and_constraints_stay_as_they_are():
    searcher, lacking = searched("sobol", cause=None, n=10)
    assert lacking
    assert with_memory_limit(searcher.history) is searcher.history
    searcher, lacking = searched("sobol", n=12, metrics={"loss": "min"}, constraints={"size": "<= 0.5"})
    limited = with_memory_limit(searcher.history)
    assert len(limited.goals.constraints) == 2
    assert limited.margins.shape == (12 - len(lacking), 2)
    np.testing.assert_array_equal(limited.margins[:, :1], searcher.history.margins)
    assert limited.records[lacking[0]].early.tolist()[1] == -1.0
