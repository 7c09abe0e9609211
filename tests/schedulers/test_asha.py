"""Successive halving against traces by hand, and algorithm 2 against a plain transcription."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.record.events import Kind, Planned, Resumed
from raybo.record.states import State
from raybo.schedulers import make
from raybo.schedulers.verdict import ordinal
from raybo.searcher import Searcher
from tests.methods.studies import coordinates, floats, hill
from tests.schedulers.studies import ask, curve, empty, end, follow, report

R, ETA = 27, 3
RUNGS = [1, 3, 9, R]


def test_stop_keeps_the_top_of_a_rung():
    rule = make("asha", {"eta": 3, "grace": 2}, 20)
    history = empty(20)
    actions = []
    for i, value in enumerate([0.5, 0.4, 0.6, 0.3, 0.55, 0.58, 0.57, 0.1, 0.56]):
        trial = ask(history)
        report(history, trial, 0.0, 1)
        assert not rule.decides(history, trial, 1)
        report(history, trial, value, 2)
        verdict = rule.decide(history, trial, 2)
        actions.append(verdict.action)
        if i == 5:  # two of six continue
            assert verdict.numbers == {"rung": 2, "rank": 2, "of": 6, "cutoff": 0.58}
        if verdict.prune:
            end(history, trial, Kind.PRUNED)
    assert actions == ["go", "prune", "go", "prune", "prune", "go", "prune", "prune", "prune"]
    assert verdict.why == "4th of 9 at step 2: 0.56, cutoff 0.57"
    assert rule.next_promoted(history) is None


def test_the_last_step_needs_no_verdict():
    rule = make("asha", {"eta": 2, "grace": 2}, 8)
    history = empty(8)
    trial = ask(history)
    assert [step for step in range(1, 10) if rule.decides(history, trial, step)] == [2, 3, 4, 5, 6, 7]
    for step in range(1, 9):
        assert rule.decides(history, trial, step) == (step in (2, 4))
        report(history, trial, 0.5, step)
        assert rule.decides(history, trial, step) == (step in (2, 4))


def test_first_step_beyond_a_rung_reaches_it():
    rule = make("asha", {"eta": 3, "grace": 2}, 100)
    history = empty(100)
    curve(history, [0.9, 0.8], steps=[10, 20])  # was at rungs 2 and 6 with 0.9, at 18 with 0.8
    other = curve(history, [0.85], steps=[10])
    verdict = rule.decide(history, other, 10)
    assert verdict.prune
    assert verdict.numbers == {"rung": 6, "rank": 2, "of": 2, "cutoff": 0.9}


def test_ties_with_the_cutoff_go_on():
    rule = make("asha", {"eta": 2}, 8)
    history = empty(8)
    for _ in range(4):
        trial = curve(history, [0.5])
        assert rule.decide(history, trial, 1).action == "go"


def transcription(values, rungs, promoted):
    """get_job of algorithm 2, line by line: what a free worker takes up, as (trial, its next rung)."""
    for k in reversed(range(len(RUNGS) - 1)):
        candidates = sorted(rungs[k], key=lambda t: -values[t, k])[: len(rungs[k]) // ETA]
        promotable = [t for t in candidates if t not in promoted[k]]
        if promotable:
            return promotable[0], k + 1
    return None, 0


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("seed", range(6))
def test_promote_is_algorithm_2(seed, workers):
    """Random values, and workers that end in random order: the same trials in the same order as the transcription's."""
    rng = np.random.default_rng([seed, workers])
    values = rng.random((400, len(RUNGS))).round(2)  # with ties
    history, rule = empty(R), make("asha", {"eta": ETA, "variant": "promote"}, R)
    rungs, promoted = [[] for _ in RUNGS], [set() for _ in RUNGS]
    running = []  # trial and rung that it runs to
    started = 0
    for _ in range(150):
        while len(running) < workers:
            expected, k = transcription(values, rungs, promoted)
            assert rule.next_promoted(history) == expected
            if expected is None:
                assert ask(history) == started
                running.append((started, 0))
                started += 1
            else:
                promoted[k - 1].add(expected)
                history.apply(Resumed(expected, step=RUNGS[k - 1], attempt=1))
                running.append((expected, k))
        trial, k = running.pop(int(rng.integers(len(running))))
        report(history, trial, values[trial, k], RUNGS[k])
        rungs[k].append(trial)
        verdict = rule.decide(history, trial, RUNGS[k])
        if verdict.action == "go" and k < len(RUNGS) - 1:  # the job that this worker would have taken up next
            assert transcription(values, rungs, promoted) == (trial, k + 1)
            promoted[k].add(trial)
            running.append((trial, k + 1))
        else:
            assert k == len(RUNGS) - 1 or verdict.action == "pause"
            follow(history, trial, rule, verdict.action, RUNGS[k])
    assert sum(record.state is State.FINISHED for record in history.records) > 0


def test_verdicts_do_not_depend_on_earlier_verdicts():
    """The same on a history that nobody has looked at, and on an older one after a newer one."""
    rng = np.random.default_rng(3)
    rule, history = make("asha", {"eta": 2}, 16), empty(16)
    asked = []
    for _ in range(30):
        trial = ask(history)
        for step in (1, 2, 4, 8):
            report(history, trial, rng.random(), step)
            verdict = rule.decide(history, trial, step)
            asked.append((history.copy(), trial, step, verdict))
            if verdict.prune:
                end(history, trial, Kind.PRUNED)
                break
    for past, trial, step, verdict in reversed(asked):
        assert rule.decide(past, trial, step) == verdict


def test_ordinals():
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["asha", "hyperband"])
def test_short_study_with_paused_trials_has_a_result(name):
    """Six trials are too few for every rung: once all are asked for, the best of those that came furthest continues."""
    rule = {"scheduler": name, "scheduler_options": {"variant": "promote", "eta": 4}}
    searcher = Searcher(floats(1), "random", seed=3, trials=6, steps=64, **rule)
    asked = []  # at each end, how many trials had been asked for
    while (trial := searcher.promoted()) is not None or len(searcher.trials) < 6:
        number = (trial or searcher.ask()).number
        while searcher.trials[number].state is State.PENDING:
            value = hill(coordinates(searcher.trials[number]))
            if searcher.report(number, value).pause:
                searcher.pause(number)
            elif searcher.trials[number].step == 64:
                searcher.tell(number, value)
                asked.append(len(searcher.trials))
    states = [trial.state for trial in searcher.trials]
    assert State.FINISHED in states
    if name == "asha":  # hyperband has trials that run in full from the beginning
        assert asked == [6]
        best = max((trial for trial in searcher.trials if trial.step >= 4), key=lambda trial: trial.reports[0][1])
        assert states[best.number] is State.FINISHED


def test_who_has_come_further_goes_on_first():
    rule, history = make("asha", {"variant": "promote", "eta": 2}, 16), empty(16)
    for values in ([0.5, 0.5], [0.3, 0.3], [0.9], [0.1]):  # the first is in the top at rung 2, the third at rung 1
        end(history, curve(history, values), Kind.PAUSED, step=len(values))
    assert rule.next_promoted(history) == 0
    history.apply(Resumed(0, step=2, attempt=2))
    assert rule.next_promoted(history) == 2


def test_stopped_trial_is_replaced_before_the_last_resort():
    rule, history = make("asha", {"variant": "promote"}, 64), empty(64)
    history.apply(Planned(trials=2))
    end(history, curve(history, [0.3]), Kind.PAUSED, step=1)
    end(history, ask(history), Kind.STOPPED)
    assert rule.next_promoted(history) is None
    end(history, curve(history, [0.2]), Kind.PAUSED, step=1)
    assert rule.next_promoted(history) == 0


def test_no_last_resort_while_another_trial_may_finish():
    rule, history = make("asha", {"variant": "promote"}, 64), empty(64)
    history.apply(Planned(trials=3))
    for value in (0.1, 0.3):
        end(history, curve(history, [value]), Kind.PAUSED, step=1)
    assert rule.next_promoted(history) is None  # a third trial is to come
    running = ask(history)
    assert rule.next_promoted(history) is None
    report(history, running, 0.2, 1)
    assert rule.decide(history, running, 1).pause
    end(history, running, Kind.PAUSED, step=1)
    assert rule.next_promoted(history) == 1
    history.apply(Resumed(1, step=1, attempt=2))
    report(history, 1, 0.3, 4)
    assert rule.decide(history, 1, 4).action == "go"
    end(history, 1)
    assert rule.next_promoted(history) is None
