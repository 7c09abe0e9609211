"""A user's notes on a study, in an append-only file beside its journal: a line of JSON for each."""

from __future__ import annotations

import errno
import json
import os
import stat
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from raybo.common import systems
from raybo.common.errors import JournalError
from raybo.journal.clean import clean_text
from raybo.journal.side_files import beside

LONGEST = 4_000  # characters of a note
MOST_BYTES = 4_000_000  # of the file that are read: the last


@dataclass(frozen=True)
class Note:
    """A note.

    Attributes:
        at: when it was taken, UTC in ISO 8601.
        trial: the trial it is about; None for the study.
        text: what it says.
    """

    at: str
    trial: int | None
    text: str


def notes_path(journal: Path | str) -> Path:
    """Return the path of the notes: `FILE.notes.jsonl` beside `FILE.db`."""
    return beside(journal, "notes.jsonl")


def take_note(journal: Path | str, text: str, trial: int | None = None) -> Note:
    """Add a note, now.

    Raises:
        JournalError: it is empty or too long, or cannot be written.
    """
    text = clean_text(text).strip()
    if not 0 < len(text) <= LONGEST:
        raise JournalError(f"a note has 1 to {LONGEST} characters, got {len(text)}; shorten it, or write something")
    note = Note(datetime.now(timezone.utc).isoformat(timespec="seconds"), trial, text)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | systems.NOFOLLOW | systems.NONBLOCK | systems.CLOEXEC
    try:
        handle = os.open(notes_path(journal), flags, 0o644)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            size = status.st_size
            torn = size > 0 and systems.read_at(handle, 1, size - 1) != b"\n"  # by a disk that was full
            line = ("\n" if torn else "") + json.dumps(asdict(note)) + "\n"
            if os.write(handle, line.encode()) < len(line):  # in one go: another may be writing too
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(handle)
    except OSError as error:
        raise JournalError(
            f"{notes_path(journal)}: the note cannot be written ({error.strerror}); check the disk and the "
            "directory's permissions"
        ) from error
    return note


def read_notes(journal: Path | str) -> list[Note]:
    """Every note, in the order in which they were taken; lines that hold none are left out."""
    try:
        handle = os.open(notes_path(journal), os.O_RDONLY | systems.NOFOLLOW | systems.NONBLOCK | systems.CLOEXEC)
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return []
            file.seek(max(0, os.fstat(handle).st_size - MOST_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    found = [_note(line) for line in lines]
    return [note for note in found if note is not None]


def _note(line: str) -> Note | None:
    try:
        note = Note(**json.loads(line))
        datetime.fromisoformat(note.at)
    except (TypeError, ValueError, RecursionError):
        return None
    is_trial = note.trial is None or (isinstance(note.trial, int) and not isinstance(note.trial, bool))
    if not isinstance(note.text, str) or not is_trial:
        return None
    return replace(note, text=note.text[:LONGEST])  # longer only if something else wrote it
