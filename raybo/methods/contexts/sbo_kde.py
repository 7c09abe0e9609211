"""sbo-kde: the best expectation over contexts whose law is estimated from the observed ones.

Huang et al. (2024), Algorithm 1; margin numbers are its lines.
Departures: the atoms are a scrambled Sobol sample of the density, not an independent one; few of them screen the cube,
from 512 candidates by 4 climbs (published: 1,024 and 50), and all polish what is found; contexts are clipped to their
declared bounds; values are standardised by their deviation with divisor n (n - 1 there); pending trials enter the model
at contexts drawn from the density, with the posterior mean; failed trials count as the worst value seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raybo.acquisition import ContextConfidence
from raybo.context import Expectation
from raybo.methods.contexts.over_contexts import Learned, OverDensity


@dataclass(frozen=True, kw_only=True)
class SboKde(OverDensity):
    """The upper confidence bound averaged over contexts drawn from a kernel density estimate of their distribution.

    Huang, Song, Xue, Qian (2024), "Stochastic Bayesian Optimization with Unknown Continuous Context Distribution via
    Kernel Density Estimation", AAAI, arXiv:2312.10423.
    """

    meaning: ClassVar[str] = "upper confidence bound averaged over contexts"

    def bound(self, known: Learned, most: int) -> ContextConfidence:
        """Return the averaged bound."""
        atoms, p = known.density.atoms(min(most, self.atoms), known.rng)  # line 6
        return ContextConfidence(known.joint.gp, atoms, Expectation(p), self.kappa)
