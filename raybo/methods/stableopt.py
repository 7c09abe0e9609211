"""stableopt: the lowest upper confidence bound over a box around the contexts met.

Bogunovic, Scarlett, Jegelka, Cevher (2018), "Adversarially Robust Optimization with Gaussian Processes", NeurIPS, as
compared by Huang et al. (2024): mean +- one standard deviation of each context, 1024 Sobol points.
Departures: the box ends at the contexts' bounds; of categories, it holds those that were met. The rest is as in
sbo-kde; the density serves only to imagine the contexts of pending trials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raybo.acquisition import ContextConfidence
from raybo.context import Lowest, box
from raybo.history import History, Proposal, Tags
from raybo.methods.context_model import (
    SCREENED,
    Learned,
    Solver,
    explain_over_contexts,
    propose_over_contexts,
    require_positive,
)
from raybo.methods.options import option


@dataclass(frozen=True, kw_only=True)
class StableOpt:
    """The lowest upper confidence bound over contexts within a standard deviation of their mean.

    Bogunovic, Scarlett, Jegelka, Cevher (2018), "Adversarially Robust Optimization with Gaussian Processes", NeurIPS.
    """

    needs_context: ClassVar[bool] = True

    kappa: float = option(1.5, "standard deviations added to the mean")
    atoms: int = option(1024, "contexts in the box, among which the worst is sought")
    initial: int | None = option(None, "points of the Sobol design; none: 10, at most a quarter of the trials")
    solver: Solver = option(
        "lbfgsb", "how the cube is searched, with few of the contexts; with all, what it finds is then improved"
    )

    def __post_init__(self) -> None:
        require_positive("stableopt", atoms=self.atoms, initial=self.initial)

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design, then the maximiser of the lowest bound."""

        def lowest(known: Learned, m: int) -> ContextConfidence:
            atoms = box(known.contexts, known.density.cube, m, known.rng)
            return ContextConfidence(known.joint.gp, atoms, Lowest(), self.kappa)

        return propose_over_contexts(
            "stableopt",
            history,
            rng,
            lambda known: (lowest(known, min(SCREENED, self.atoms)), lowest(known, self.atoms)),
            solver=self.solver,
            kappa=self.kappa,
            initial=self.initial,
            half_life=None,
        )

    def explain(self, tags: Tags) -> str:
        """The design, or what is expected of the point over the contexts."""
        return explain_over_contexts(tags, "lowest upper confidence bound around the contexts met")
