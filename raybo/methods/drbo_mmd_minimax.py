"""drbo-mmd-minimax: drbo-mmd with a piecewise-linear approximation of the worst case, on a finer grid.

Tay, Foo, Daisuke, Chen, Low (2022), "Efficient Distributionally Robust Bayesian Optimization with Worst-case
Sensitivity", ICML, with the settings of Huang et al. (2024).
Departures: as in drbo-mmd; the approximation is the published one around the contexts' histogram.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raybo.acquisition import ContextConfidence
from raybo.context import MinimaxApproximation
from raybo.events import Tags
from raybo.history import History, Proposal
from raybo.methods.drbo_mmd import Ball, mmd_ball
from raybo.methods.shared.options import option, require_counts
from raybo.methods.shared.over_contexts import ContextOptions, Learned, explain_over_contexts, propose_over_contexts

SCREENED = 100  # points of the grid for the first stage


@dataclass(frozen=True, kw_only=True)
class DrboMmdMinimax(ContextOptions):
    """The upper confidence bound under an approximate worst law in a ball of the maximum mean discrepancy.

    Tay, Foo, Daisuke, Chen, Low (2022), "Efficient Distributionally Robust Bayesian Optimization with Worst-case
    Sensitivity", ICML.
    """

    points: int = option(1024, "of the grid of contexts, at least; as many an axis as this needs")
    sensitivity: Literal["fast", "exact"] = option("fast", "of the worst case at radius 0: exact inverts the kernel")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "points")

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design, then the maximiser of the approximate worst mean bound."""

        def stages(known: Learned) -> tuple[ContextConfidence, ContextConfidence]:
            coarse, fine = (mmd_ball(known, points) for points in (min(SCREENED, self.points), self.points))
            stretch = math.sqrt(len(fine.p) / len(coarse.p)) if self.sensitivity == "fast" else 1.0
            return approximate(known, coarse, stretch), approximate(known, fine, 1.0)

        def approximate(known: Learned, ball: Ball, stretch: float) -> ContextConfidence:
            worst = MinimaxApproximation(ball.kernel, ball.p, ball.radius, self.sensitivity, stretch)
            return ContextConfidence(known.joint.gp, ball.atoms, worst, self.kappa)

        return propose_over_contexts(self, history, rng, stages)

    def explain(self, tags: Tags) -> str:
        """The design, or what is expected of the point over the contexts."""
        return explain_over_contexts(tags, "upper confidence bound under a nearly worst law near the contexts met")
