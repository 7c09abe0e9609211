"""Reading a journal: opening the file so that neither it nor its writer comes to harm, and what it holds."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from raybo.common.errors import JournalError, PathError
from raybo.common.messages import near, shown
from raybo.journal.acknowledged import Mark, from_text, mark_path, read_mark
from raybo.journal.chain import beginning, following
from raybo.journal.checks import Checker, Nonsense, description_of, text_of
from raybo.journal.schema import APPLICATION, SCHEMA, errors_in_a_line
from raybo.journal.side_files import journals_of
from raybo.record.description import Description
from raybo.record.events import Event

URL = re.compile(r"[a-z][a-z0-9+]+:/")  # as other libraries name a storage, sqlite:///study.db; a Path has one slash


@dataclass(frozen=True)
class Held:
    """The content of a journal.

    Attributes:
        description: what is studied.
        events: its history.
        beginning, checksum: the first and the last link of its chain.
        schema: that of the file.
        rows: reads what follows them.
    """

    description: Description
    events: list[Event]
    beginning: str
    checksum: str
    schema: int
    rows: Rows


def read(path: Path | str, known: Description | None = None) -> tuple[Description, list[Event]]:
    """Read a journal; never blocks its writer, and is not blocked by it.

    Args:
        path: the journal.
        known: what it is expected to be about; not parsed again, but returned as it is, if the journal agrees.
    Raises:
        JournalError: there is no such file, or it is not a journal that this version can read, or not a whole one.
    """
    held = read_whole(as_path(path), known)
    return held.description, held.events


def read_whole(path: Path, known: Description | None = None) -> Held:
    """Read a journal as `read` does, with what a writer must know to continue it."""
    _require_journal(path)
    mark = read_mark(path)  # first: what is acknowledged meanwhile is in what is read
    with _reading(path) as connection:
        (schema,) = connection.execute("PRAGMA user_version").fetchone()
        names = [row[1] for row in connection.execute("PRAGMA table_info(event)")]
        if names and (schema > 1) != ("checksum" in names):
            raise JournalError(f"{path}: it is damaged (its schema is not {schema}); restore it from a copy")
        studies, rows = _tables(connection, schema, 1)
    try:
        return _checked(path, studies, rows, mark, schema, known)
    except Nonsense as error:
        raise JournalError(f"{path}: it is damaged ({error}); restore it from a copy") from error


def read_from(path: Path, number: int) -> tuple[str, list[tuple[Any, ...]]]:
    """The description of a journal, as it holds it, and the rows of its events from a number on, unchecked.

    Raises:
        JournalError: the journal cannot be read.
    """
    _require_journal(path)
    with _reading(path, is_known=True) as connection:
        (schema,) = connection.execute("PRAGMA user_version").fetchone()
        studies, rows = _tables(connection, schema, number)
    return (studies[0][0] if studies else ""), rows


def _tables(
    connection: sqlite3.Connection, schema: int, number: int
) -> tuple[list[tuple[Any, Any]], list[tuple[Any, ...]]]:
    """Return both tables' content at one moment, with the events from a number on."""
    checksum, closed_at = ("checksum", "closed_at") if schema > 1 else ("NULL", "NULL")
    connection.execute("BEGIN")
    rows = connection.execute(
        f"SELECT number, kind, trial, at, data, {checksum} FROM event WHERE number >= ? ORDER BY number", (number,)
    ).fetchall()
    studies = connection.execute(f"SELECT description, {closed_at} FROM study").fetchall()
    connection.execute("COMMIT")
    return studies, rows


def _checked(
    path: Path,
    studies: list[tuple[Any, Any]],
    rows: list[tuple[Any, ...]],
    mark: Mark | None,
    schema: int,
    known: Description | None,
) -> Held:
    if len(studies) != 1 or not isinstance(studies[0][0], str):
        raise Nonsense("it does not describe its study")
    text, closed_at = studies[0]
    last = beginning(text)
    ends = [end for end in (mark, None if closed_at is None else from_text(closed_at)) if end and end.beginning == last]
    if closed_at is not None and (len(ends) == 0 or ends[-1] is mark):
        raise Nonsense("its description has been changed")
    expected = {(end.number, end.checksum): end for end in ends}
    for number, checksum in list(expected):
        if number == 0 and checksum == last:
            del expected[number, checksum]
    rows_read = Rows(text, known)
    events: list[Event] = []
    for row in rows:
        events.append(event := rows_read.take(row))
        expected.pop((event.number, rows_read.checksum), None)
    if expected:
        end = max(expected.values(), key=lambda end: end.number)
        if end.number <= len(events):
            raise Nonsense(f"event {end.number} has been changed")
        go_on = (
            f"restore it from a copy, or remove {mark_path(path)} to continue with what is left" if end is mark else ""
        )
        raise JournalError(
            f"{path}: {end.number - len(events)} of {end.number} committed events are missing at its end; "
            f"{go_on or 'restore it from a copy'}"
        )
    return Held(rows_read.description, events, last, rows_read.checksum, schema, rows_read)


class Rows:
    """Makes events of a journal's rows, each checked against those before it.

    Args:
        text: the description, as the journal holds it.
        known: a description that need not be parsed if this is its text.
    Attributes:
        description: what is studied.
        checksum: the last link of the chain so far.
    """

    def __init__(self, text: str, known: Description | None = None) -> None:
        studied = known if known is not None and text_of(known) == text else description_of(text)
        self.description = studied
        self.checksum = beginning(text)
        self._checker = Checker(studied.space, studied.context, studied.goals, studied.judged)
        self._is_chained = False

    def take(self, row: tuple[Any, ...]) -> Event:
        """The event in the next row: number, kind, trial, at, data, checksum; Nonsense where it cannot follow."""
        *content, checksum = row
        event = self._checker.read(*content)
        self.checksum = following(self.checksum, *content)
        if (self._is_chained or checksum is not None) and checksum != self.checksum:
            raise Nonsense(f"event {event.number} has been changed")
        self._is_chained = checksum is not None
        return event


def as_path(given: Path | str, what: str = "a journal") -> Path:
    """Return a user's argument as a path; PathError if it is not one."""
    try:
        path = Path(given)
    except TypeError:
        raise PathError(f"{what} must be a path, got {shown(given)}") from None
    if URL.match(str(path)) and not Path(path.parts[0]).exists():
        raise PathError(f"{what} must be a path, got the URL {shown(str(given))}; give the file alone: {path.name}")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:  # half a character, which no file's name can have
        raise PathError(f"{shown(str(path))}: this path cannot be used ({error.reason}); give another name") from None
    return path


def exists(path: Path | str) -> bool:
    """True if something has been written there; an empty file is nothing yet."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:  # a null byte in the name, a name that is too long
        why = getattr(error, "strerror", None) or error
        raise PathError(f"{shown(str(path))}: this path cannot be used ({why}); give another name") from None
    return stat.S_ISDIR(status.st_mode) or status.st_size > 0


def require_exists(path: Path | str) -> None:
    """JournalError where there is no such file."""
    path = as_path(path)
    if not exists(path) and not os.path.exists(path):
        beside = [str(found) for found in sorted(path.parent.glob("*.db"))]
        likely = _its_journal(path) or near(str(path), beside)
        remedy = f"did you mean {likely!r}?" if likely else f"`raybo tune ... --storage {quote(str(path))}` makes one"
        raise JournalError(f"{path}: no such file; {remedy}")


def _its_journal(path: Path) -> str | None:
    """Return the journal that `raybo tune` makes of a job at `path`, if there is one."""
    journal = path.with_suffix(".db")
    return str(journal) if journal != path and journal.exists() else None


def is_marked(path: Path) -> bool:
    """True if a file says that it is a journal, however damaged; False where it cannot be read."""
    try:
        with closing(_connect(path, "mode=ro&immutable=1")) as connection:
            return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION)
    except (sqlite3.Error, UnicodeDecodeError, OSError, ValueError):
        return False


def require_no_journal(path: Path | str, journal: Path | str | None = None) -> None:
    """Refuse to write to a journal, or to a file that belongs to one: its log, lock, notes, trials.

    Args:
        path: where something else is to be written.
        journal: a journal that need not be there yet.
    Raises:
        JournalError: the path is a journal or belongs to one.
    """
    if os.path.isfile(path) and is_marked(Path(path)):
        raise JournalError(f"{path}: it is the journal of a study, which would be lost; give another file")
    own = None if journal is None else os.path.realpath(journal).casefold()
    for owner in journals_of(path):
        is_own = own is not None and os.path.realpath(owner).casefold() == own
        if is_own or any(is_marked(file) for file in _same_name(owner)):
            raise JournalError(f"{path}: it belongs to the journal {owner.name}, which needs it; give another file")


def _same_name(path: Path) -> list[Path]:
    """Return the regular files that have this name in any case."""
    try:
        names = [name for name in os.listdir(path.parent) if name.casefold() == path.name.casefold()]
    except OSError:
        return []
    return [path.with_name(name) for name in names if path.with_name(name).is_file()]


def require_regular(path: Path) -> None:
    """JournalError where there is something that is no file, and might never answer."""
    if os.path.exists(path) and not path.is_file():
        raise JournalError(f"{path}: it is {'a directory' if path.is_dir() else 'not a regular file'}; give a file")


# ---- opening


def _require_journal(path: Path) -> None:
    """Raise JournalError unless the file is a whole journal of a schema that this version reads. Changes nothing."""
    require_exists(path)
    require_regular(path)
    if _has_log(path):
        return  # the file alone need not make sense: half of a log may be folded into it, half of a journal written
    if not exists(path):
        raise JournalError(_no_study_yet(path))
    # not by reading its first bytes: a process that closes a file by hand loses the locks that SQLite holds on it, and
    # the next reader to leave would take the log away from under the writer
    with errors_in_a_line(path), closing(_connect(path, "mode=ro&immutable=1")) as connection:
        page = _require_marks(path, connection)
    if path.stat().st_size % page:  # SQLite itself would take what is missing for zeros
        raise JournalError(f"{path}: it is damaged (truncated in the middle of a page); restore it from a copy")


def _no_study_yet(path: Path) -> str:
    return f"{path}: there is no study in it yet; `raybo tune ... --storage {path}` begins one"


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
        likely = _its_journal(path)
        remedy = f"did you mean {likely!r}?" if likely else "give another file"
        raise JournalError(f"{path}: it is not a raybo journal (not an SQLite file); {remedy}") from None
    is_whole = path.stat().st_size >= page  # shorter files count as empty databases
    if application == 0 and is_whole and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise JournalError(_no_study_yet(path))  # its writer was killed while it created the file
    if application != APPLICATION:
        raise JournalError(f"{path}: it is an SQLite file of another program; give another file")
    if schema < 1:
        raise JournalError(f"{path}: it is damaged (there is no schema {schema}); restore it from a copy")
    if schema > SCHEMA:
        raise JournalError(f"{path}: a newer raybo wrote it (schema {schema}, this one reads {SCHEMA}); upgrade raybo")
    return int(page)


def _has_log(path: Path) -> bool:
    """True if something is in the write-ahead log, or the transaction that begins a study is being written."""
    path = Path(os.path.realpath(path))  # SQLite keeps its log beside the file that links lead to
    try:
        return path.with_name(path.name + "-journal").exists() or path.with_name(path.name + "-wal").stat().st_size > 0
    except FileNotFoundError:  # its last user removes it
        return False


@contextmanager
def _reading(path: Path, *, is_known: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection that writes nothing. Where it may, it is a full one, so that the last to leave tidies up the log.

    A file that is known has been looked through before, which takes as long as it is large.
    """
    with errors_in_a_line(path):
        for mode in ("mode=rw", "mode=ro", "mode=ro&immutable=1"):  # the last: no place for the log's index
            connection = _connect(path, mode)
            try:
                connection.execute("PRAGMA query_only=1")
                connection.execute("SELECT 1 FROM sqlite_master").fetchone()
                break
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                connection.close()
                cannot_open = isinstance(error, sqlite3.OperationalError) and "locked" not in str(error)
                if not cannot_open or mode.endswith("immutable=1"):
                    raise
        with closing(connection):
            _require_marks(path, connection)
            (verdict,) = ("ok",) if is_known else connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise JournalError(f"{path}: it is damaged ({verdict.splitlines()[-1]}); restore it from a copy")
            yield connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=30)
