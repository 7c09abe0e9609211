"""ra-bo: uhe's fit without uhe's bandit, the other half of its ablation.

Ha et al., section 6 (RA-BO): a random point and the acquisition's in turn, the random one first, with the
hyperparameters fitted to pseudo-data. Parallel trials and failed ones as in `uhe`, with every round of arm 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.methods.parts.initial_design import uniform
from raybo.methods.unknown_hyperparameters import common as unknown
from raybo.methods.unknown_hyperparameters.exp3 import next_turn
from raybo.record.events import Tags
from raybo.record.history import History, Proposal


@dataclass(frozen=True, kw_only=True)
class RaBo(unknown.AcquisitionOptions):
    """Random points and the acquisition's in turn, with uhe's consistent fit.

    Ha et al., "Provably Efficient Bayesian Optimization with Unknown Gaussian Process Hyperparameter Estimation",
    arXiv:2306.06844, section 6 (RA-BO).
    """

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return a point of the initial design, then a random point at odd t and the acquisition's at even t."""
        if not unknown.design_is_behind(history, self.initial):
            return unknown.uniform_point(history, rng)  # D0
        T = unknown.evaluations_after_design(history, self.initial)
        turn = next_turn(history, rng, T, always=1)
        if turn.is_random:  # odd t
            return Proposal(uniform(history, rng), turn.tags)
        fit = unknown.fit(history, rng, "uhe", self.gamma_prior)  # even t, eq. (2)
        x, tags = self.maximiser(fit, history, rng)
        return Proposal(x, {**turn.tags, **tags})

    def explain(self, tags: Tags) -> str:
        """Explain a random point, or the acquisition's by its prediction."""
        return unknown.explain_turn(tags, "every other time, to keep the kernel estimate honest")
