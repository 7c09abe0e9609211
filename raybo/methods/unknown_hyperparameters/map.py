"""map: the GP's most likely hyperparameters, and upper confidence bounds; what most people run.

The baseline of Ha et al., section 6: every point by the acquisition, hyperparameters by the highest posterior on the
observations. The paper names no acquisition; the bound is that of its rivals.
Pending trials are believed at their posterior mean; failed ones count as the worst value seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.methods.unknown_hyperparameters import common as unknown
from raybo.record.events import Tags
from raybo.record.history import History, Proposal


@dataclass(frozen=True, kw_only=True)
class Map(unknown.AcquisitionOptions):
    """Upper confidence bounds of a GP with its most likely hyperparameters.

    The baseline "MAP" of Ha et al., "Provably Efficient Bayesian Optimization with Unknown Gaussian Process
    Hyperparameter Estimation", arXiv:2306.06844.
    """

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return a point of the initial design, then the maximiser of the bound."""
        if unknown.is_in_design(history, self.initial):
            return unknown.uniform_point(history, rng)
        fit = unknown.fit(history, rng, "map", self.gamma_prior)
        x, tags = self.maximiser(fit, history, rng)
        return Proposal(x, tags)

    def explain(self, tags: Tags) -> str:
        """Explain a point of the design, or the acquisition's by its prediction."""
        return unknown.explain_point(tags)
