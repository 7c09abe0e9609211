"""random: independent uniform points, the yardstick that every method must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raybo.methods.method import Method
from raybo.methods.parts.initial_design import uniform
from raybo.record.events import Tags
from raybo.record.history import History, Proposal


@dataclass(frozen=True, kw_only=True)
class Random(Method):
    """Independent uniform points of the space."""

    takes_goals: ClassVar[bool] = True

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return a fresh uniform point, whatever the history."""
        return Proposal(uniform(history, rng))

    def explain(self, tags: Tags) -> str:
        """Return a constant."""
        return "a uniform random point"
