"""The limit on trials that Ray Tune runs at a time, kept also after a restore, of which Tune says little."""

from __future__ import annotations

import time

IDLE_SECONDS = 0.9  # Tune asks several times a second while any trial runs, and once a second if none does
IDLE_TIMES = 4  # questions in a row, each after such a pause, that show that no trial runs


class Limit:
    """The limit on pending trials.

    Trials that were pending when the state was saved count until it shows that Tune runs none of them.

    Attributes:
        most: how many trials may be pending; None for any number.
        restored: trials that were pending when the state was saved, and of which Tune has said nothing since.
    """

    def __init__(self) -> None:
        self.most: int | None = None
        self.restored: set[str] = set()
        self._may_run = False  # True while restored trials may be running
        self._asked = 0.0  # when Tune asked last, while the limit was reached
        self._idle = 0  # questions in a row that came as if nothing ran
        self._ended = 0  # trials that have ended since the state was restored

    def restore(self, pending: set[str]) -> None:
        """Begin again with trials that were pending when the state was saved."""
        self.restored = pending
        self._may_run, self._idle, self._ended = True, 0, 0

    def note_sign_of(self, trial_id: str) -> None:
        """Note that Tune has said something of a trial."""
        self.restored.discard(trial_id)
        self._idle = 0

    def is_reached(self, pending: set[str]) -> bool:
        """True if as many trials are pending as are allowed."""
        if self.most is None:
            return False
        if len(pending) < self.most or not self.restored:
            return len(pending) >= self.most
        before, self._asked = self._asked, time.monotonic()
        self._idle = self._idle + 1 if self._asked - before > IDLE_SECONDS else 0
        self._may_run = self._may_run and self._idle < IDLE_TIMES
        return self._may_run or len(pending - self.restored) >= self.most

    def abandoned(self) -> list[str]:
        """Note that a trial has ended; return the restored ones once twice as many others have ended, and drop them."""
        self._ended += 1
        if self._ended <= 2 * len(self.restored):
            return []
        abandoned, self.restored = sorted(self.restored), set()
        return abandoned
