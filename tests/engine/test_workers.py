"""A worker's next action is that of the module's table, without Ray and without waiting."""

from __future__ import annotations

import itertools

import pytest

from raybo.engine.study.timings import RECENT, Timings
from raybo.engine.study.workers import Ahead, Situation, Turn, ahead, max_in_flight, turn


def timings(*, workers=2, suggestion=0.01, trial=10.0):
    made = Timings(workers, takes_all_room=True)
    made.suggestions.append(suggestion)
    made.trials.extend([trial] * RECENT)
    return made


@pytest.mark.parametrize(
    ("worker", "interrupted", "stopping", "enough", "promotes"),
    itertools.product(range(3), (0, 1), (False, True), (False, True), (False, True)),
)
def test_a_worker_leaves_resumes_promotes_or_proposes(worker, interrupted, stopping, enough, promotes):
    now = Situation(2, interrupted, stopping, enough, promotes=promotes)
    if worker == 2 or stopping:  # what is still to be run then stays as it is
        expected = Turn.LEAVE
    elif interrupted:
        expected = Turn.RESUME
    elif promotes:
        expected = Turn.PROMOTE
    else:
        expected = Turn.LEAVE if enough else Turn.PROPOSE
    assert turn(worker, now, timings()) is expected


def test_one_more_short_trial_is_in_flight():
    assert max_in_flight(2, timings()) == 2
    assert max_in_flight(2, timings(trial=0.01)) == 3
    assert turn(2, Situation(2), timings(trial=0.01)) is Turn.PROPOSE


@pytest.mark.parametrize(
    ("how", "now", "expected"),
    [
        ({}, {}, Ahead.NOTHING),
        ({"trial": 0.01}, {}, Ahead.TRIAL),
        ({"trial": 0.01}, {"has_asked_enough": True}, Ahead.TRIAL),
        ({"suggestion": 1.0}, {}, Ahead.PROPOSAL),
        ({"suggestion": 1.0}, {"is_proposing": True}, Ahead.NOTHING),
        ({"suggestion": 1.0}, {"has_asked_enough": True}, Ahead.NOTHING),
        ({"suggestion": 1.0, "workers": 1}, {}, Ahead.NOTHING),
    ],
)
def test_what_workers_would_wait_for_is_made_ahead(how, now, expected):
    assert ahead(Situation(2, **now), timings(**how)) is expected
