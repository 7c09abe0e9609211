"""The last event that a writer was told is committed, in a small file beside the journal while it is being written.

A journal whose write-ahead log is damaged looks like one that was committed less: SQLite ends it at the first frame
that makes no sense. This file says how far it went. It is written after each commit and not waited for: it outlives the
death of every process, and after a power cut it may only say less than what the disk was told to keep. A writer that
closes the journal removes it; after a kill it stays until the journal is closed the next time.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from raybo.common import systems
from raybo.common.errors import JournalError

LOOKS = 3  # at a file that is being written just now


@dataclass(frozen=True)
class Mark:
    """The end that a journal had reached.

    Attributes:
        number: of the last event; 0 before the first.
        checksum: of that event, in the chain.
        beginning: the checksum before the first event, by which the journal is recognised.
    """

    number: int
    checksum: str
    beginning: str

    def to_text(self) -> str:
        """A line of fixed length, with its own checksum."""
        line = f"{self.number:020d} {self.checksum} {self.beginning}"
        return f"{line} {zlib.crc32(line.encode()):08x}\n"


def mark_path(journal: Path) -> Path:
    """The file beside the journal, which is found by every path that leads to it."""
    real = Path(os.path.realpath(journal))
    return real.with_name(real.name + "-ack")


def read_mark(journal: Path) -> Mark | None:
    """Return a journal's acknowledged end; None if no writer has left a readable mark."""
    for _ in range(LOOKS):
        try:
            text = mark_path(journal).read_text(encoding="ascii")
        except (OSError, ValueError):
            return None
        if (mark := from_text(text)) is not None:
            return mark
    return None


def from_text(text: str) -> Mark | None:
    """The mark in a line that `Mark.to_text` made; None where it is not whole."""
    parts = text.split()
    if len(parts) != 4 or not parts[0].isdecimal():
        return None
    mark = Mark(int(parts[0]), parts[1], parts[2])
    return mark if mark.to_text() == text else None


class Marker:
    """Writes the mark of a journal that is open for writing.

    Raises:
        JournalError: the file cannot be made.
    """

    def __init__(self, journal: Path) -> None:
        self.path = mark_path(journal)
        try:
            self.path.unlink(missing_ok=True)  # never written through, whoever made it
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | systems.CLOEXEC, 0o644)
        except OSError as error:
            raise JournalError(
                f"{journal}: {self.path.name} next to it cannot be written ({error.strerror}); "
                "check the disk and the directory's permissions"
            ) from error

    def write(self, mark: Mark) -> None:
        """Say how far the journal goes."""
        try:
            systems.write_at(self._file, mark.to_text().encode("ascii"), 0)
        except OSError:  # the disk is full: it goes on saying less, and the journal's own commits are what counts
            return

    def close(self) -> None:
        """Leave no file: the journal itself says how far it goes."""
        systems.remove_open(self.path, lambda: os.close(self._file))
