"""The durable study: one SQLite file, one writer, any number of readers.

    study   one row: what is studied (`Description`, JSON)
    event   number, kind, trial, at, data: the history, in order (`raybo.history.Event`, data is JSON)

Events are only ever added, several in one transaction, and a transaction that was committed survives the death of every
process and a power cut (WAL, synchronous=FULL). The writer holds a lock on a file beside the journal, which the system
releases when the process dies in whatever way. Everything in it is JSON and nothing is ever unpickled.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TextIO

from raybo.errors import JournalError, JournalInUse
from raybo.history import Event, Kind
from raybo.space import Space, label

SCHEMA = 1
APPLICATION = 0x52415942  # "RAYB", in the header of every journal
LOG_PAGES = 64  # of the write-ahead log, of 4 kB: then its changes go into the file
WAIT_SECONDS = 15.0  # for a writer whose driver is gone to disappear too: Ray takes up to eight seconds to notice

_TABLES = (
    "CREATE TABLE study (description TEXT NOT NULL)",
    "CREATE TABLE event (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, trial INTEGER, at TEXT NOT NULL, "
    "data TEXT NOT NULL)",
)


@dataclass(frozen=True)
class Description:
    """What a journal is about. A study is continued only with the same one.

    Attributes:
        objective: name of the objective.
        settings: keyword parameters that the objective was given, as JSON values.
        metric, mode: what is wanted.
        space: `Space.to_json()`.
        method, options: the method and what it was given.
        seed: of every random stream.
        context: `Space.to_json()` of the contexts; None where none is declared.
    """

    objective: str
    metric: str
    mode: str
    space: Mapping[str, Any]
    method: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] | None = None

    def differences(self, other: Description) -> list[str]:
        """What another description says differently, in words."""
        told = []
        for name in ("objective", "settings", "metric", "mode", "method", "options", "seed"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if _as_text(mine) != _as_text(theirs):
                told.append(f"{name} is {_shown(mine)} in the journal and {_shown(theirs)} now")
        if _as_text(self.space) != _as_text(other.space):
            told += _space_differences(self.space, other.space) or ["the constants of the space differ"]
        if _as_text(self.context) != _as_text(other.context):
            told += [f"context {text}" for text in _space_differences(self.context, other.context)]
        return told


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


def in_use(path: Path | str) -> bool:
    """Whether a process is writing the journal."""
    path = Path(path)
    try:
        with open(path.with_name(path.name + "-lock"), encoding="utf-8") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # given back as the file is closed
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


class Journal:
    """A journal open for writing, by this process alone.

    Args:
        path: the file; made where there is none.
        description: what is studied; must be the journal's own where there is one.
        driver: process that the study belongs to, told to whoever finds the journal in use.
    Raises:
        JournalInUse: another process is writing it.
        JournalError: it cannot be written, is no journal, or is about another study.
    """

    def __init__(self, path: Path | str, description: Description, driver: int | None = None) -> None:
        self.path = Path(path)
        self.description = description
        self._require_ours()
        self._lock = _lock(self.path, os.getpid() if driver is None else driver)
        try:
            new = self._require_ours()  # again: another study may have begun there before we had the lock
            if not new:
                self.events()  # nothing is added to a journal whose events cannot be read
            self._connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            with _translated(self.path):
                if new:  # before WAL is switched on, so that the file's own header says what it is from the start
                    self._connection.execute("BEGIN IMMEDIATE")
                    self._connection.execute(f"PRAGMA application_id={APPLICATION}")
                    self._connection.execute(f"PRAGMA user_version={SCHEMA}")
                    for statement in _TABLES:
                        self._connection.execute(statement)
                    self._connection.execute("INSERT INTO study VALUES (?)", (json.dumps(asdict(description)),))
                    self._connection.execute("COMMIT")
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=FULL")
                # a log that is soon begun anew: the disk takes less time to write over a file than to make it longer
                self._connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
        except BaseException:  # whatever ends the opening, Ctrl-C too, must give the lock back; it is passed on
            self._unlock()
            raise

    def _require_ours(self) -> bool:
        """Whether the journal is still to be made; JournalError where it cannot be, or is not this study's."""
        if not exists(self.path):
            if not self.path.parent.is_dir():
                raise JournalError(f"{self.path}: the directory {self.path.parent} does not exist; make it first")
            return True
        _require_writable(self.path)
        found, _ = describe(self.path)
        if different := found.differences(self.description):
            raise JournalError(
                f"{self.path}: it is the journal of another study: {'; '.join(different)}; continue it as it was, "
                "or use another file"
            )
        return False

    def append(self, events: Sequence[Event]) -> list[Event]:
        """Commit numbered events in one transaction; returns them with the time. Durable when this returns.

        Raises:
            JournalError: they could not be written (the disk is full, say), and none of them was.
        """
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        stamped = [replace(event, at=at) for event in events]
        self._insert(stamped)
        return stamped

    def extend(self, events: Sequence[Event]) -> int:
        """Take over what a copy of this journal holds beyond it, as it is; returns how many events that were.

        Args:
            events: everything that the copy holds. Where this journal holds more, there is nothing to take over.
        Raises:
            JournalError: each holds what the other does not.
        """
        mine = self.events()
        for ours, theirs in zip(mine, events, strict=False):
            if _as_text(asdict(ours)) != _as_text(asdict(theirs)):
                raise JournalError(
                    f"{self.path}: it and its copy have gone different ways after event {ours.number - 1}; keep the "
                    "copy in another file, `raybo tune --from` can bring its results here"
                )
        self._insert(events[len(mine) :])
        return max(0, len(events) - len(mine))

    def _insert(self, events: Sequence[Event]) -> None:
        rows = [(e.number, e.kind.value, e.trial, e.at, json.dumps(e.data)) for e in events]
        with _translated(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?)", rows)
                self._connection.execute("COMMIT")
            except BaseException:  # a transaction must not stay open, whatever cut it short; it is passed on
                if self._connection.in_transaction:  # SQLite has rolled back already where the disk is full
                    self._connection.execute("ROLLBACK")
                raise

    def events(self) -> list[Event]:
        """Everything that has been committed."""
        return read(self.path)[1]

    def close(self) -> None:
        """Fold the write-ahead log into the file and let others write."""
        self._connection.close()
        self._unlock()

    def _unlock(self) -> None:
        Path(self._lock.name).unlink(missing_ok=True)
        self._lock.close()


# ---- one writer


def _lock(path: Path, driver: int) -> TextIO:
    """The lock file, held; it names its holder. Waits only for a holder whose driver is dead already."""
    lock_path = path.with_name(path.name + "-lock")
    give_up = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            handle = open(lock_path, "a+", encoding="utf-8")  # held for as long as the journal is open
        except OSError as error:
            raise JournalError(f"{path}: it cannot be locked ({error}); use a directory that can be written") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.seek(0)
            text = handle.read()
            handle.close()
            holder = json.loads(text) if text.endswith("}") else {}
            if not _driver_is_gone(holder) or time.monotonic() > give_up:
                raise JournalInUse(
                    f"{path}: another study is writing it (process {holder.get('driver', '?')} on "
                    f"{holder.get('host', '?')}); wait for it to end, or use another file"
                ) from None
            time.sleep(0.1)
            continue
        try:
            if os.fstat(handle.fileno()).st_ino == os.stat(lock_path).st_ino:
                break
        except FileNotFoundError:
            pass
        handle.close()  # its last holder removed it while we waited: lock the new one
    handle.truncate(0)
    json.dump({"driver": driver, "process": os.getpid(), "host": socket.gethostname()}, handle)
    handle.flush()
    return handle


def _driver_is_gone(holder: Mapping[str, Any]) -> bool:
    if not holder:  # just being written: look again
        return True
    if holder.get("host") != socket.gethostname():  # nothing can be known of another machine's processes
        return False
    try:
        os.kill(holder["driver"], 0)
        # one that was killed and that nobody has asked after is still there, as a zombie
        state = Path(f"/proc/{holder['driver']}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return True
    except (OSError, IndexError):  # another user's, or a system without /proc
        return False
    return state == "Z"


# ---- what may be opened


def _require_writable(path: Path) -> None:
    mode = path.stat().st_mode
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(path, os.W_OK):
        raise JournalError(f"{path}: it is read-only ({stat.filemode(mode)}); make it writable or use another file")


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
    with _translated(path), closing(_connect(path, "mode=ro&immutable=1")) as connection:
        page = _require_ours(path, connection)
    if path.stat().st_size % page:  # SQLite itself would take what is missing for zeros
        raise JournalError(f"{path}: it is damaged (truncated in the middle of a page); restore it from a copy")


def _require_ours(path: Path, connection: sqlite3.Connection) -> int:
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
    try:
        return path.with_name(path.name + "-journal").exists() or path.with_name(path.name + "-wal").stat().st_size > 0
    except FileNotFoundError:  # its last user removes it
        return False


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes nothing. Where it may, it is a full one, so that the last to leave tidies up the log."""
    with _translated(path):
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
            _require_ours(path, connection)
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise JournalError(f"{path}: it is damaged ({verdict.splitlines()[-1]}); restore it from a copy")
            yield connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=30)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """SQLite's errors as one line about the journal."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise JournalError(f"{path}: {error}; check the disk and the file's permissions") from error
    except sqlite3.IntegrityError as error:
        raise JournalError(
            f"{path}: something else has written it meanwhile ({error}); continue with a copy"
        ) from error
    except sqlite3.DatabaseError as error:
        raise JournalError(f"{path}: it is damaged ({error}); restore it from a copy") from error


# ---- words


def _shown(value: Any) -> str:
    return json.dumps(value) if isinstance(value, (dict, list)) else repr(value)


def _as_text(value: Any) -> str:
    """JSON, in which 1, 1.0 and True differ, and a tuple is the list that it is read back as."""
    return json.dumps(value, sort_keys=True)


def _space_differences(mine: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None) -> list[str]:
    before, now = ({} if space is None else Space.from_json(space).parameters for space in (mine, theirs))
    told = []
    for path in [*before, *(path for path in now if path not in before)]:
        a, b = before.get(path), now.get(path)
        if a is None or b is None or _as_text(a.to_json()) != _as_text(b.to_json()):
            told.append(f"{label(path)} is {a or 'absent'} in the journal and {b or 'absent'} now")
    return told
