"""Budgets: how they are written, and what of them a journal's events have used."""

from __future__ import annotations

import pytest

from raybo.common.errors import MethodError
from raybo.record.budget import Budget, duration, seconds_of, used
from raybo.record.events import Asked, Ended, Planned, Told


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("90s", 90),
        ("45m", 2700),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1d", 86400),
        (" .5 H ", 1800),
        ("20", 20),
        (3.5, 3.5),
    ],
)
def test_times_are_read_as_written(written, seconds):
    assert seconds_of(written) == seconds


@pytest.mark.parametrize("wrong", ["", "h", "2x", "2h 3", "30m1h", "-5", "0s", "nan", "inf", 0, -1, True, None, [3]])
def test_what_is_no_time_is_refused(wrong):
    with pytest.raises(MethodError, match=r"budget must be seconds, or a time such as '90s', '45m', '2h' or '1d', got"):
        seconds_of(wrong)


@pytest.mark.parametrize("text", ["90s", "1h30m", "2d", "1m30s"])
def test_durations_are_shown_as_read(text):
    assert seconds_of(duration(seconds_of(text))) == seconds_of(text)


def _at(second):
    return f"2026-01-01T00:00:{second:02d}+00:00"


def _asked(trial, spent=None):
    return Asked(trial, x=[0.5], values=[0.5], tags={}, seen=0, spent=spent)


def test_time_in_parallel_counts_once():
    events = [_asked(0), _asked(1), Told(0, value=1.0, seconds=10.0, at=_at(10))]
    events += [Told(1, value=1.0, seconds=8.0, at=_at(12)), Told(2, value=1.0, seconds=5.0, at=_at(40))]
    assert used(events, Budget(100.0)) == 17.0
    assert used(events, Budget(100.0, 3600.0)) == pytest.approx(23.0)


def test_what_proposals_and_ends_say_counts():
    begun = [Planned(budget=60.0), _asked(0, 0.0), Told(0, value=1.0, seconds=5.0, at=_at(5)), _asked(1, 7.5)]
    assert used(begun, Budget(100.0)) == 7.5
    assert used([*begun, Ended(reason="over", spent=9.25)], Budget(100.0)) == 9.25
    assert used([*begun, Ended(reason="over", spent=9.25)], Budget(100.0, 3600.0)) == 5.0  # that was time
