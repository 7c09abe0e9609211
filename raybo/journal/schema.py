"""What makes an SQLite file a journal: its tables, its marks, and its errors as one line about it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raybo.errors import JournalError

SCHEMA = 1
APPLICATION = 0x52415942  # "RAYB", in the header of every journal
TABLES = (
    "CREATE TABLE study (description TEXT NOT NULL)",
    "CREATE TABLE event (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, trial INTEGER, at TEXT NOT NULL, "
    "data TEXT NOT NULL)",
)


@contextmanager
def errors_in_a_line(path: Path) -> Iterator[None]:
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
