"""Events folded into trials, counts and the best: the same whoever folds them, and whatever the order of telling."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybo.common.errors import TrialError
from raybo.record.events import Asked, ContextObserved, Failed, Kind, Planned, Retried, Stopped, Told
from raybo.record.goals import Goal, Goals
from raybo.record.ledger import Ledger
from raybo.record.states import State
from raybo.space import Float, Space

SPACE = Space({"a": Float(0, 1), "b": Float(0, 2)})
LOAD = Space({"load": Float(0, 10)})


def asked(number, **data):
    x = [number / 100, 0.5]
    return Asked.of(number, {"x": x, "values": [x[0], 1.0], "tags": {"t": number}, **data})


def told(number, value, **data):
    return Told.of(number, {"value": value, **data})


def ledger_of(*events, mode="max", context=None):
    ledger = Ledger(SPACE, mode, context)
    for event in events:
        ledger.apply(event)
    return ledger


@given(
    st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.0, None]), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
    st.sampled_from(["max", "min"]),
)
def test_the_incumbent_is_the_earliest_best_trial(values, rng, mode):
    ledger = ledger_of(*(asked(i) for i in range(len(values))), mode=mode)
    order = list(range(len(values)))
    rng.shuffle(order)
    for number in order:
        value = values[number]
        ledger.apply(Failed(number, reason="no") if value is None else told(number, value))
    finished = [number for number, value in enumerate(values) if value is not None]
    if not finished:
        assert ledger.incumbent is None
        with pytest.raises(TrialError, match="no trial has finished yet"):
            _ = ledger.best
        return
    best = (max if mode == "max" else min)(values[number] for number in finished)
    assert ledger.best == ledger.trials[next(n for n in finished if values[n] == best)]


def test_equal_bests_form_the_front_without_rescans(monkeypatch):
    counted = []
    of_goals = Goals.maximised
    monkeypatch.setattr(Goals, "maximised", lambda self, values: counted.append(1) or of_goals(self, values))
    ledger = ledger_of(*(asked(i) for i in range(60)))
    for number in (7, *range(59, 30, -1), *range(30)):
        if number != 7 or not ledger.front:
            ledger.apply(told(number, 0.5 if number % 3 else 0.0))
    assert [trial.number for trial in ledger.front] == [n for n in range(60) if n % 3]
    assert ledger.incumbent.number == 1
    assert len(counted) <= 60
    ledger = ledger_of(*(asked(i) for i in range(3)), told(2, 0.5), told(0, 0.5), told(1, 0.6))
    assert ledger.front == [ledger.incumbent] == [ledger.trials[1]]


def test_trials_records_and_counts_agree():
    ledger = ledger_of(
        Planned(trials=9),
        *(asked(i) for i in range(6)),
        told(0, 1.0),
        Failed(1, reason="raised"),
        Retried(2, reason="lost", attempt=2),
        Failed(3, reason="lost", cause="lost", attempt=3),
        Stopped(4, reason="by the user"),
        mode="min",
    )
    assert (ledger.planned, ledger.last_event) == (9, 12)
    assert [trial.state for trial in ledger.trials] == [record.state for record in ledger.history.records]
    for state in State:
        assert ledger.count(state) == ledger.history.count(state) == sum(t.state is state for t in ledger.trials)
    assert ledger.count(*State) == 6
    assert (ledger.trials[0].value, ledger.history.records[0].y) == (1.0, -1.0)
    assert (ledger.trials[2].reason, ledger.trials[2].attempt) == ("lost", 2)


def test_an_event_without_number_gets_the_next():
    ledger = ledger_of()
    assert [ledger.apply(asked(0)).number, ledger.apply(told(0, 1.0)).number] == [1, 2]
    assert ledger.apply(Planned(trials=3, number=7)).number == ledger.last_event == 7


def test_what_cannot_follow_changes_nothing():
    ledger = ledger_of(asked(0), told(0, 1.0))
    for wrong in (told(0, 2.0), told(1, 2.0), asked(3)):
        with pytest.raises(TrialError):
            ledger.apply(wrong)
    assert (ledger.last_event, len(ledger.trials), ledger.count(State.FINISHED), ledger.best.value) == (2, 1, 1, 1.0)


def test_a_trials_context_stays_until_it_ends():
    met = {"context": [2.5], "c": [0.25]}
    later = ledger_of(asked(0), ContextObserved.of(0, met), told(0, 1.0), context=LOAD)
    first = ledger_of(asked(0, **met), told(0, 1.0), context=LOAD)
    last = ledger_of(asked(0), told(0, 1.0, **met), context=LOAD)
    for ledger in (later, first, last):
        assert ledger.trials[0].context == {"load": 2.5}
        assert ledger.history.C.tolist() == [[0.25]]
        assert ledger.trials[0].details == {}
    assert Kind("met") is Kind.CONTEXT_OBSERVED  # as journals of 0.1 hold it


@pytest.mark.parametrize("mode", ["max", "min"])
def test_a_goal_says_what_is_better(mode):
    goal, turn = Goal(mode), 1.0 if mode == "max" else -1.0
    values = [turn * value for value in (1.0, 3.0, 2.0, 3.0)]
    assert (goal.best_of(values), goal.worst_of([*values, float("nan")])) == (turn * 3.0, turn * 1.0)
    assert goal.best_first(values).tolist() == [1, 3, 2, 0]
    assert goal.best_first(np.arange(60) % 2).tolist()[:30] == list(range(mode == "max", 60, 2))  # the earliest first
    given = np.array(values)
    assert goal.best_so_far(given).tolist() == [turn * value for value in (1.0, 3.0, 3.0, 3.0)]
    assert str(goal.gap(given, turn * 3.0).tolist()) == "[2.0, 0.0, 1.0, 0.0]"  # and not -0.0
    assert goal.maximised(given).tolist() == [1.0, 3.0, 2.0, 3.0]
    assert goal.value_of(goal.maximised(given)).tolist() == values
    assert goal.is_better(values[1], values[0])
    assert not goal.is_better(values[1], values[3])


def test_nobody_but_the_goal_looks_at_the_mode():
    package = Path(__file__).parents[2] / "raybo"
    looking = []
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops):
                sides = [node.left, *node.comparators]
                of_workers = any(isinstance(side, ast.Name) and side.id in ("workers", "text") for side in sides)
                if any(isinstance(side, ast.Constant) and side.value in ("max", "min") for side in sides):
                    looking += [] if of_workers else [path.name]  # as many as the cluster can be made to have
            if (
                isinstance(node, ast.Attribute)
                and node.attr in ("sign", "is_upper")
                and getattr(node.value, "id", "") != "np"
            ):
                looking.append(path.name)
    assert set(looking) == {"goals.py"}
