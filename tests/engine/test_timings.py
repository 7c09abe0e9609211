"""Work is done ahead by the recent durations of suggestions and trials."""

from __future__ import annotations

from collections import deque

import pytest

from raybo.engine.study.timings import DEEPEST, DISPATCH_SECONDS, HURRY, INSTANT, RECENT, REPLACEABLE, Timings


def timings(suggestions=(), trials=(), workers=2, takes_all_room=True, spent=()):
    kept = [deque(each, maxlen=RECENT) for each in (suggestions, spent, trials)]
    return Timings(workers, takes_all_room, *kept)


def test_unknown_timings_prepare_nothing():
    unknown = timings()
    assert unknown.suggest_seconds is None
    assert [unknown.is_instant(), unknown.is_short(), unknown.is_hurried()] == [False] * 3
    assert not timings(suggestions=[9.0]).is_hurried()
    assert not timings(trials=[1.0]).is_hurried()


def test_only_the_last_ones_count():
    long = timings(suggestions=[9.0] * RECENT + [1.0] * RECENT)
    assert long.suggest_seconds == 1.0


def test_suggestions_are_instant_if_all_recent_were():
    assert timings(spent=[0.9 * INSTANT] * RECENT).is_instant()
    assert timings(suggestions=[9.0] * RECENT, spent=[0.9 * INSTANT] * RECENT).is_instant()  # the machine was busy
    assert not timings(spent=[0.9 * INSTANT] * (RECENT - 1)).is_instant()  # it may have been the initial design
    assert not timings(spent=[0.9 * INSTANT] * (RECENT - 1) + [INSTANT]).is_instant()


@pytest.mark.parametrize(("of_the_limit", "short"), [(0.99, True), (1.01, False)])
def test_trials_are_short_compared_with_their_dispatch(of_the_limit, short):
    seconds = of_the_limit * DISPATCH_SECONDS / HURRY
    assert timings(trials=[9.0, seconds, 0.0]).is_short() is short  # the median counts
    assert not timings(trials=[seconds], workers=1).is_short()
    assert not timings(trials=[seconds], takes_all_room=False).is_short()  # one more would run, not wait


@pytest.mark.parametrize(
    ("trial", "commit", "room", "waiting"),
    [
        (0.101 * DISPATCH_SECONDS / HURRY, 0.0, 2, 1),  # one, wherever they are short
        (0.02, 0.0, 2, 1),
        (0.02, 0.007, 2, 1),  # a tenth of a second for ten trials: half of one
        (0.02, 0.017, 2, 2),
        (0.02, 0.007, 100, 50),
        (0.0001, 0.001, 2, 2 * DEEPEST),  # no more than so many for each worker
        (0.0, 0.0, 8, 8 * DEEPEST),
        (9.0, 9.0, 2, 0),
    ],
)
def test_waiting_trials_follow_littles_law(trial, commit, room, waiting):
    known = timings(trials=[trial] * RECENT, workers=room)
    known.commits.append(commit)
    assert known.waiting(room) == waiting
    assert timings(trials=[trial] * RECENT, workers=1).waiting(1) == 0


def test_few_results_let_few_trials_wait():
    """A short study of a quick job is not over before its first results count."""
    waiting = {n: timings(trials=[0.0] * n).waiting(2) for n in (2, 3, 4, 12, 40, RECENT - 1, RECENT)}
    assert waiting == {2: 0, 3: 0, 4: 1, 12: 3, 40: 10, RECENT - 1: 14, RECENT: 14}
    assert timings(trials=[0.0] * RECENT, workers=40).waiting(40) == 40 * DEEPEST


@pytest.mark.parametrize(("of_the_limit", "hurried"), [(1.01, True), (0.99, False)])
def test_suggestions_are_hurried_if_trials_are_short(of_the_limit, hurried):
    assert timings(suggestions=[of_the_limit * HURRY * 2.0], trials=[2.0]).is_hurried() is hurried
    assert not timings(suggestions=[of_the_limit * HURRY * 2.0], trials=[2.0], workers=1).is_hurried()


@pytest.mark.parametrize(("of_the_limit", "replaceable"), [(0.99, True), (1.01, False)])
def test_prepared_proposal_is_replaced_if_quick(of_the_limit, replaceable):
    assert timings(suggestions=[of_the_limit * REPLACEABLE * 2.0], trials=[2.0]).is_replaceable() is replaceable
