"""A study's records in a table: a list that also has their points, states and values as growing columns.

A history is read whole for every proposal. Made anew from ten thousand records each time, its arrays would take longer
than the proposal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from raybo.record.events import Tags
from raybo.record.states import State
from raybo.space import Array

_CODES = {state: code for code, state in enumerate(State)}


class Row(Protocol):
    """A row has a point (d,) and tags, which never change, and a state and a value, which do."""

    @property
    def x(self) -> Array: ...
    @property
    def tags(self) -> Tags: ...
    @property
    def state(self) -> State: ...
    @property
    def y(self) -> float | None: ...


R = TypeVar("R", bound=Row)


class RecordTable(Generic[R]):
    """A list of records that also has them in columns.

    Args:
        d: number of axes of their points.
        records: the first of them.
    Attributes:
        are_tagged: whether a method has written a tag, and not only a user named what was asked for.
    """

    def __init__(self, d: int, records: Iterable[R] = ()) -> None:
        self._items: list[R] = []
        self._points = _Points(d)
        self._states = np.empty(0, dtype=np.int8)  # both are longer than the list, most of the time
        self._values = np.empty(0)
        self._counts: Counter[State] = Counter()
        self.are_tagged = False
        self._tags: dict[str, tuple[int, int, int]] = {}  # of each name: the first and last record with it, how many
        for record in records:
            self.append(record)

    def copy(self) -> RecordTable[R]:
        """A list that later changes of this one do not reach; points, which never change, are shared."""
        other: RecordTable[R] = RecordTable(self._points.d)
        n = len(self._items)
        other._items, other._points = list(self._items), self._points
        other._states, other._values = self._states[:n].copy(), self._values[:n].copy()
        other._counts, other._tags, other.are_tagged = self._counts.copy(), dict(self._tags), self.are_tagged
        return other

    def append(self, record: R) -> None:
        """One more record."""
        number = len(self._items)
        self._points = self._points.with_row(number, record.x)
        if number == len(self._states):
            self._states, self._values = _larger(self._states), _larger(self._values)
        self.are_tagged |= bool(record.tags) and "origin" not in record.tags
        for name in record.tags:
            first, _, count = self._tags.get(name, (number, number, 0))
            self._tags[name] = first, number, count + 1
        self._items.append(record)
        self._note(number, record)

    def __setitem__(self, number: int, record: R) -> None:
        """Replace a record by its later state; its point and its tags do not change."""
        self._counts[self._items[number].state] -= 1
        self._items[number] = record
        self._note(number, record)

    def _note(self, number: int, record: R) -> None:
        self._states[number] = _CODES[record.state]
        self._values[number] = np.nan if record.y is None else record.y
        self._counts[record.state] += 1

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[R]:
        return iter(self._items)

    def __reversed__(self) -> Iterator[R]:
        return reversed(self._items)

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> list[R]: ...
    def __getitem__(self, index: int | slice) -> R | list[R]:
        return self._items[index]

    def numbers(self, *states: State) -> NDArray[np.intp]:  # (m,)
        """The places of the records in any of these states, ascending."""
        codes = self._states[: len(self._items)]
        found = np.zeros(len(codes), dtype=bool)
        for state in states:
            found |= codes == _CODES[state]
        return np.flatnonzero(found)

    def points(self, *states: State) -> Array:  # (m, d)
        """Points of the records in any of these states, in order."""
        return self._points.rows[self.numbers(*states)]

    def values(self, *states: State) -> Array:  # (m,)
        """Values of the records in any of these states, in order; NaN where there is none."""
        return self._values[self.numbers(*states)]

    def count(self, *states: State) -> int:
        """Return the number of records in any of these states."""
        return sum(self._counts[state] for state in states)

    def with_tag(self, name: str) -> tuple[int, int, int] | None:
        """The first and the last record with a tag of that name, and how many have one; None where none has."""
        return self._tags.get(name)


class _Points:
    """A growing set of points, shared by all lists that begin with the same ones."""

    def __init__(self, d: int) -> None:
        self.d = d
        self.rows = np.empty((0, d))
        self._used = 0

    def with_row(self, number: int, x: Array) -> _Points:
        """These as far as `number`, and then x: in place unless another list has gone on from there."""
        kept = self
        if number < self._used:
            kept = _Points(self.d)
            kept.rows = self.rows.copy()
        elif number == len(self.rows):  # not in place: a copy may be reading the old array in another thread
            kept.rows = _larger(self.rows)
        kept.rows[number] = x
        kept._used = number + 1
        return kept


def _larger(column: NDArray[Any]) -> NDArray[Any]:
    larger = np.empty((max(64, 2 * len(column)), *column.shape[1:]), dtype=column.dtype)
    larger[: len(column)] = column
    return larger
