"""A journal read as it grows: after the first time only what has come since, however long it is."""

from __future__ import annotations

from pathlib import Path

from raybo.journal.chain import beginning
from raybo.journal.checks import Nonsense
from raybo.journal.reading import Held, read_from, read_whole
from raybo.record.description import Description
from raybo.record.events import Event


class Tail:
    """Reads a journal again and again, while somebody else may be writing it.

    Args:
        path: the journal.
    Attributes:
        times: how often it was read from its beginning: again where the file has become another journal's.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.times = 0
        self._held: Held | None = None
        self._number = 0  # of the last event that was read

    @property
    def description(self) -> Description:
        """The study's description, once it has been read."""
        assert self._held is not None, "read comes first"
        return self._held.description

    def read(self) -> list[Event]:
        """The events since the last call; all of them where `times` has grown.

        Raises:
            JournalError: there is no such journal, or it is not a whole one.
        """
        if self._held is not None:
            new = self._news(self._held)
            if new is not None:
                self._number += len(new)
                return new
        self._held = held = read_whole(self.path)
        self.times += 1
        self._number = len(held.events)
        return held.events

    def _news(self, held: Held) -> list[Event] | None:
        """Return the events after those already read; None if the file now holds something else."""
        before = held.rows.checksum
        text, rows = read_from(self.path, max(1, self._number))  # the last known one too, to know it again
        if beginning(text) != held.beginning:
            return None
        if self._number:
            if not rows or rows[0][-1] not in (None, before):
                return None
            del rows[0]
        try:
            return [held.rows.take(row) for row in rows]
        except Nonsense:  # reading all of it says what is wrong, and leaves nothing half read
            return None
