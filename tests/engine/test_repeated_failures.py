"""A study ends if its first trials all fail for the same reason."""

from __future__ import annotations

from raybo.engine.study.repeated_failures import RepeatedFailures
from raybo.record.events import KINDS, Kind

REASONS = [f"ValueError: cannot use <object at 0x{i:x}> with rate {i / 7:.3g} after {i:.1e} s" for i in range(9)]


def heard(*entries, is_new=True):
    repeated_failures = RepeatedFailures()
    for i, entry in enumerate(entries):
        data = {"reason": entry} if isinstance(entry, str) else {"value": entry}
        repeated_failures.add(KINDS[Kind.FAILED if isinstance(entry, str) else Kind.TOLD].of(i, data), is_new=is_new)
    return repeated_failures


def test_five_failures_are_alike_whatever_numbers_they_name():
    assert not heard(*REASONS[:4]).is_hopeless(1)
    assert heard(*REASONS[:5]).is_hopeless(1)
    assert heard(*REASONS[:5]).reason == REASONS[4]


def test_with_more_workers_more_must_fail():
    assert not heard(*REASONS[:7]).is_hopeless(8)
    assert heard(*REASONS[:8]).is_hopeless(8)


def test_other_reason_or_result_ends_the_count():
    for other in ("KeyError: 'x'", 1.0):
        for at in (0, 3):
            entries = [*REASONS[:at], other, *REASONS[at:]]
            assert not heard(*entries).is_hopeless(1)


def test_failures_of_earlier_commands_do_not_count():
    assert not heard(*REASONS, is_new=False).is_hopeless(1)
