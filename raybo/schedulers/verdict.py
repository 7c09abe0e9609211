"""Defines a scheduler's verdict on a trial, and formats its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from raybo.record.history import History


@dataclass(frozen=True)
class Verdict:
    """A scheduler's decision on a trial at a step.

    Attributes:
        action: "go" (continue), "prune", or "pause" until it is promoted.
        why: in a few words, with the figures; empty if nothing was decided.
        numbers: the figures as plain JSON: rung, cutoff, rank, probability.
    Example:
        >>> from raybo.schedulers import GO, Verdict
        >>> verdict = Verdict("prune", "0.61 at step 4: below the floor", {"value": 0.61})
        >>> verdict.prune, verdict.pause, GO.prune
        (True, False, False)
    """

    action: Literal["go", "prune", "pause"] = "go"
    why: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def prune(self) -> bool:
        """True if the trial is to end."""
        return self.action == "prune"

    @property
    def pause(self) -> bool:
        """True if the trial is to wait."""
        return self.action == "pause"


GO = Verdict()


def in_words(history: History, y: float) -> str:
    """Return a maximised value as text in the user's sign."""
    return f"{history.value_of(y):.6g}"


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
