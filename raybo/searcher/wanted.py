"""The study that priors are for, as far as they are read for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raybo.record.description import Description
from raybo.record.goals import Goals
from raybo.space import Space


@dataclass(frozen=True)
class Wanted:
    """The study that priors are for.

    Attributes:
        space, context: its own; context is None if none is declared.
        goals: its metrics and constraints.
        path: its journal; None if it is not kept.
    """

    space: Space
    goals: Goals
    context: Space | None = None
    path: Path | None = None

    @classmethod
    def by(cls, description: Description, path: Path | None = None) -> Wanted:
        """Return what a description wants of priors."""
        return cls(description.space, description.goals, description.context, path)
