"""drbo-kde: the worst expectation over laws of the context near an estimate of it.

Huang et al. (2024), Algorithm 2 and Proposition 2.
Departures: the inner problem is solved by sorting, not by a convex solver; the infimum is over all of the declared
contexts, at points frozen for the round and the atoms themselves, and has its part in the gradient; t in the radius is
the number of contexts known, or their effective number if older ones are forgotten. The rest is as in sbo-kde, the
search of the cube too (published: 32 candidates and 5 climbs, for the solver's sake).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raybo.acquisition import ContextConfidence
from raybo.common.options import option
from raybo.context import Density, TotalVariation, cover, numeric
from raybo.methods.contexts.over_contexts import Learned, OverDensity


@dataclass(frozen=True, kw_only=True)
class DrboKde(OverDensity):
    """The upper confidence bound averaged under the worst distribution in a total-variation ball around an estimate.

    Huang, Song, Xue, Qian (2024), "Stochastic Bayesian Optimization with Unknown Continuous Context Distribution via
    Kernel Density Estimation", AAAI, arXiv:2312.10423.
    """

    meaning: ClassVar[str] = "upper confidence bound under the worst distribution near the contexts' own"

    radius: float | None = option(
        None,
        "radius of the ball, in L1 distance (at most 2); none: t^(-2/(4 + numeric contexts))",
        at_least=0,
        at_most=2,
    )
    infimum: int = option(
        1024, "further contexts, spread over the whole range, among which the worst is sought", at_least=1
    )

    def bound(self, known: Learned, most: int) -> ContextConfidence:
        """Return the worst mean bound."""
        C, p = known.density.atoms(min(most, self.atoms), known.rng)
        anywhere = cover(known.density.cube, min(most // 2, self.infimum), known.rng)
        law = np.concatenate([p, np.zeros(len(anywhere))])
        ball = TotalVariation(law, radius_of(known.density) if self.radius is None else self.radius)
        return ContextConfidence(known.joint.gp, np.vstack([C, anywhere]), ball, self.kappa)


def radius_of(density: Density) -> float:
    """Return t^(-2 / (4 + D)), the rate of the density's L1 error with t contexts of D numbers; 2 if none is known.

    Source: Huang et al. (2024), Theorem 2.
    """
    if density.effective == 0.0:
        return 2.0
    D = int(numeric(density.cube).sum())
    return float(density.effective ** (-2.0 / (4.0 + D)))
