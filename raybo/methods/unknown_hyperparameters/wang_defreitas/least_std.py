"""The method of Wang and de Freitas as Ha et al., arXiv:2306.06844, section 6, compare with it.

Upper confidence bounds with the most likely hyperparameters, their length-scales divided by the smallest factor for
which the next point's standard deviation is at least 0.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.methods.unknown_hyperparameters import common as unknown
from raybo.methods.unknown_hyperparameters.shorter_lengthscales import LARGEST, STEP, candidates, divided, std_at_top
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.solvers import SolverName


@dataclass(frozen=True)
class LeastStd:
    """Holds the options of this variant."""

    kappa: float
    least_std: float
    prior: tuple[float, ...]
    solver: SolverName

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return the maximiser of the bound by the longest length-scales that leave it uncertain."""
        fit = unknown.fit(history, rng, "map", self.prior)
        points = candidates(fit, history, rng)
        factor = 1.0
        while True:
            shorter = divided(fit, factor, history)
            last = factor * STEP > LARGEST
            if last or std_at_top(shorter, self.kappa, points) >= self.least_std:
                x, tags = unknown.maximiser(
                    shorter, history, rng, acquisition="ucb", kappa=self.kappa, solver=self.solver
                )
                if last or tags["std"] >= self.least_std:
                    return Proposal(x, {"factor": factor, "lengthscale": shorter.gp.lengthscale.tolist(), **tags})
            factor *= STEP


def explain(tags: Tags) -> str:
    """Explain the point by its prediction and the division of the length-scales."""
    return f"{unknown.explain_point(tags)}; length-scales divided by {tags['factor']:.2f}"
