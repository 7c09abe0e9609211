"""Detects that a study's first trials all fail for the same reason, in the job or its surroundings. Pure."""

from __future__ import annotations

import re

from raybo.record.events import Event, Kind

FEWEST = 5  # failures that stop a study; with more workers, one per worker
_VARYING = re.compile(r"0x[0-9a-fA-F]+|[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?")  # addresses and numbers in a message


class RepeatedFailures:
    """Counts failures with the same reason, in the order of the journal.

    Attributes:
        reason: of the last failure, while all have the same; empty if they differ, or a trial has finished.
        count: how many failures have had it.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.count = 0
        self._is_over = False

    def add(self, event: Event, *, is_new: bool) -> None:
        """Add an event of a trial that was run.

        Args:
            event: the event.
            is_new: whether it is of this command; of earlier ones only finished trials count.
        """
        if event.kind is Kind.TOLD:
            self._is_over = True
        elif event.kind is Kind.FAILED and is_new and not self._is_over:
            reason = event.data.get("reason", "")
            self._is_over = bool(self.count) and _constant(reason) != _constant(self.reason)
            self.reason, self.count = reason, self.count + 1
        if self._is_over:
            self.reason, self.count = "", 0

    def is_hopeless(self, workers: int) -> bool:
        """True if so many have failed for the same reason that the others would too."""
        return self.count >= max(FEWEST, workers)


def _constant(reason: str) -> str:
    return _VARYING.sub("#", reason)
