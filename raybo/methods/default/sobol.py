"""sobol: a scrambled low-discrepancy sequence, evenly spread at every length.

Owen's scrambling (1998), by scipy's generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raybo.methods.method import Method
from raybo.methods.parts.initial_design import sobol_proposal
from raybo.record.events import Tags
from raybo.record.history import History, Proposal


@dataclass(frozen=True, kw_only=True)
class Sobol(Method):
    """A scrambled Sobol sequence: points that fill the space evenly. Results are not used.

    Owen (1998), "Scrambling Sobol' and Niederreiter-Xing points".
    """

    takes_goals: ClassVar[bool] = True

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return the next point of the study's sequence, whose seed is drawn with its first point."""
        return sobol_proposal(history, rng)

    def explain(self, tags: Tags) -> str:
        """Return a constant."""
        return "the next point of the Sobol sequence"
