"""Events folded into arrays: in the order of asking, whatever the order of telling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybo.common.errors import TrialError
from raybo.record.events import KINDS, Asked, Failed, Kind, Planned, Retried, Stopped, Told
from raybo.record.goals import REACH, Goals
from raybo.record.history import History
from raybo.record.ledger import Ledger
from raybo.record.states import State
from raybo.searcher import Searcher
from raybo.space import Float, Space

SPACE = Space({"a": Float(0, 1), "b": Float(0, 2)})


def asked(number, x=(0.25, 0.5), tags=()):
    return Asked(number, x=list(x), values=[x[0], 2 * x[1]], tags=dict(tags), seen=0)


def history_of(*events, sign=1.0):
    history = History(SPACE.cube, Goals(modes=("max" if sign > 0 else "min",)))
    for event in events:
        history.apply(event)
    return history


def test_arrays_of_an_empty_history_have_their_shapes():
    history = history_of()
    assert len(history) == 0
    assert history.d == 2
    assert history.X.shape == history.X_failed.shape == history.X_pending.shape == (0, 2)
    assert history.y.shape == (0,)
    assert history.planned is None


@given(st.permutations(range(6)), st.sampled_from([1.0, -1.0]))
def test_arrays_are_in_the_order_of_asking(order, sign):
    history = history_of(*(asked(i, (i / 10, i / 20)) for i in range(6)), sign=sign)
    for i in order:
        kind, data = [(Kind.TOLD, {"value": float(i)}), (Kind.FAILED, {"reason": ""})][i % 3 == 2]
        history.apply(KINDS[kind].of(i, data))
    np.testing.assert_array_equal(history.X[:, 0], [0.0, 0.1, 0.3, 0.4])
    np.testing.assert_array_equal(history.y, sign * np.array([0.0, 1.0, 3.0, 4.0]))
    np.testing.assert_array_equal(history.X_failed[:, 1], [0.1, 0.25])
    assert len(history.X_pending) == 0


def test_every_state_lands_where_methods_look_for_it():
    history = history_of(
        Planned(trials=9),
        *(asked(i, (i / 10, 0.0)) for i in range(6)),
        Told(0, value=1.0),
        Failed(1, reason="raised"),
        Retried(2, reason="lost", attempt=2),
        Retried(3, reason="lost", attempt=2),
        Failed(3, reason="lost", cause="lost"),
        Stopped(4, reason="by the user"),
    )
    assert history.planned == 9
    assert [r.state for r in history.records] == [
        State.FINISHED,
        State.FAILED,
        State.PENDING,
        State.LOST,
        State.STOPPED,
        State.PENDING,
    ]
    np.testing.assert_array_equal(history.X_failed[:, 0], [0.1, 0.3])
    np.testing.assert_array_equal(history.X_pending[:, 0], [0.2, 0.5])
    assert history.count(State.LOST, State.STOPPED) == 2
    assert history.last_event == 13


def test_tags_are_found_from_both_ends():
    history = history_of(asked(0, tags={"t": 1}), asked(1), asked(2, tags={"t": 3, "arm": "a"}))
    assert history.first_tag("t") == 1
    assert history.last_tag("t") == 3
    assert history.count_tag("t") == 2
    assert history.last_tag("none") is None
    assert history.first_tag("none", 7) == 7


def test_a_copy_stands_still():
    history = history_of(Planned(trials=3), asked(0), asked(1))
    copy = history.copy()
    history.apply(Told(0, value=5.0))
    history.apply(asked(2))
    history.apply(Planned(trials=8))
    assert (copy.planned, copy.last_event, len(copy), len(copy.y)) == (3, 3, 2, 0)
    copy.apply(Failed(1, reason=""))
    assert history.records[1].state is State.PENDING


def test_a_copied_history_equals_its_original():
    history = History(SPACE.cube, Goals(("a", "b"), ("max", "min")), SPACE.cube, 9, 1)
    history.apply(Planned(trials=3))
    history.generation, history.predicted_open, history.next_context = 1, 2, np.array([0.5, 0.5])
    copy = vars(history.copy())
    assert copy.keys() == vars(history).keys()
    assert [name for name, value in vars(history).items() if copy[name] is not value] == ["records"]


def test_a_trial_that_runs_again_has_not_ended():
    history = history_of(asked(0), Failed(0, reason="raised"))
    assert (history.records[0].ended, history.ended) == (2, 1)
    history.apply(Retried(0, reason="it is wanted again", attempt=2))
    assert (history.records[0].ended, history.records[0].has_ended, history.ended) == (0, False, 0)


@pytest.mark.parametrize("kind", [Kind.TOLD, Kind.FAILED, Kind.RETRIED, Kind.STOPPED])
@pytest.mark.parametrize("trial", [-1, 2, 99, None, "0", 0.0, {"a": 1}])
def test_a_trial_that_is_not_pending_cannot_end(kind, trial):
    history = history_of(asked(0), asked(1))
    with pytest.raises(TrialError, match="no such trial, 2 have been asked for"):
        history.apply(replace(KINDS[kind].of(0, {"value": 1.0, "reason": ""}), trial=trial))
    assert history.last_event == 2


@pytest.mark.parametrize("kind", [Kind.TOLD, Kind.FAILED, Kind.STOPPED])
def test_a_trial_ends_once(kind):
    history = history_of(asked(0), KINDS[kind].of(0, {"value": 1.0, "reason": ""}))
    for again in (Kind.TOLD, Kind.FAILED, Kind.RETRIED, Kind.STOPPED):
        if (kind, again) != (Kind.FAILED, Kind.RETRIED):  # but one that failed may be run again
            with pytest.raises(TrialError, match=f"trial 0: it is {KINDS[kind].after} already"):
                history.apply(KINDS[again].of(0, {"value": 2.0, "reason": ""}))


def test_trials_are_numbered_in_order():
    history = history_of(asked(0))
    with pytest.raises(TrialError, match="the next one is 1"):
        history.apply(asked(2))


def test_trials_follow_their_events():
    events = [
        asked(0, tags={"why": "so"}),
        Retried(0, reason="its worker died", attempt=2),
        Told(0, value=3.0, seconds=1.5, attempt=2, host="h"),
        asked(1, (0.5, 0.5)),
        Failed(1, reason="gone", cause="lost", attempt=3),
    ]
    ledger = Ledger(SPACE, "max")
    for event in events:
        ledger.apply(event)
    first, second = ledger.trials
    assert (first.state, first.value, first.seconds, first.attempt) == (State.FINISHED, 3.0, 1.5, 2)
    assert first.reason == ""  # that it was retried is no fault of its end
    assert first.tags == {"why": "so"}
    assert first.details == {"host": "h"}
    assert first.config == {"a": 0.25, "b": 1.0}
    assert (second.state, second.value, second.reason, second.attempt) == (State.LOST, None, "gone", 3)


def test_models_see_huge_values_within_reach():
    searcher = Searcher({"x": Float(0, 1)}, "random", "min", seed=0, constraints={"memory": "<= 0"}, metric="loss")
    trial = searcher.ask()
    searcher.report(trial, {"loss": 1.7e308, "memory": 1.0}, 1)
    trial = searcher.tell(trial, {"loss": -1.7e308, "memory": 1.6e308})
    history = searcher.history
    assert (history.y.tolist(), history.Y.tolist(), history.margins.tolist()) == ([REACH], [[REACH]], [[-REACH]])
    assert (trial.value, trial.values["memory"], trial.reports) == (-1.7e308, 1.6e308, [(1, 1.7e308)])
