"""stableopt: the lowest upper confidence bound over a box around the observed contexts.

Bogunovic et al. (2018), as compared by Huang et al. (2024): mean +- one standard deviation of each context, 1024 Sobol
points.
Departures: the box ends at the contexts' bounds; of categories, it holds the observed ones. The rest is as in
sbo-kde; the density serves only to imagine the contexts of pending trials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raybo.acquisition import ContextConfidence
from raybo.common.options import option
from raybo.context import Lowest, box
from raybo.methods.contexts.over_contexts import Learned, OverContexts


@dataclass(frozen=True, kw_only=True)
class StableOpt(OverContexts):
    """The lowest upper confidence bound over contexts within a standard deviation of their mean.

    Bogunovic, Scarlett, Jegelka, Cevher (2018), "Adversarially Robust Optimization with Gaussian Processes", NeurIPS.
    """

    meaning: ClassVar[str] = "lowest upper confidence bound around the contexts met"

    atoms: int = option(1024, "contexts in the box, among which the worst is sought", at_least=1)

    def bound(self, known: Learned, most: int) -> ContextConfidence:
        """Return the lowest bound."""
        atoms = box(known.contexts, known.density.cube, min(most, self.atoms), known.rng)
        return ContextConfidence(known.joint.gp, atoms, Lowest(), self.kappa)
