"""Cost in the proposals: only under a budget, only where trials differ, and a pure function of the history."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import raybo
from raybo.methods.parts.trial_costs import OF, TAKES, TrialCosts, cost_in_words, costs_that_matter, whole_run
from raybo.record.events import Planned, Pruned, Reported, Retried, Told
from raybo.searcher import Searcher

SPACE = {"rounds": raybo.Integer(10, 1000, log=True), "rate": raybo.Float(0, 1)}


def run(method="auto", *, budget=400.0, n=14, cost=lambda config: config["rounds"] / 10, seed=0, **arguments):
    """A study whose clock is simulated; the value hardly depends on what costs."""
    searcher = Searcher(SPACE, method, seed=seed, **arguments)
    if budget is not None:
        searcher.apply(Planned(budget=budget))
    clock = 0.0
    for _ in range(n):
        asked = searcher.apply(searcher.propose(searcher.history, spent=None if budget is None else clock))
        trial = searcher.trials[asked.trial]
        seconds = cost(trial.config)
        clock += seconds
        y = -((trial.config["rate"] - 0.3) ** 2)
        metrics = {"memory": trial.config["rate"], "other": trial.config["rate"]}
        searcher.apply(Told(trial.number, value=y, seconds=seconds, metrics=metrics))
    return searcher


def seconds_of(searcher):
    return np.array([trial.seconds for trial in searcher.trials[4:]])


GOALS = [
    {},
    {"metrics": {"y": "max", "other": "min"}},
    {"metric": "y", "constraints": {"memory": "<= 0.9"}},
]


@pytest.mark.parametrize("goals", GOALS, ids=["one", "two metrics", "a constraint"])
@pytest.mark.parametrize("method", ["auto", "ei"])
def test_cheap_points_come_first(method, goals):
    more = {"initial": 4}
    dear, cheap = (run(method, budget=budget, n=10, **more, **goals) for budget in (None, 1e6))
    assert np.median(seconds_of(cheap)) < 0.5 * np.median(seconds_of(dear))
    assert any(TAKES in trial.tags for trial in cheap.trials)


def test_without_a_budget_nothing_changes():
    free = run(budget=None)
    assert all(TAKES not in trial.tags for trial in free.trials)
    equal = run(cost=lambda config: 5.0)
    assert [trial.config for trial in equal.trials] == [trial.config for trial in free.trials]


def test_cost_cools_as_the_budget_is_used():
    def asks_for(share):
        searcher = run(n=8)
        asked = searcher.propose(searcher.history, spent=share * 400.0)
        return asked.tags[TAKES][0]

    searcher = run(n=8, budget=1e6)
    history = searcher.history
    assert history.with_spent(5e5).used_share == 0.5
    assert asks_for(0.99) <= 8.0  # of what can finish in the four seconds that are left


def test_the_last_points_can_still_finish():
    searcher = run(n=10, cost=lambda config: 4000 / config["rounds"], budget=4000.0)
    takes = [searcher.propose(searcher.history, spent=4000.0 - left).tags[TAKES][0] for left in (3000.0, 8.0)]
    assert takes[1] < 10.0


def test_steps_of_a_pruned_trial_make_a_whole_run():
    searcher = Searcher(SPACE, "random", seed=0, steps=10)
    searcher.ask(2)
    searcher.apply(Reported(0, step=2, value=0.5))
    searcher.apply(Pruned(0, reason="", rule="user", seconds=3.0))
    searcher.apply(Told(1, value=1.0, seconds=8.0))
    assert [whole_run(record, 10) for record in searcher.history.records] == [15.0, 8.0]
    assert whole_run(replace(searcher.history.records[0], seconds=None), 10) is None
    assert TrialCosts.of(searcher.history) is None


def test_a_trial_that_ended_early_took_what_it_took():
    searcher = Searcher(SPACE, "random", seed=0, steps=10)
    searcher.ask(3)
    searcher.apply(Reported(0, step=2, value=0.5))
    searcher.apply(Told(0, value=0.5, seconds=3.0))
    for trial, checkpoint in ((1, "9"), (2, None)):  # their workers were lost after nine steps
        searcher.apply(Reported(trial, step=9, value=0.5, seconds=9.0, checkpoint=checkpoint))
        searcher.apply(Retried(trial, reason="its worker was lost", attempt=2))
        searcher.apply(Reported(trial, step=10, value=0.5, seconds=1.0 if checkpoint else 10.0, attempt=2))
        searcher.apply(Told(trial, value=0.5, seconds=1.0 if checkpoint else 10.0, attempt=2))
    assert [whole_run(record, 10) for record in searcher.history.records] == [3.0, 10.0, 10.0]


def test_money_counts_every_process():
    searcher = Searcher(SPACE, "random", seed=0)
    searcher.apply(Planned(trials=None, budget=100.0, price=3600.0))
    for trial, processes in enumerate((None, 4, 2)):
        searcher.ask()
        searcher.apply(Told(trial, value=1.0, seconds=2.0, processes=processes))
    assert [whole_run(record, None, None, True) for record in searcher.history.records] == [2.0, 8.0, 4.0]
    costs = TrialCosts.of(searcher.history)
    assert np.exp(np.log(costs.seconds).mean()) == pytest.approx(4.0)


def test_cost_is_not_said_before_enough_trials_tell_it():
    numbers = [trial.number for trial in run(n=8).trials if TAKES in trial.tags]
    assert numbers == [4, 5, 6, 7]  # of two parameters, so that four trials have ended before the first
    assert costs_that_matter(run(n=3).history) is not None  # by which points are chosen before


def test_cost_is_said_in_words():
    assert cost_in_words({TAKES: [6.0, 12.0]}) == "expected to take 6 s, 2 times as quick as the median trial"
    assert cost_in_words({TAKES: [24.0, 8.0]}) == "expected to take 24 s, 3 times as long as the median trial"
    assert cost_in_words({TAKES: [8.0, 8.1]}) == "expected to take 8 s, as others do"
    assert (
        cost_in_words({TAKES: [2.4e5, 8.0]}) == "expected to take 2.78 days, 30,000 times as long as the median trial"
    )
    assert cost_in_words({TAKES: [31_416.0, 8e4], OF: "tokens"}) == (
        "expected to take 31,400 tokens, 2.5 times as cheap as the median trial"
    )
    assert cost_in_words({}) == ""
    searcher = run(n=8)
    assert "; expected to take" in searcher.explain(searcher.trials[-1])
