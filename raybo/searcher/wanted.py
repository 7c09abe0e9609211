"""The study that priors are for, as far as they are read for it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raybo.record.description import Description, as_text
from raybo.record.events import Asked, Event
from raybo.record.goals import Goals
from raybo.space import Space


@dataclass(frozen=True)
class Wanted:
    """The study that priors are for.

    Attributes:
        space, context: its own; context is None if none is declared.
        goals: its metrics and constraints.
        path: its journal; None if it is not kept.
        identity: what it keeps as its journal grows, see `identity_of`; empty before its first trial.
        is_plain: whether it has neither a scheduler nor cheap versions.
    """

    space: Space
    goals: Goals
    context: Space | None = None
    path: Path | None = None
    identity: str = ""
    is_plain: bool = True

    @classmethod
    def by(cls, description: Description, path: Path | None = None, identity: str = "") -> Wanted:
        """Return what a description wants of priors."""
        is_plain = description.scheduler is None and description.fidelity is None
        return cls(description.space, description.goals, description.context, path, identity, is_plain)


def identity_of(description: Description | None, events: Sequence[Event]) -> str:
    """Return a hash of a study's description and its first trial; empty if it has none yet."""
    first = next((event for event in events if isinstance(event, Asked)), None)
    if description is None or first is None:
        return ""
    return hash_of([as_text(description.to_json()), [first.at, first.data]])


def hash_of(content: Any) -> str:
    """Return a hash of plain data."""
    return hashlib.sha256(as_text(content).encode()).hexdigest()[:32]
