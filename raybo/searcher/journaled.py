"""The journal of a searcher: what is asked and told is committed before the searcher says so."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import TypeVar

from raybo.common.errors import JournalError
from raybo.journal import Journal, as_path, clean, requests
from raybo.record.description import Description
from raybo.record.events import Event

E = TypeVar("E", bound=Event)


class Kept:
    """A journal that a searcher writes: closed with the searcher, and at the latest when the process ends.

    Args:
        path: the journal; made where there is none.
    Attributes:
        path: the same, absolute.
        description: what the journal says that is studied; None if there is none yet.
        events: what it held when it was opened.
    Raises:
        JournalInUse: it is being written already.
        JournalError: it cannot be written, or is not a journal.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = as_path(path, "storage").absolute()
        self._journal = Journal(self.path)
        self.description, self.events = self._journal.description, self._journal.events
        self._unwritten: list[Event] = []
        self._process = os.getpid()
        self._closing = weakref.finalize(self, _close, self._journal, self._process)

    def begin(self, description: Description) -> None:
        """Make ready to write. Raises JournalError if it is another study's."""
        self._journal.begin(description.without_objects())
        requests.stop_listening(self.path)  # as a study did that was killed: a loop of the user's takes no requests

    def require_open(self) -> None:
        """Raise JournalError if it is closed, or belongs to another process."""
        if not self._closing.alive:
            raise JournalError(f"{self.path}: this searcher is closed; open another one on the journal to continue")
        if self._process != os.getpid():
            raise JournalError(
                f"{self.path}: process {self._process} opened this searcher, and only that process may ask and tell"
            )

    def ready(self, event: E) -> E:
        """Return an event as it will be read back. Raises as `require_open`."""
        self.require_open()
        return clean(event)

    def add(self, event: E) -> E:
        """Have a numbered event written by the next commit, and return it."""
        self._unwritten.append(event)
        return event

    def commit(self) -> None:
        """Write what was added. Raises JournalError if that fails; then the next commit tries again."""
        if self._unwritten:
            self.require_open()
            self._journal.append(self._unwritten)
            self._unwritten = []

    def close(self) -> None:
        """Write what is left, and let others write. Does nothing the second time."""
        if not self._closing.alive:
            return
        try:
            self.commit()
        finally:
            self._closing()


def _close(journal: Journal, process: int) -> None:
    if os.getpid() == process:  # a fork must not take the lock from the process that it was made by
        journal.close()
