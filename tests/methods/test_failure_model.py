"""Learning from failed trials: regions that fail are left, and the probability of success is that of the rule."""

from __future__ import annotations

import numpy as np
import pytest

import raybo
from raybo.methods.parts import failure_model
from raybo.methods.parts.failure_model import success_at
from raybo.record.states import FAILURES
from raybo.searcher import Searcher

SPACE = {f"x{i}": raybo.Float(0.0, 1.0) for i in range(4)}


def run(is_bad, method="auto", n=30, seed=1, generation=2):
    """A study of a hill whose top is where trials fail, if anything fails by a rule."""
    searcher = Searcher(SPACE, method, seed=seed, trials=n, generation=generation)
    for i in range(n):
        trial = searcher.ask()
        x = np.array(list(trial.config.values()))
        if is_bad(x, i):
            searcher.fail(trial, "it failed")
        else:
            searcher.tell(trial, -float(((x - 0.75) ** 2).sum()))
    return searcher


def failed_after(searcher, first=12):
    return sum(trial.state in FAILURES for trial in searcher.trials[first:])


@pytest.mark.parametrize("method", ["auto", "ei", "gp-ucb"])
def test_a_region_that_always_fails_is_left(method):
    assert failed_after(run(lambda x, i: x[0] > 0.6, method, 30)) <= 9


def test_success_probability_matches_the_rule():
    """Feasibility by the model, checked on points that were not tried."""
    history = run(lambda x, i: x[0] + x[1] > 1.2, "sobol", 60).history
    X = np.random.default_rng(7).random((500, 4))
    likely = success_at(history, X)
    holds = X[:, 0] + X[:, 1] <= 1.2
    assert ((likely > 0.5) == holds).mean() > 0.85
    sure = (likely > 0.9) | (likely < 0.1)
    assert sure.any()
    assert ((likely > 0.5) == holds)[sure].mean() > 0.95


@pytest.mark.parametrize(
    ("failing", "known"), [(lambda i: i % 4 == 0, 250), (lambda i: i % 100 == 5, 20), (lambda i: i % 100, 980)]
)
def test_success_probability_subsamples_evenly(failing, known):
    """In studies of 2,000 trials, of which a quarter, a hundredth, or nearly all have failed."""
    history = run(lambda x, i: failing(i), "random", 2_000).history
    chosen = failure_model._known(history)
    assert len(chosen) == failure_model.MOST
    numbers = [number for number in chosen if history.records[number].has_failed]
    assert len(numbers) == pytest.approx(known, abs=1)
    assert max(chosen) - min(chosen) > 1_900
    ends = failure_model._ends(history)
    assert len(ends.y) == failure_model.MOST
    assert (ends.y < 0.0).sum() == len(numbers)


def test_where_everything_fails_the_design_goes_on():
    searcher = run(lambda x, i: True, "auto", 14)
    assert len({tuple(trial.config.values()) for trial in searcher.trials}) == 14
