"""drbo-mmd: the worst expectation over laws of the context within a maximum mean discrepancy of the observed ones.

Kirschner et al. (2020), the data-driven variant, with the settings of Huang et al. (2024).
Departures: the inner problem is solved by an active-set method, not by a convex solver; the kernel between contexts is
divided by its outputscale, as the radius wants it; with several contexts the grid is a full one; the cube is searched
with a coarser grid, and what is found is climbed on with the full one. The rest is as in sbo-kde; the density serves
only to imagine the contexts of pending trials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from raybo.acquisition import ContextConfidence
from raybo.common.options import option
from raybo.context import MmdBall, grid, histogram, mmd_radius
from raybo.methods.contexts.over_contexts import Learned, OverContexts
from raybo.space import Array


@dataclass(frozen=True, kw_only=True)
class DrboMmd(OverContexts):
    """The upper confidence bound averaged under the worst distribution in a ball of the maximum mean discrepancy.

    Kirschner, Bogunovic, Jegelka, Krause (2020), "Distributionally Robust Bayesian Optimization", AISTATS.
    """

    meaning: ClassVar[str] = "upper confidence bound under the worst distribution near the contexts met"
    screened: ClassVar[int] = 25  # points of the grid
    candidates: ClassVar[int | None] = 128  # fewer than elsewhere: each worst case takes a millisecond

    points: int = option(100, "at least this many contexts in the grid, the same number on every axis", at_least=1)

    def bound(self, known: Learned, most: int) -> ContextConfidence:
        """Return the worst mean bound."""
        ball = mmd_ball(known, min(most, self.points))
        reduction = MmdBall(ball.kernel, ball.p, ball.radius)
        return ContextConfidence(known.joint.gp, ball.atoms, reduction, self.kappa)


class Ball(NamedTuple):
    """Laws on a grid: the grid (g, dc), its kernel (g, g) of unit diagonal, the centre p (g,), and the radius."""

    atoms: Array
    kernel: Array
    p: Array
    radius: float


def mmd_ball(known: Learned, points: int) -> Ball:
    """Return the ball around the histogram of the observed contexts, in the surrogate's kernel at equal points.

    With no context known the histogram is uniform, and the ball holds every law.
    """
    cube, kernel = known.density.cube, known.joint.gp.stationary
    atoms = grid(cube, points)
    centre = np.full((len(atoms), len(kernel.lengthscale) - cube.d), 0.5)  # any: the kernel is stationary
    Z = np.hstack([centre, atoms])
    radius = mmd_radius(max(1.0, len(known.contexts)))
    return Ball(atoms, kernel.matrix(Z, Z) / kernel.outputscale, histogram(known.contexts, atoms, cube), radius)
