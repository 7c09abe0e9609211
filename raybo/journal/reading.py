"""Reading a journal: opening the file so that neither it nor its writer comes to harm, and what it holds."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from raybo.errors import JournalError
from raybo.history import Event, Kind
from raybo.journal.description import Description
from raybo.journal.schema import APPLICATION, SCHEMA, translated


def read(path: Path | str) -> tuple[Description, list[Event]]:
    """What a journal holds; never blocks its writer, and is not blocked by it.

    Raises:
        JournalError: there is no such file, or it is not a journal that this version can read.
    """
    path = Path(path)
    _require_journal(path)
    with _reading(path) as connection:
        described = _description(path, connection)
        rows = connection.execute("SELECT number, kind, trial, at, data FROM event ORDER BY number").fetchall()
    try:
        return described, [
            Event(Kind(kind), trial, json.loads(data), number, at) for number, kind, trial, at, data in rows
        ]
    except (TypeError, ValueError) as error:
        raise JournalError(f"{path}: it is damaged ({error}); restore it from a copy") from error


def describe(path: Path | str) -> tuple[Description, int]:
    """What a journal is about, and the number of its last event (0 before the first), without loading the events.

    Raises:
        JournalError: there is no such file, or it is not a journal that this version can read.
    """
    path = Path(path)
    _require_journal(path)
    with _reading(path) as connection:
        (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM event").fetchone()
        return _description(path, connection), int(last)


def _description(path: Path, connection: sqlite3.Connection) -> Description:
    (text,) = connection.execute("SELECT description FROM study").fetchone() or ("",)
    try:
        return Description(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise JournalError(f"{path}: it is damaged ({error}); restore it from a copy") from error


def exists(path: Path | str) -> bool:
    """Whether something has been written there; an empty file is nothing yet."""
    path = Path(path)
    return path.exists() and (path.is_dir() or path.stat().st_size > 0)


# ---- opening


def _require_journal(path: Path) -> None:
    """Raise JournalError unless the file is a whole journal of a schema that this version reads. Changes nothing."""
    if path.is_dir():
        raise JournalError(f"{path}: it is a directory; give a file")
    if not path.exists():
        raise JournalError(f"{path}: no such file; `raybo tune ... --storage {path}` makes one")
    if _has_log(path):
        return  # the file alone need not make sense: half of a log may be folded into it, half of a journal written
    # not by reading its first bytes: a process that closes a file by hand loses the locks that SQLite holds on it, and
    # the next reader to leave would take the log away from under the writer
    with translated(path), closing(_connect(path, "mode=ro&immutable=1")) as connection:
        page = _require_marks(path, connection)
    if path.stat().st_size % page:  # SQLite itself would take what is missing for zeros
        raise JournalError(f"{path}: it is damaged (truncated in the middle of a page); restore it from a copy")


def _require_marks(path: Path, connection: sqlite3.Connection) -> int:
    """Raise JournalError unless the file is a journal of a schema that this version reads. Returns its page size."""
    try:
        application, schema, page = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version", "page_size")
        )
    except sqlite3.DatabaseError as error:
        if "not a database" not in str(error):
            raise
        raise JournalError(f"{path}: it is not a journal of raybo (not an SQLite file); give another file") from None
    if application != APPLICATION:
        raise JournalError(f"{path}: it is an SQLite file of another program; give another file")
    if schema > SCHEMA:
        raise JournalError(f"{path}: a newer raybo wrote it (schema {schema}, this one reads {SCHEMA}); upgrade raybo")
    return int(page)


def _has_log(path: Path) -> bool:
    """Whether something is in the write-ahead log, or the transaction that begins a study is being written."""
    path = Path(os.path.realpath(path))  # SQLite keeps its log beside the file that links lead to
    try:
        return path.with_name(path.name + "-journal").exists() or path.with_name(path.name + "-wal").stat().st_size > 0
    except FileNotFoundError:  # its last user removes it
        return False


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes nothing. Where it may, it is a full one, so that the last to leave tidies up the log."""
    with translated(path):
        for mode in ("mode=rw", "mode=ro", "mode=ro&immutable=1"):  # the last: no place for the log's index
            connection = _connect(path, mode)
            try:
                connection.execute("PRAGMA query_only=1")
                connection.execute("SELECT 1 FROM sqlite_master").fetchone()
                break
            except sqlite3.DatabaseError as error:
                connection.close()
                cannot_open = isinstance(error, sqlite3.OperationalError) and "locked" not in str(error)
                if not cannot_open or mode.endswith("immutable=1"):
                    raise
        with closing(connection):
            _require_marks(path, connection)
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise JournalError(f"{path}: it is damaged ({verdict.splitlines()[-1]}); restore it from a copy")
            yield connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=30)
