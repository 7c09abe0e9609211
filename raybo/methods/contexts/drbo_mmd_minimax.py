"""drbo-mmd-minimax: drbo-mmd with a piecewise-linear approximation of the worst case, on a finer grid.

Tay et al. (2022), with the settings of Huang et al. (2024).
Departures: as in drbo-mmd; the approximation is the published one around the contexts' histogram.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from raybo.acquisition import ContextConfidence
from raybo.common.options import option
from raybo.context import MinimaxApproximation
from raybo.methods.contexts.drbo_mmd import Ball, mmd_ball
from raybo.methods.contexts.over_contexts import ALL, Learned, OverContexts


@dataclass(frozen=True, kw_only=True)
class DrboMmdMinimax(OverContexts):
    """The upper confidence bound under an approximate worst distribution in a ball of the maximum mean discrepancy.

    Tay, Foo, Daisuke, Chen, Low (2022), "Efficient Distributionally Robust Bayesian Optimization with Worst-case
    Sensitivity", ICML.
    """

    meaning: ClassVar[str] = "upper confidence bound under a nearly worst distribution near the contexts met"
    screened: ClassVar[int] = 100  # points of the grid

    points: int = option(1024, "at least this many contexts in the grid, the same number on every axis", at_least=1)
    sensitivity: Literal["fast", "exact"] = option(
        "fast", "the worst case's sensitivity at radius 0: exact inverts the kernel"
    )

    def bound(self, known: Learned, most: int) -> ContextConfidence:
        """Return the approximate worst mean bound."""
        return self._approximate(known, mmd_ball(known, min(most, self.points)), 1.0)

    def stages(self, known: Learned) -> tuple[ContextConfidence, ContextConfidence]:
        """Return the bounds on a coarse and a fine grid; the coarse one scales the fine one's sensitivity."""
        coarse, fine = (mmd_ball(known, min(most, self.points)) for most in (self.screened, ALL))
        stretch = math.sqrt(len(fine.p) / len(coarse.p)) if self.sensitivity == "fast" else 1.0
        return self._approximate(known, coarse, stretch), self._approximate(known, fine, 1.0)

    def _approximate(self, known: Learned, ball: Ball, stretch: float) -> ContextConfidence:
        worst = MinimaxApproximation(ball.kernel, ball.p, ball.radius, self.sensitivity, stretch)
        return ContextConfidence(known.joint.gp, ball.atoms, worst, self.kappa)
