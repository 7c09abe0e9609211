"""A journal that is read as it grows, and the study that it holds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raybo import journal
from raybo.record.events import Asked, Event, Kind
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.study.study import Study

STARTS = (Kind.ASKED, Kind.BEGUN, Kind.RETRIED, Kind.RESUMED)  # kinds of events that begin an attempt


class Followed:
    """One study, read from its journal.

    Args:
        path: the journal.
    Attributes:
        touched: number of the last event about each trial.
        since: when the attempt at each trial that is running now was asked for, UTC in ISO 8601.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.touched: list[int] = []
        self.since: dict[int, str] = {}
        self._tail = journal.Tail(path)
        self._study: Study | None = None
        self._times = 0
        self._lock = threading.Lock()

    @property
    def times(self) -> int:
        """The number of readings of the journal from its beginning: each voids what was sent before."""
        return self._times

    @contextmanager
    def now(self) -> Iterator[Study]:
        """Give the study, up to date and locked, for the duration of the context.

        Raises:
            JournalError: there is no such journal, or it cannot be read.
        """
        with self._lock:
            events = self._tail.read()
            if self._study is None or self._times != self._tail.times:
                self._times = self._tail.times
                self.touched, self.since = [], {}
                self._study = Study(self._tail.description, [], self.path)
            self._study.extend(events)
            for event in events:
                self._note(event)
            yield self._study

    def is_running(self) -> bool:
        """True while a process is writing the journal."""
        return journal.in_use(self.path)

    def _note(self, event: Event) -> None:
        if event.trial is None:
            return
        if event.kind is Kind.ASKED:
            self.touched.append(0)
        self.touched[event.trial] = event.number
        is_enqueued = isinstance(event, Asked) and event.origin is Origin.ENQUEUED
        if event.kind in STARTS and not is_enqueued:  # which waits until something is known of it
            self.since[event.trial] = event.at
        elif event.state is not State.PENDING:
            self.since.pop(event.trial, None)
        elif event.kind is not Kind.ASKED:
            self.since.setdefault(event.trial, event.at)
