"""Shared resources that are slow to start: after a test that failed, the next one, or its rerun, gets another."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

import pytest

T = TypeVar("T")
FAILED = pytest.StashKey[bool]()  # of a test: whether it has, this time


class Renewed(Generic[T]):
    """Something that is made when it is first needed, and again after a test that failed with it.

    Args:
        make: makes it; it is ended by leaving the context.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[T]]) -> None:
        self._make = make
        self._made: tuple[T, contextlib.ExitStack] | None = None

    def __enter__(self) -> Renewed[T]:
        return self

    def __exit__(self, *_: object) -> None:
        if self._made is not None:
            (_, stack), self._made = self._made, None
            stack.close()

    def lend(self, test: pytest.Item) -> Iterator[T]:
        """A fixture's body: it, for one test."""
        if self._made is None:
            with contextlib.ExitStack() as stack:
                self._made = stack.enter_context(self._make()), stack.pop_all()
        yield self._made[0]
        if test.stash.get(FAILED, False):  # whatever it has left there, from a study to a dead process
            self.__exit__()
