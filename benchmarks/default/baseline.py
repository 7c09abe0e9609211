"""The `auto` of raybo 0.1, which every change of it must beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.events import Tags
from raybo.history import History, Proposal
from raybo.methods.default.auto_0_1 import propose_as_0_1


@dataclass(frozen=True, kw_only=True)
class Auto01:
    """`auto` as raybo 0.1 had it."""

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Its rule."""
        return propose_as_0_1(history, rng, None)

    def explain(self, tags: Tags) -> str:
        """Nothing: nobody reads it here."""
        return ""
