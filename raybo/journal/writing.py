"""A journal open for writing."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path

from raybo.errors import JournalError
from raybo.events import Event
from raybo.journal import lock
from raybo.journal.description import Description, as_text
from raybo.journal.reading import exists, read
from raybo.journal.schema import APPLICATION, SCHEMA, TABLES, errors_in_a_line

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
        JournalError: it cannot be written, is no journal, or is about another study.
    """

    def __init__(self, path: Path | str, description: Description | None = None, driver: int | None = None) -> None:
        self.path = Path(path)
        self.description: Description | None = None
        self.events: list[Event] = []
        self._connection: sqlite3.Connection | None = None
        _require_place(self.path)
        self._lock = lock.acquire(self.path, os.getpid() if driver is None else driver)
        try:
            if exists(self.path):
                self.description, self.events = read(self.path)
            if description is not None:
                self.begin(description)
        except BaseException:  # whatever ends the opening, Ctrl-C too, must give the lock back; it is passed on
            self.close()
            raise

    def begin(self, description: Description) -> None:
        """Make ready to write: makes the file where there is none. Changes nothing where it is another study's.

        Raises:
            JournalError: it is about another study, or cannot be written.
        """
        new = self.description is None
        if self.description is not None and (different := self.description.differences(description)):
            raise JournalError(
                f"{self.path}: it is the journal of another study: {'; '.join(different)}; continue it as it was, "
                "or use another file"
            )
        self.description = description
        self._connection = connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        with errors_in_a_line(self.path):
            if new:  # before WAL is switched on, so that the file's own header says what it is from the start
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id={APPLICATION}")
                connection.execute(f"PRAGMA user_version={SCHEMA}")
                for statement in TABLES:
                    connection.execute(statement)
                connection.execute("INSERT INTO study VALUES (?)", (json.dumps(asdict(description)),))
                connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            # a log that is soon begun anew: the disk takes less time to write over a file than to make it longer
            connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")

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
            if as_text(asdict(ours)) != as_text(asdict(theirs)):
                raise JournalError(
                    f"{self.path}: it and its copy have gone different ways after event {ours.number - 1}; keep the "
                    "copy in another file, `raybo tune --from` can bring its results here"
                )
        self._insert(events[len(mine) :])
        return max(0, len(events) - len(mine))

    def _insert(self, events: Sequence[Event]) -> None:
        assert self._connection is not None, "begin comes first"
        rows = [(e.number, e.kind.value, e.trial, e.at, json.dumps(e.data)) for e in events]
        with errors_in_a_line(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?)", rows)
                self._connection.execute("COMMIT")
            except BaseException:  # a transaction must not stay open, whatever cut it short; it is passed on
                if self._connection.in_transaction:  # SQLite has rolled back already where the disk is full
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Fold the write-ahead log into the file and let others write."""
        if self._connection is not None:
            self._connection.close()
        lock.release(self._lock)


def _require_place(path: Path) -> None:
    """JournalError where no journal can be written at the path, as far as can be said before it is opened."""
    if not exists(path):
        if not path.parent.is_dir():
            raise JournalError(f"{path}: the directory {path.parent} does not exist; make it first")
        return
    mode = path.stat().st_mode
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(path, os.W_OK):
        raise JournalError(f"{path}: it is read-only ({stat.filemode(mode)}); make it writable or use another file")
