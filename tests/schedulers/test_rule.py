"""A scheduler judges the right trials, beside the right ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import raybo
from raybo.common.errors import MethodError
from raybo.record.description import Description
from raybo.record.events import KINDS, Kind, Reported
from raybo.record.goals import Goals
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.schedulers import Scheduler, Verdict
from raybo.study.replay import replay_verdicts
from raybo.study.study import Study

RULES = {
    "asha": {"eta": 2},
    "promoting": {"eta": 2, "variant": "promote"},
    "hyperband": {"eta": 2, "grace": 4},  # trials with even numbers are judged
    "median": {"startup": 2},
    "curve": {"first": 9, "odds": 0.9},
}


def searched(rule, values, steps=8):
    """Return a searcher whose trials, with these values at each step, have run to their end whatever the verdicts."""
    name = "asha" if rule == "promoting" else rule
    space = {"x": raybo.Float(0, 1)}
    searcher = raybo.Searcher(
        space, "random", seed=0, steps=steps, scheduler=name, scheduler_options=RULES[rule], trials=2 * len(values)
    )
    for value in values:
        run(searcher, searcher.ask(), value, steps)
    return searcher


def run(searcher, trial, value, steps):
    for step in range(1, steps + 1):
        searcher.report(trial, value, step)
    searcher.tell(trial, value)


def confirm(searcher, number):
    asked = searcher.known(searcher.trials[number].config, Origin.CONFIRMED, {"confirms": number})
    return searcher.trials[searcher.apply(asked).trial]


@pytest.mark.parametrize("rule", RULES)
def test_a_trial_that_confirms_is_not_judged(rule):
    searcher = searched(rule, [0.1 * n for n in range(8)])
    twin = searcher.ask()  # the same reports, of the search
    said = [searcher.report(twin, -9.0, step).action for step in range(1, 8)]
    assert said != ["go"] * 7
    searcher.fail(searcher.ask(), "no")
    again = confirm(searcher, 7)
    assert searcher.rule.waits_at(searcher.history, again.number) is None
    verdicts = [searcher.report(again, -9.0, step) for step in range(1, 8)]
    assert [(verdict.action, verdict.why) for verdict in verdicts] == [("go", "")] * 7


@pytest.mark.parametrize("rule", ["asha", "hyperband", "median"])
def test_ignored_trials_judge_no_others(rule):
    said = []
    for times in (0, 3):
        searcher = searched(rule, [0.1 * n for n in range(8)])
        for _ in range(times):
            run(searcher, confirm(searcher, 7), 5.0, 8)
        while (trial := searcher.ask()).number % 2:
            searcher.fail(trial, "no")
        said.append([searcher.report(trial, 0.65, step).numbers for step in range(1, 8)])
    assert any(said[0])
    assert said[0] == said[1]


def test_curve_compares_with_no_confirming_trial():
    searcher = searched("curve", [0.1 * n for n in range(8)])
    for _ in range(3):
        run(searcher, confirm(searcher, 7), 5.0, 8)
    assert searcher.report(searcher.ask(), 0.65, 1).numbers["best"] == pytest.approx(0.7)


def test_median_ignores_known_results():
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0, steps=4, scheduler="median")
    for n in range(5):
        searcher.add({"x": n / 10}, float(n))
    for finished in range(6):
        bad = searcher.ask()
        verdicts = [searcher.report(bad, 0.5, step) for step in (1, 2)]
        assert verdicts[1].prune is (finished == 5)
        assert (searcher.rule.waits_at(searcher.history, bad.number) is not None) is (finished == 5)
        searcher.prune(bad)
        run(searcher, searcher.ask(), 1.0, 4)


@pytest.mark.parametrize("name", ["asha", "hyperband"])
def test_last_resort_ignores_known_results(name):
    options = {"variant": "promote", "grace": 2 if name == "hyperband" else 1, "eta": 4}
    searcher = raybo.Searcher(
        {"x": raybo.Float(0, 1)}, "random", seed=0, steps=9, trials=4, scheduler=name, scheduler_options=options
    )
    searcher.add({"x": 0.1}, -5.0)
    for value in (0.1, 0.3, 0.2):
        trial = searcher.ask()
        assert searcher.promoted() is None
        if searcher.report(trial, value, options["grace"]).pause:
            searcher.pause(trial)
        else:
            searcher.fail(trial, "no")  # of a bracket that pauses none
    paused = [trial for trial in searcher.trials if trial.state is State.PAUSED]
    best = max(paused, key=lambda trial: trial.reports[-1][1])
    assert searcher.promoted().number == best.number
    searcher.report(best, 0.5, 9)
    searcher.tell(best, 0.5)
    assert searcher.promoted() is None


def test_first_trials_of_curve_exclude_known_results():
    said = []
    for known in (0, 40):
        searcher = raybo.Searcher(
            {"x": raybo.Float(0, 1)}, "random", seed=0, steps=13, trials=8 + known, scheduler="curve"
        )
        for n in range(known):
            searcher.add({"x": n / known}, 0.5)
        said.append([searcher.report(searcher.ask(), 0.4 + n, 1).numbers.get("first") for n in range(3)])
    assert said == [[2, 2, None]] * 2


def test_a_replay_judges_none_either():
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0, steps=2, scheduler="asha")
    events, numbers = [], {"rule": "asha", "reason": "2nd of 2", "step": 1}
    add = lambda event: events.append(searcher.apply(event))  # noqa: E731
    for number, origin in enumerate((None, Origin.CONFIRMED)):
        config = {"x": 0.5}
        asked = searcher.known(config, origin, {"confirms": 0}) if origin else searcher.propose(searcher.history)
        add(asked)
        add(Reported(number, step=1, value=0.5 - number, attempt=1))
        end = {"value": 0.5} if number == 0 else {**numbers, "seen": len(events)}  # as releases before this did
        add(KINDS[Kind.PRUNED if number else Kind.TOLD].of(number, end))
    description = Description(
        "job", Goals(("value",), ("max",)), searcher.space, "random", 0, steps=2, scheduler="asha", generation=2
    )
    assert [again.trial for again in replay_verdicts(Study(description, events))] == [0]


@dataclass(frozen=True)
class Own(Scheduler):
    """A scheduler of one's own, which answers what a test wants."""

    says, promotes = None, None

    def decides(self, history, trial, step):
        return True

    def decide(self, history, trial, step):
        return self.says

    def next_promoted(self, history):
        return self.promotes


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Returns a searcher with a journal, and with a scheduler that answers so."""

    def kept(**answers):
        for name, answer in answers.items():
            monkeypatch.setattr(Own, name, answer)
        space = {"x": raybo.Float(0, 1)}
        return raybo.Searcher(space, "random", seed=0, steps=5, scheduler=Own, storage=tmp_path / "a.db")

    return kept


def test_whatever_numbers_a_verdict_has_are_kept(kept, tmp_path):
    numbers = {
        "a": math.nan,
        "b": -math.inf,
        "c": np.float32(0.5),
        "d": np.bool_(True),
        "e": np.arange(2),
        "f": object(),
    }
    with kept(says=Verdict("prune", "low", numbers)) as searcher:
        trial = searcher.ask()
        assert searcher.report(trial, 1.0).prune
        searcher.prune(trial)
        searcher.tell(searcher.ask(), 2.0)
    first, second = raybo.load(tmp_path / "a.db").trials
    assert (first.state, second.state) == (State.PRUNED, State.FINISHED)
    [pruned] = [event for event in raybo.load(tmp_path / "a.db").events if event.kind is Kind.PRUNED]
    assert pruned.data["numbers"] == {"a": "nan", "b": "-inf", "c": 0.5, "d": True, "e": [0, 1]}


@pytest.mark.parametrize(
    ("says", "message"),
    [
        (None, "decide must return a Verdict, got None"),
        (Verdict("stop"), "a verdict's action is 'go', 'prune' or 'pause', got 'stop'"),
        (Verdict("prune", 3), "a verdict's why is a text and its numbers are a dict"),
        (Verdict("prune", "", [1]), "a verdict's why is a text and its numbers are a dict"),
    ],
)
def test_what_is_no_verdict_is_refused(kept, tmp_path, says, message):
    with kept(says=says) as searcher:
        trial = searcher.ask()
        with pytest.raises(MethodError, match=f"Own: {message}"):
            searcher.report(trial, 1.0)
        searcher.tell(trial, 1.0)
    assert [trial.value for trial in raybo.load(tmp_path / "a.db").trials] == [1.0]


def test_a_promoted_number_may_be_of_any_integer_type(kept, tmp_path):
    with kept(says=Verdict("pause", "later"), promotes=np.int64(0)) as searcher:
        trial = searcher.ask()
        with pytest.raises(
            MethodError, match="Own: next_promoted must return a paused trial's number: trial 0 is pend"
        ):
            searcher.promoted()
        assert searcher.report(trial, 1.0).pause
        searcher.pause(trial)
        assert searcher.promoted().number == 0
        searcher.tell(0, 1.0)
    assert raybo.load(tmp_path / "a.db").trials[0].state is State.FINISHED


@dataclass(frozen=True)
class Second(Own):
    """It looks at another metric than the first."""

    metric: str | None = "b"


def test_a_metric_of_the_schedulers_own_is_judged_after_loading_too(tmp_path, monkeypatch):
    monkeypatch.setattr(Own, "says", Verdict())
    goals = {"metrics": {"a": "max", "b": "min"}, "steps": 5, "scheduler": Second}
    with raybo.Searcher({"x": raybo.Float(0, 1)}, "random", storage=tmp_path / "a.db", **goals) as searcher:
        searcher.report(searcher.ask(), {"a": 0.9, "b": 0.1})
        assert searcher.history.judged == 1
    assert raybo.load(tmp_path / "a.db").history.judged == 1
