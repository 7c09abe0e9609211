"""stableopt: the lowest upper confidence bound over a box around the contexts met.

Bogunovic, Scarlett, Jegelka, Cevher (2018), "Adversarially Robust Optimization with Gaussian Processes", NeurIPS, as
compared by Huang et al. (2024): mean +- one standard deviation of each context, 1024 Sobol points.
Departures: the box ends at the contexts' bounds; of categories, it holds those that were met. The rest is as in
sbo-kde; the density serves only to imagine the contexts of pending trials.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.acquisition import ContextConfidence
from raybo.context import Lowest, box
from raybo.events import Tags
from raybo.history import History, Proposal
from raybo.methods.shared.options import option, require_counts
from raybo.methods.shared.over_contexts import (
    SCREENED,
    ContextOptions,
    Learned,
    explain_over_contexts,
    propose_over_contexts,
)


@dataclass(frozen=True, kw_only=True)
class StableOpt(ContextOptions):
    """The lowest upper confidence bound over contexts within a standard deviation of their mean.

    Bogunovic, Scarlett, Jegelka, Cevher (2018), "Adversarially Robust Optimization with Gaussian Processes", NeurIPS.
    """

    atoms: int = option(1024, "contexts in the box, among which the worst is sought")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "atoms")

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design, then the maximiser of the lowest bound."""

        def lowest(known: Learned, m: int) -> ContextConfidence:
            atoms = box(known.contexts, known.density.cube, m, known.rng)
            return ContextConfidence(known.joint.gp, atoms, Lowest(), self.kappa)

        def stages(known: Learned) -> tuple[ContextConfidence, ContextConfidence]:
            return lowest(known, min(SCREENED, self.atoms)), lowest(known, self.atoms)

        return propose_over_contexts(self, history, rng, stages)

    def explain(self, tags: Tags) -> str:
        """The design, or what is expected of the point over the contexts."""
        return explain_over_contexts(tags, "lowest upper confidence bound around the contexts met")
