"""Hyperband's brackets against the paper's table, and their independence."""

from __future__ import annotations

from collections import Counter

import pytest

from raybo.record.events import Kind
from raybo.record.states import State
from raybo.schedulers import make
from raybo.schedulers.hyperband import brackets, in_turn, shares
from tests.schedulers.studies import ask, curve, empty, end, report


def test_the_papers_table():
    """Li et al. (2018), table 1: R = 81, eta = 3."""
    assert shares(5, 3) == (81, 34, 15, 8, 5)
    assert [ladder.rungs for ladder in brackets(1, 3, 81)] == [(1, 3, 9, 27), (3, 9, 27), (9, 27), (27,), ()]


@pytest.mark.parametrize(
    ("grace", "steps", "sizes"),
    [
        (1, 10, (9, 5, 3)),
        (1, 100, (81, 34, 15, 8, 5)),
        (1, 9, (9, 5, 3)),
        (1, 1, (1,)),
        (2, 53, (9, 5, 3)),
        (2, 54, (27, 12, 6, 4)),
        (5, 4, (1,)),
    ],
)
def test_there_are_as_many_brackets_as_halvings(grace, steps, sizes):
    """Algorithm 1 with R = steps / grace, and Optuna's HyperbandPruner."""
    ladders = brackets(grace, 3, steps)
    assert shares(len(ladders), 3) == sizes
    assert [len(ladder.rungs) for ladder in ladders] == list(reversed(range(len(sizes))))
    assert all(3 * rung <= steps for ladder in ladders for rung in ladder.rungs)


@pytest.mark.parametrize(("generation", "expected"), [(1, 9), (2, 9), (3, None)])
def test_older_studies_keep_their_brackets(generation, expected):
    """The last rung of the boldest bracket with 10 steps, at which older rules judged a trial once more."""
    rule, history = make("hyperband", {}, 10), empty(10)
    history.generation = generation
    trial = curve(history, [1.0] * 8)
    assert next((step for step in range(4, 10) if rule.decides(history, trial, step)), None) == expected


def test_every_bracket_gets_its_share_and_early():
    sizes = shares(5, 3)
    dealt = [in_turn(sizes, trial) for trial in range(sum(sizes))]
    assert Counter(dealt) == dict(enumerate(sizes))
    assert dealt == [in_turn(sizes, trial + sum(sizes)) for trial in range(sum(sizes))]
    for n in range(1, sum(sizes)):  # never a trial away from its share
        for bracket, size in enumerate(sizes):
            assert abs(dealt[:n].count(bracket) - n * size / sum(sizes)) < 2


def test_trials_are_compared_within_their_bracket():
    rule, sizes, history = make("hyperband", {}, 9), shares(3, 3), empty(9)
    best = {}
    for i in range(2 * sum(sizes)):
        bracket, value = in_turn(sizes, i), float(i % 7)
        trial = curve(history, [])
        rung = 3**bracket
        if rung < 9:
            assert rule.decides(history, trial, rung)
            report(history, trial, value, rung)
            verdict = rule.decide(history, trial, rung)
            assert verdict.numbers["of"] == len(best.setdefault(bracket, [])) + 1
            assert verdict.why.startswith(f"bracket {bracket}, ")
            best[bracket].append(value)
        else:
            assert not any(rule.decides(history, trial, step) for step in range(1, 9))
    assert len(best) == 2


def test_paused_trials_are_promoted_within_their_bracket():
    rule, history = make("hyperband", {"variant": "promote"}, 9), empty(9)
    for value in (0.9, 0.1, 0.8, 0.7, 0.3, 0.2, 0.4):
        trial = ask(history)
        rung = next((step for step in (1, 3) if rule.decides(history, trial, step)), 9)
        report(history, trial, value if rung == 1 else 0.95, rung)
        if rung < 9:
            assert rule.decide(history, trial, rung).pause
            end(history, trial, Kind.PAUSED, step=rung)
    waiting = [t for t, r in enumerate(history.records) if r.state is State.PAUSED and r.reports[0][0] == 1]
    assert len(waiting) // 3 == 1
    assert rule.next_promoted(history) == max(waiting, key=lambda t: history.records[t].reports[0][1])


def test_two_rules_keep_separate_rungs():
    def studied():
        history = empty(9)
        for trial in range(12):
            curve(history, [float(trial % 5)] * 9)
        return history

    def verdicts_of(grace, history):
        rule = make("hyperband", {"grace": grace}, 9)
        return [
            rule.decide(history, trial, step) if rule.decides(history, trial, step) else None
            for trial in range(12)
            for step in range(1, 9)
        ]

    history = studied()  # seen by one rule after the other
    found = {grace: verdicts_of(grace, history) for grace in (1, 2)}
    assert found == {grace: verdicts_of(grace, studied()) for grace in (1, 2)}
    assert found[1] != found[2]
