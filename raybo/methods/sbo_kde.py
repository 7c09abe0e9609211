"""sbo-kde: the best expectation over contexts whose law is estimated from those that were met.

Huang, Song, Xue, Qian (2024), "Stochastic Bayesian Optimization with Unknown Continuous Context Distribution via Kernel
Density Estimation", AAAI, arXiv:2312.10423, Algorithm 1; margin numbers are its lines.
Departures: the atoms are a scrambled Sobol sample of the density, not an independent one; few of them screen the cube,
from 512 candidates by 4 climbs (published: 1,024 and 50), and all polish what is found; contexts are clipped to their
declared bounds; values are standardised by their deviation with divisor n (n - 1 there); pending trials enter the model
at contexts drawn from the density, with the posterior mean; failed trials count as the worst value seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.acquisition import ContextConfidence
from raybo.context import Expectation
from raybo.events import Tags
from raybo.history import History, Proposal
from raybo.methods.shared.over_contexts import (
    SCREENED,
    DensityOptions,
    Learned,
    explain_over_contexts,
    propose_over_contexts,
)


@dataclass(frozen=True, kw_only=True)
class SboKde(DensityOptions):
    """The upper confidence bound averaged over contexts drawn from a kernel density estimate of their law.

    Huang, Song, Xue, Qian (2024), "Stochastic Bayesian Optimization with Unknown Continuous Context Distribution via
    Kernel Density Estimation", AAAI.
    """

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design, then the maximiser of the averaged bound."""

        def averaged(known: Learned, m: int) -> ContextConfidence:
            atoms, p = known.density.atoms(m, known.rng)  # line 6
            return ContextConfidence(known.joint.gp, atoms, Expectation(p), self.kappa)

        def stages(known: Learned) -> tuple[ContextConfidence, ContextConfidence]:
            return averaged(known, min(SCREENED, self.atoms)), averaged(known, self.atoms)

        return propose_over_contexts(self, history, rng, stages)

    def explain(self, tags: Tags) -> str:
        """The design, or what is expected of the point over the contexts."""
        return explain_over_contexts(tags, "upper confidence bound averaged over contexts")
