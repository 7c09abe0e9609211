"""drbo-kde: the worst expectation over laws of the context near an estimate of it.

Huang, Song, Xue, Qian (2024), "Stochastic Bayesian Optimization with Unknown Continuous Context Distribution via Kernel
Density Estimation", AAAI, arXiv:2312.10423, Algorithm 2 and Proposition 2.
Departures: the inner problem is solved by sorting, not by a convex solver; the infimum is over all of the declared
contexts, at points frozen for the round and the atoms themselves, and has its part in the gradient; t in the radius is
the number of contexts known, or what they are worth where older ones are forgotten. The rest is as in sbo-kde, the
search of the cube too (published: 32 candidates and 5 climbs, for the solver's sake).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.acquisition import ContextConfidence
from raybo.context import Density, TotalVariation, cover, numeric
from raybo.errors import MethodError
from raybo.events import Tags
from raybo.history import History, Proposal
from raybo.methods.shared.options import option, require_counts
from raybo.methods.shared.over_contexts import (
    SCREENED,
    DensityOptions,
    Learned,
    explain_over_contexts,
    propose_over_contexts,
)


@dataclass(frozen=True, kw_only=True)
class DrboKde(DensityOptions):
    """The upper confidence bound averaged under the worst law within a total-variation ball around a density estimate.

    Huang, Song, Xue, Qian (2024), "Stochastic Bayesian Optimization with Unknown Continuous Context Distribution via
    Kernel Density Estimation", AAAI.
    """

    radius: float | None = option(None, "of the ball, in L1 distance (at most 2); none: t^(-2/(4 + numeric contexts))")
    infimum: int = option(1024, "further contexts, spread over all, among which the worst is sought")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "infimum")
        if self.radius is not None and not 0.0 <= self.radius <= 2.0:
            raise MethodError(f"radius must lie in [0, 2], got {self.radius}")

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design, then the maximiser of the worst mean bound."""

        def worst(known: Learned, atoms: int, infimum: int) -> ContextConfidence:
            C, p = known.density.atoms(atoms, known.rng)
            anywhere = cover(known.density.cube, infimum, known.rng)
            law = np.concatenate([p, np.zeros(len(anywhere))])
            ball = TotalVariation(law, radius_of(known.density) if self.radius is None else self.radius)
            return ContextConfidence(known.joint.gp, np.vstack([C, anywhere]), ball, self.kappa)

        def stages(known: Learned) -> tuple[ContextConfidence, ContextConfidence]:
            coarse = worst(known, min(SCREENED, self.atoms), min(SCREENED // 2, self.infimum))
            return coarse, worst(known, self.atoms, self.infimum)

        return propose_over_contexts(self, history, rng, stages)

    def explain(self, tags: Tags) -> str:
        """The design, or what is expected of the point over the contexts."""
        return explain_over_contexts(tags, "upper confidence bound under the worst law near the contexts' own")


def radius_of(density: Density) -> float:
    """t^(-2 / (4 + D)), the rate of the density's L1 error with t contexts of D numbers; 2 where none is known.

    Source: Huang et al. (2024), Theorem 2.
    """
    if density.effective == 0.0:
        return 2.0
    D = int(numeric(density.cube).sum())
    return float(density.effective ** (-2.0 / (4.0 + D)))
