"""A budget of the user's own loop: what counts, what proposals know of it, and what happens when it is used."""

from __future__ import annotations

import math

import pytest

import raybo
from raybo.common.errors import MethodError, TrialError
from raybo.methods.parts.trial_costs import TAKES, seconds_left
from raybo.record.budget import Budget, used
from raybo.record.events import Planned, Told
from raybo.record.states import State
from raybo.searcher import Searcher
from raybo.study.replay import replay

SPACE = {"rounds": raybo.Integer(10, 1000, log=True), "rate": raybo.Float(0, 1)}

ASHA = {"scheduler": "asha", "scheduler_options": {"variant": "promote"}}


def value(config):
    return (config["rate"] - 0.3) ** 2


def seconds(config):
    return config["rounds"] / 10


def loop(searcher, trials=100):
    while searcher.budget_left and len(searcher.trials) < trials:
        trial = searcher.ask()
        searcher.tell(trial, value(trial.config), seconds=seconds(trial.config))
    return searcher


def asked(searcher):
    return [(trial.config, trial.tags) for trial in searcher.trials]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "loop.db"


def test_proposals_are_those_of_a_clock_that_counts_the_trials():
    mine, theirs, clock = (
        loop(Searcher(SPACE, mode="min", seed=0, budget=150)),
        Searcher(SPACE, mode="min", seed=0),
        0.0,
    )
    theirs.apply(Planned(budget=150.0))
    while clock < 150.0:
        number = theirs.apply(theirs.propose(theirs.history, spent=clock)).trial
        config = theirs.trials[number].config
        theirs.apply(Told(number, value=value(config), seconds=seconds(config)))
        clock += seconds(config)
    assert asked(mine) == asked(theirs)
    assert any(TAKES in trial.tags for trial in mine.trials)


def test_without_a_budget_nothing_changes():
    plain, equal = Searcher(SPACE, mode="min", seed=0), Searcher(SPACE, mode="min", seed=0, budget=1e6)
    for searcher in (plain, equal):
        for _ in range(9):
            trial = searcher.ask()
            searcher.tell(trial, value(trial.config), seconds=5)
    assert asked(plain) == asked(equal)
    assert plain.budget_left == math.inf


def test_the_end_of_a_trial_is_what_counts():
    searcher = Searcher(SPACE, "random", seed=0, budget="1m", steps=3)
    trials = searcher.ask(5)
    assert searcher.budget_left == 60
    searcher.tell(trials[0], 0.5, seconds=10)
    searcher.fail(trials[1], "diverged", seconds=5)
    searcher.fail(trials[2], "nobody knows for how long")
    searcher.report(trials[3], 0.5)
    searcher.prune(trials[3], "by me", seconds=2.5)
    searcher.add(trials[4].config, 0.5)
    assert searcher.budget_left == 42.5
    searcher.tell(trials[4], 0.5, seconds=100)  # the last may take longer
    assert searcher.budget_left == 0
    with pytest.raises(TrialError, match="the budget of 1m is used; open a searcher with a larger one to go on"):
        searcher.ask()


def test_a_pause_counts_and_a_used_budget_promotes_nobody():
    searcher = Searcher(SPACE, "random", seed=0, budget=31, steps=9, **ASHA)
    paused = []
    while searcher.budget_left:
        trial = searcher.promoted() or searcher.ask()
        for step in range(trial.step + 1, 10):
            verdict = searcher.report(trial, trial.config["rate"], step)
            if verdict.pause or verdict.prune:
                break
        if verdict.pause:
            paused.append(searcher.pause(trial, seconds=1))
        elif verdict.prune:
            searcher.prune(trial, seconds=1)
        else:
            searcher.tell(trial, trial.config["rate"], seconds=1)
    assert paused
    assert all(trial.seconds for trial in paused)
    assert searcher.rule.promoted(searcher.history) is not None  # but for the budget
    assert searcher.promoted() is None
    assert sum(trial.seconds or 0 for trial in searcher.trials) == 31


def test_a_budget_of_time_needs_the_seconds():
    searcher = Searcher(SPACE, "random", seed=0, budget=60, steps=3)
    trial = searcher.ask()
    for end in (lambda: searcher.tell(trial, 0.5), lambda: searcher.prune(trial)):
        with pytest.raises(TrialError, match="trial 0: the budget needs the seconds that it took"):
            end()
    with pytest.raises(TrialError, match="trial 0: seconds must be"):
        searcher.tell(trial, 0.5, seconds=-1)
    assert searcher.trials[0].state is State.PENDING
    assert searcher.budget_left == 60


def test_a_cost_takes_the_place_of_the_seconds():
    searcher = Searcher(SPACE, mode="min", seed=0, budget=150, cost="tokens")
    while searcher.budget_left:
        trial = searcher.ask()
        searcher.tell(trial, {"value": value(trial.config), "tokens": seconds(trial.config)})
    by_time = loop(Searcher(SPACE, mode="min", seed=0, budget=150))
    assert [trial.config for trial in searcher.trials] == [trial.config for trial in by_time.trials]
    assert searcher.trials[0].details["metrics"] == {"tokens": seconds(searcher.trials[0].config)}


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (0.5, "a dict with value, tokens is needed"),
        ({"value": 0.5}, "its result has no tokens"),
        ({"value": 0.5, "tokens": 0}, "tokens is what it costs, and must be above 0, got 0"),
        ({"value": 0.5, "tokens": "many"}, "a number is needed for tokens"),
    ],
)
def test_a_cost_is_needed(result, words):
    searcher = Searcher(SPACE, "random", seed=0, budget=10, cost="tokens")
    with pytest.raises(TrialError, match=words):
        searcher.tell(searcher.ask(), result)
    assert searcher.budget_left == 10


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e9])
def test_what_is_left_is_known_in_any_unit(unit):
    searcher = Searcher(SPACE, mode="min", seed=0, budget=600 * unit, cost="price")
    searcher.tell(searcher.ask(), {"value": 1.0, "price": 150 * unit})
    searcher.ask()
    assert searcher.history.used_share == pytest.approx(0.25)
    assert seconds_left(searcher.history) == pytest.approx(450 * unit)
    assert 0 < seconds_left(searcher.history.with_spent(601 * unit)) < 1e-3 * unit


def test_cheap_versions_cost_too():
    rows = {"rows": raybo.Fidelity(10, 1_000)}
    searcher = Searcher(SPACE, mode="min", seed=0, budget=9, cost="tokens", fidelity=rows)
    while searcher.budget_left:
        trial = searcher.ask()
        searcher.tell(trial, {"value": value(trial.config), "tokens": trial.fidelity["rows"] / 1_000})
    costs = [trial.fidelity["rows"] / 1_000 for trial in searcher.trials]
    assert sum(costs[:-1]) < 9 <= sum(costs)
    assert min(costs) < 1


@pytest.mark.slow
def test_a_kept_loop_goes_on_with_what_is_left(path):
    free = loop(Searcher(SPACE, mode="min", seed=3, budget=150))
    with Searcher(SPACE, mode="min", seed=3, budget=150, storage=path) as kept:
        loop(kept, 6)
        kept.add({"rounds": 500, "rate": 0.9}, 0.36)
        kept.plan(50)
        left = kept.budget_left
    with Searcher(storage=path) as kept:
        assert kept.budget_left == left
        assert kept.history.budget.amount == 150
        loop(kept)
    study = raybo.load(path)
    assert not any(each.differs for each in replay(study))
    assert asked(free)[:6] == [(trial.config, trial.tags) for trial in study.trials[:6]]
    with Searcher(storage=path) as kept, pytest.raises(TrialError, match="the budget of 2m30s is used"):
        kept.ask()
    with Searcher(storage=path, budget="1h") as kept:
        used = sum(trial.seconds or 0 for trial in kept.trials)
        assert kept.budget_left == pytest.approx(3600 - used)
        assert kept.ask().state is State.PENDING


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"budget": "2x"}, "budget must be seconds, or a time"),
        ({"budget": 0}, "budget must be seconds, or a time"),
        ({"cost": "tokens"}, "cost needs a budget; give budget too"),
        ({"budget": 9, "cost": "value"}, "cost must be a number other than what is tuned"),
        ({"budget": 9, "cost": ""}, "cost must be a name"),
    ],
)
def test_what_is_no_budget_is_refused(arguments, words):
    with pytest.raises(MethodError, match=words):
        Searcher(SPACE, "random", **arguments)


def test_added_results_use_nothing_of_a_cost(tmp_path):
    """Neither by `add`, nor from an older study whose results a job's study takes over."""
    with Searcher({"x": raybo.Float(0, 1)}, budget=100, cost="tokens", storage=tmp_path / "a.db") as searcher:
        searcher.add({"x": 0.5}, {"value": 1.0, "tokens": 90.0})
        searcher.tell(searcher.ask(), {"value": 1.0, "tokens": 5.0})
    study = raybo.load(tmp_path / "a.db")
    assert used(study.events, Budget(100.0, cost="tokens")) == 5.0


def test_reports_have_the_form_of_results_with_a_cost():
    space = {"x": raybo.Float(0, 1)}
    searcher = Searcher(space, budget=100, cost="tokens", steps=5, scheduler="median")
    trial = searcher.ask()
    searcher.report(trial, {"value": 0.3, "tokens": 3.0})
    searcher.report(trial, 0.2)
    assert list(searcher.trials[0].reports) == [(1, 0.3), (2, 0.2)]
    with pytest.raises(TrialError, match="the report has no value"):
        searcher.report(trial, {"tokens": 3.0})


def test_trials_without_a_result_cost_what_they_reported_last(tmp_path):
    with Searcher(
        {"x": raybo.Float(0, 1)}, budget=100, cost="tokens", steps=5, scheduler="median", storage=tmp_path / "a.db"
    ) as searcher:
        for end in (searcher.prune, lambda trial: searcher.fail(trial, "broken")):
            trial = searcher.ask()
            for step in (1, 2):
                searcher.report(trial, {"value": 0.3, "tokens": 10.0 * step})
            end(trial)
        searcher.fail(searcher.ask(), "it said nothing")
        assert searcher.budget_left == 60
    with Searcher({"x": raybo.Float(0, 1)}, steps=5, scheduler="median", storage=tmp_path / "a.db") as searcher:
        assert searcher.budget_left == 60


def test_a_budget_of_cost_is_a_number(tmp_path):
    with Searcher({"x": raybo.Float(0, 1)}, budget="1e2", cost="tokens", storage=tmp_path / "a.db") as searcher:
        assert searcher.budget_left == 100
    with pytest.raises(MethodError, match="budget with a price or a cost must be a plain number"):
        Searcher({"x": raybo.Float(0, 1)}, budget="2h", storage=tmp_path / "a.db")


def test_a_use_beyond_every_float_is_kept(tmp_path):
    with Searcher({"x": raybo.Float(0, 1)}, budget=1.5e308, storage=tmp_path / "a.db") as searcher:
        for trial in searcher.ask(2):
            searcher.tell(trial, 1.0, seconds=1e308)
        searcher.enqueue({"x": 0.5})
    assert len(raybo.load(tmp_path / "a.db").trials) == 3
