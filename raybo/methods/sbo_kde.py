"""sbo-kde: the best expectation over contexts whose law is estimated from those that were met.

Huang, Song, Xue, Qian (2024), "Stochastic Bayesian Optimization with Unknown Continuous Context Distribution via Kernel
Density Estimation", AAAI, arXiv:2312.10423, Algorithm 1; margin numbers are its lines.
Departures: the atoms are a scrambled Sobol sample of the density, not an independent one; few of them screen the cube
and all polish; contexts are clipped to their declared bounds; pending trials enter the model at contexts drawn from the
density, with the posterior mean; failed trials count as the worst value seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raybo.acquisition import ContextConfidence
from raybo.context import Expectation
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
class SboKde:
    """The upper confidence bound averaged over contexts drawn from a kernel density estimate of their law.

    Huang, Song, Xue, Qian (2024), "Stochastic Bayesian Optimization with Unknown Continuous Context Distribution via
    Kernel Density Estimation", AAAI.
    """

    needs_context: ClassVar[bool] = True

    kappa: float = option(1.5, "standard deviations added to the mean")
    atoms: int = option(1024, "contexts drawn from the density")
    bandwidth: float = option(1.0, "multiplies the rule-of-thumb bandwidth; near 0 the atoms are the contexts met")
    half_life: float | None = option(None, "a context counts half as much as one met so many contexts later")
    initial: int | None = option(None, "points of the Sobol design; none: 10, at most a quarter of the trials")
    solver: Solver = option(
        "lbfgsb", "how the cube is searched, with few of the contexts; with all, what it finds is then improved"
    )

    def __post_init__(self) -> None:
        require_positive(
            "sbo-kde", atoms=self.atoms, bandwidth=self.bandwidth, half_life=self.half_life, initial=self.initial
        )

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design, then the maximiser of the averaged bound."""

        def averaged(known: Learned, m: int) -> ContextConfidence:
            atoms, p = known.density.atoms(m, rng)  # line 6
            return ContextConfidence(known.joint.gp, atoms, Expectation(p), self.kappa)

        return propose_over_contexts(
            "sbo-kde",
            history,
            rng,
            lambda known: (averaged(known, min(SCREENED, self.atoms)), averaged(known, self.atoms)),
            solver=self.solver,
            kappa=self.kappa,
            initial=self.initial,
            half_life=self.half_life,
            bandwidth=self.bandwidth,
        )

    def explain(self, tags: Tags) -> str:
        """The design, or what is expected of the point over the contexts."""
        return explain_over_contexts(tags, "upper confidence bound averaged over contexts")
