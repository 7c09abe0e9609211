"""A journal open for writing."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from typing import Any

from raybo.common.errors import JournalError
from raybo.journal import lock
from raybo.journal.acknowledged import Mark, Marker
from raybo.journal.chain import beginning, following
from raybo.journal.checks import text_of
from raybo.journal.clean import clean_description, clean_json
from raybo.journal.reading import Held, Rows, exists, read_whole, require_regular
from raybo.journal.schema import APPLICATION, FROM_1, SCHEMA, TABLES, errors_in_a_line
from raybo.record.description import Description, as_text
from raybo.record.events import Event

INSERT = "INSERT INTO event (number, kind, trial, at, data, checksum) VALUES (?, ?, ?, ?, ?, ?)"
LOG_PAGES = 64  # of the write-ahead log, of 4 kB: then its changes go into the file


class Journal:
    """A journal open for writing, by this process alone.

    Args:
        path: the file; made where there is none, once it is known what is studied.
        description: what is studied; must be the journal's own where there is one. None where that is to be decided by
            what the journal says: `begin` tells it, before anything is written.
        driver: process that the study belongs to, told to whoever finds the journal in use.
    Attributes:
        description: what is studied; None while there is no journal.
        events: what the journal held when it was opened, read once, under the lock.
    Raises:
        JournalInUse: another process is writing it.
        JournalError: it cannot be written, is not a journal, or is about another study.
    """

    def __init__(self, path: Path | str, description: Description | None = None, driver: int | None = None) -> None:
        self.path = Path(path)
        self.description: Description | None = None
        self.events: list[Event] = []
        self._held: Held | None = None
        self._connection: sqlite3.Connection | None = None
        self._marker: Marker | None = None
        self._rescued: Path | None = None  # where the events are, once the file is gone
        _require_place(self.path)
        self._lock = lock.acquire(self.path, os.getpid() if driver is None else driver)
        try:
            if exists(self.path):
                self._held = held = read_whole(self.path, description)
                self.description, self.events = held.description, held.events
            if description is not None:
                self.begin(description)
        except BaseException:  # whatever ends the opening, Ctrl-C too, must give the lock back; it is passed on
            self.close()
            raise

    def begin(self, description: Description) -> None:
        """Make ready to write: makes the file where there is none. Changes nothing where it is another study's.

        A study of which nothing has happened yet gives way: its command was refused or stopped before its first trial.

        Raises:
            JournalError: it is about another study, or cannot be written.
        """
        description = clean_description(description)
        different = [] if self.description is None else self.description.differences(description)
        if self.description is not None and different and self.events:
            here = self.description
            is_alike = (here.metric, here.mode) == (description.metric, description.mode)
            remedy = (
                f"; --from {self.path.name} (known_from=) starts that one with the results kept here"
                if is_alike
                else ""
            )
            raise JournalError(
                f"{self.path}: it is the journal of another study: {'; '.join(different)}; continue it with the "
                f"same settings, or use another file{remedy}"
            )
        self.description = description
        with errors_in_a_line(self.path):
            self._connection = connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            if self._held is None:  # before WAL is switched on: the file's own header says what it is from the start
                text = text_of(description)
                with _transaction(connection):
                    connection.execute(f"PRAGMA application_id={APPLICATION}")
                    connection.execute(f"PRAGMA user_version={SCHEMA}")
                    for statement in TABLES:
                        connection.execute(statement)
                    connection.execute("INSERT INTO study (description) VALUES (?)", (text,))
                self._held = Held(description, [], beginning(text), beginning(text), SCHEMA, Rows(text, description))
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            # a log that is soon begun anew: the disk takes less time to write over a file than to make it longer
            connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
            if self._held.schema < SCHEMA:
                with _transaction(connection):
                    for statement in FROM_1:
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version={SCHEMA}")
            if different:
                text = text_of(description)
                with _transaction(connection):
                    connection.execute("UPDATE study SET description = ?, closed_at = NULL", (text,))
                self._held = Held(description, [], beginning(text), beginning(text), SCHEMA, Rows(text, description))
        self._mark = Mark(len(self.events), self._held.checksum, self._held.beginning)
        self._marker = Marker(self.path)
        self._marker.write(self._mark)
        with errors_in_a_line(self.path), _transaction(connection):  # which makes the log, if it is not there
            connection.execute("UPDATE study SET closed_at = closed_at WHERE FALSE")
        self._files = _identities(self.path)

    def append(self, events: Sequence[Event]) -> None:
        """Commit numbered events, with the time, in one transaction. Durable when this returns.

        Raises:
            JournalError: they could not be written (the disk is full, say), and none of them was.
        """
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self._insert([replace(event, at=at) for event in events])

    def extend(self, events: Sequence[Event]) -> int:
        """Take over what a copy of this journal holds beyond it, as it is; returns how many events that were.

        Args:
            events: everything that the copy holds. Where this journal holds more, there is nothing to take over.
        Raises:
            JournalError: each holds what the other does not.
        """
        mine = self.events
        for ours, theirs in zip(mine, events, strict=False):
            if as_text(_content(ours)) != as_text(_content(theirs)):
                raise JournalError(
                    f"{self.path}: it and its copy differ after event {ours.number - 1}; keep the "
                    "copy in another file, `raybo tune --from` can bring its results here"
                )
        self._insert(events[len(mine) :])
        return max(0, len(events) - len(mine))

    def _insert(self, events: Sequence[Event]) -> None:
        assert self._connection is not None, "begin comes first"
        assert self._marker is not None
        rows, checksum = [], self._mark.checksum
        for e in events:
            data = e.data
            text = json.dumps(data)
            if "\\u" in text:  # whatever is not ASCII
                text = json.dumps(clean_json(data))
            row = (e.number, e.kind.value, e.trial, e.at, text)
            checksum = following(checksum, *row)
            rows.append((*row, checksum))
        if not rows:
            return
        self._require_in_place(rows)
        with errors_in_a_line(self.path), _transaction(self._connection):
            self._connection.executemany(INSERT, rows)
        self._mark = Mark(events[-1].number, checksum, self._mark.beginning)
        self._marker.write(self._mark)

    def _require_in_place(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Raise JournalError where the file is no longer what the path leads to, and keep what it holds, and the rows.

        What is written to a file that has no name is lost when it is closed.
        """
        if self._rescued is None:
            if self._files == _identities(self.path):
                return
        assert self._connection is not None
        try:
            if self._rescued is None:
                self._rescued = _free_name(self.path)
                with closing(sqlite3.connect(self._rescued)) as copy:
                    self._connection.backup(copy)
            with closing(sqlite3.connect(self._rescued, isolation_level=None)) as copy, _transaction(copy):
                copy.executemany(f"INSERT OR REPLACE {INSERT.removeprefix('INSERT ')}", rows)
        except sqlite3.Error as error:
            raise JournalError(
                f"{self.path}: it was removed or replaced while the study was running, and what it held could not be "
                f"kept in {self._rescued} ({error})"
            ) from error
        raise JournalError(
            f"{self.path}: it was removed or replaced while the study was running, which therefore stops; everything "
            f"until now is in {self._rescued}: move it to {self.path.name} to continue"
        )

    def close(self) -> None:
        """Fold the write-ahead log into the file and let others write."""
        try:
            if self._connection is not None:
                with suppress(sqlite3.Error):  # the disk is full, say: what was committed is in the log
                    if self._marker is not None and self._rescued is None:
                        said = "UPDATE study SET closed_at = :mark WHERE closed_at IS NOT :mark"
                        self._connection.execute(said, {"mark": self._mark.to_text()})
                self._connection.close()
            if self._marker is not None:
                self._marker.close()
        finally:
            lock.release(self._lock)


def _content(event: Event) -> list[Any]:
    return [event.number, event.kind.value, event.trial, event.at, event.data]


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is written meanwhile, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:  # a transaction must not stay open, whatever cut it short; it is passed on
        if connection.in_transaction:  # SQLite has rolled back already where the disk is full
            connection.execute("ROLLBACK")
        raise


def _identities(path: Path) -> list[tuple[int, int] | None]:
    """Return the identities of the journal's file and its log; None for one that does not exist."""
    found: list[tuple[int, int] | None] = []
    real = os.path.realpath(path)
    for name in (real, f"{real}-wal"):
        try:
            status = os.stat(name)
            found.append((status.st_dev, status.st_ino))
        except OSError:
            found.append(None)
    return found


def _free_name(path: Path) -> Path:
    """A name beside the journal for what is rescued of it, that nothing has."""
    names = (path.with_name(f"{path.stem}.rescued{'' if i == 1 else f'-{i}'}{path.suffix}") for i in count(1))
    return next(name for name in names if not name.exists())


def _require_place(path: Path) -> None:
    """JournalError where no journal can be written at the path, as far as can be said before it is opened."""
    require_regular(path)
    if not exists(path):
        if not path.parent.is_dir():
            raise JournalError(f"{path}: the directory {path.parent} does not exist; make it first")
        return
    mode = path.stat().st_mode
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(path, os.W_OK):
        raise JournalError(f"{path}: it is read-only ({stat.filemode(mode)}); make it writable or use another file")
