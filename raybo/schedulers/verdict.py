"""What a scheduler says about a trial, and how it writes numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from raybo.record.history import History


@dataclass(frozen=True)
class Verdict:
    """What a scheduler says of a trial at a step.

    Attributes:
        action: "go" on, "prune" it, or "pause" it until it is promoted.
        why: in a few words, with the figures; empty where it goes on without a question.
        numbers: what decided, plain JSON: rung, cutoff, rank, probability.
    """

    action: Literal["go", "prune", "pause"] = "go"
    why: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def prune(self) -> bool:
        """Whether the trial is to end."""
        return self.action == "prune"

    @property
    def pause(self) -> bool:
        """Whether it is to wait."""
        return self.action == "pause"


GO = Verdict()


def in_words(history: History, y: float) -> str:
    """A maximised value as its user reads it."""
    return f"{history.value_of(y):.6g}"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
