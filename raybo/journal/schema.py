"""The schema of a journal: its SQLite tables, its marks, and SQLite's errors as one line about it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raybo.common.errors import JournalError

SCHEMA = 2
APPLICATION = 0x52415942  # "RAYB", in the header of every journal
TABLES = (
    "CREATE TABLE study (description TEXT NOT NULL, closed_at TEXT)",
    "CREATE TABLE event (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, trial INTEGER, at TEXT NOT NULL, "
    "data TEXT NOT NULL, checksum TEXT)",
)
FROM_1 = (  # what a journal of schema 1 lacks; its events stay as they are, without checksums
    "ALTER TABLE study ADD COLUMN closed_at TEXT",
    "ALTER TABLE event ADD COLUMN checksum TEXT",
)


@contextmanager
def errors_in_a_line(path: Path) -> Iterator[None]:
    """SQLite's errors as one line about the journal."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "decode" in str(error) or "no such" in str(error):  # text that is none, a table or a column that is missing
            raise JournalError(f"{path}: it is damaged ({error}); restore it from a copy") from error
        raise JournalError(f"{path}: {error}; check the disk and the file's permissions") from error
    except UnicodeDecodeError as error:  # in an error of SQLite's about a text that is damaged
        raise JournalError(f"{path}: it is damaged ({error.reason}); restore it from a copy") from error
    except sqlite3.IntegrityError as error:
        raise JournalError(
            f"{path}: something else has written to it meanwhile ({error}); continue with a copy"
        ) from error
    except sqlite3.DatabaseError as error:
        raise JournalError(f"{path}: it is damaged ({error}); restore it from a copy") from error
