"""Uncontrolled inputs: the law of the contexts, worst cases around it, and what is expected over it.

Density                                   the law, estimated from the contexts observed                density
cover, box, grid, histogram               points of the context space                                  points
Expectation, Lowest, TotalVariation       from values at contexts to one number, with weights          ambiguity
WorstShare                                the same, over the contexts where constraints are tightest   ambiguity
MmdBall, MinimaxApproximation             the same for a ball of another distance                      mmd, ambiguity
Joint, fit_joint                          a Gaussian process over points and contexts                  model
expected, best_expected, best_for         which evaluated point to recommend                           expectation
"""

from __future__ import annotations

from raybo.context.ambiguity import (
    Expectation,
    Lowest,
    MinimaxApproximation,
    Reduction,
    TotalVariation,
    WorstShare,
)
from raybo.context.density import Density, effective_number
from raybo.context.expectation import CAUTION, TAIL, best_expected, best_for, breaks_constraints, expected
from raybo.context.mmd import MmdBall, mmd_radius
from raybo.context.model import Joint, context_model, cube_of_contexts, fit_joint, with_context
from raybo.context.points import box, cover, grid, histogram, numeric

__all__ = [
    "CAUTION",
    "TAIL",
    "Density",
    "Expectation",
    "Joint",
    "Lowest",
    "MinimaxApproximation",
    "MmdBall",
    "Reduction",
    "TotalVariation",
    "WorstShare",
    "best_expected",
    "best_for",
    "box",
    "breaks_constraints",
    "context_model",
    "cover",
    "cube_of_contexts",
    "effective_number",
    "expected",
    "fit_joint",
    "grid",
    "histogram",
    "mmd_radius",
    "numeric",
    "with_context",
]
