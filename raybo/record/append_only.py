"""Append-only sequences: a snapshot of a list that may grow, which costs nothing, and a read-only view of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class Grown(Sequence[T], Generic[T]):
    """An immutable sequence, like a tuple, to which another item is added in constant time.

    Whoever holds one keeps seeing the same items, whatever is added to it: a longer one shares their list, and knows
    how much of that is its own.
    """

    __slots__ = ("_items", "_size")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self._size = len(self._items)

    def adding(self, item: T) -> Grown[T]:
        """One with this item at its end."""
        longer: Grown[T] = object.__new__(type(self))
        # where another has been added already, this one goes its own way
        longer._items = self._items if len(self._items) == self._size else self._items[: self._size]
        longer._items.append(item)
        longer._size = self._size + 1
        return longer

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self._items[i] for i in range(*index.indices(self._size)))
        if not -self._size <= index < self._size:
            raise IndexError(f"there are {self._size}")
        return self._items[index % self._size]

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        return islice(iter(self._items), self._size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Grown, tuple, list)):
            return NotImplemented
        return len(other) == self._size and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # its items may be anything

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:  # without what others have added
        return type(self), (list(self),)


class ReadOnly(Sequence[T], Generic[T]):
    """A list as others see it: it changes with the list, and they cannot change it. A slice is a list of its own."""

    __slots__ = ("_items",)

    def __init__(self, items: list[T]) -> None:
        self._items = items

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return self._items == (other._items if isinstance(other, ReadOnly) else other)

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __repr__(self) -> str:
        return repr(self._items)
