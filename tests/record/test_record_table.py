"""A record table agrees with a list of records, whatever becomes of them and of their copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from raybo.record.record_table import RecordTable
from raybo.record.states import State
from raybo.record.trial import Record

D = 2
STATES = (State.PENDING, State.FINISHED, State.FAILED, State.LOST, State.STOPPED)
STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "end", "copy"]), st.integers(0, 10**6), st.sampled_from(STATES)), max_size=80
)


def assert_same(records, listed):
    assert list(records) == listed
    assert len(records) == len(listed)
    assert list(reversed(records)) == listed[::-1]
    assert records.are_tagged == any(r.tags and "origin" not in r.tags for r in listed)
    for states in [(state,) for state in STATES] + [(State.FAILED, State.LOST), ()]:
        chosen = [r for r in listed if r.state in states]
        assert records.count(*states) == len(chosen)
        np.testing.assert_array_equal(records.points(*states), np.array([r.x for r in chosen]).reshape(-1, D))
        expected = [np.nan if r.y is None else r.y for r in chosen]
        np.testing.assert_array_equal(records.values(*states), expected)
        np.testing.assert_array_equal(records.numbers(*states), [i for i, r in enumerate(listed) if r.state in states])
    for name in ("a", "b", "never"):
        places = [i for i, r in enumerate(listed) if name in r.tags]
        assert records.with_tag(name) == ((places[0], places[-1], len(places)) if places else None)


@given(STEPS)
def test_columns_agree_with_records_and_copies_are_independent(steps):
    """Each step asks, ends or copies in one of the lists that there are by then."""
    lists = [(RecordTable(D), [])]
    for what, number, state in steps:
        records, listed = lists[number % len(lists)]
        if what == "copy" and len(lists) < 5:
            lists.append((records.copy(), list(listed)))
        elif what == "ask":
            tags = [{}, {"a": 1}, {"b": 2}, {"origin": "added"}][number % 4]
            record = Record(np.array([number, len(listed)], dtype=float), tags, State.PENDING)
            records.append(record)
            listed.append(record)
        elif what == "end" and listed:
            i = number % len(listed)
            record = replace(listed[i], state=state, y=float(number) if state is State.FINISHED else None)
            records[i] = listed[i] = record
    for records, listed in lists:
        assert_same(records, listed)


def test_records_are_made_of_others():
    listed = [Record(np.full(D, i / 70), {}, State.FINISHED, y=float(i)) for i in range(70)]
    assert_same(RecordTable(D, listed), listed)
    assert RecordTable(D, listed)[-2:] == listed[-2:]
