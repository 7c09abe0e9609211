"""exp3-random: uhe's bandit without uhe's fit, one half of its ablation.

Ha et al., section 6 (Random+EXP3): Algorithm 1 with the most likely hyperparameters of the observations.
Parallel trials and failed ones as in `uhe`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raybo.methods.parts.initial_design import uniform
from raybo.methods.story import Story
from raybo.methods.unknown_hyperparameters import common as unknown
from raybo.methods.unknown_hyperparameters.exp3 import bandit_story, next_turn
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.record.trial import Trial


@dataclass(frozen=True, kw_only=True)
class Exp3Random(unknown.AcquisitionOptions):
    """Random points dosed by EXP3, as in uhe, with the usual most likely hyperparameters.

    Ha et al., "Provably Efficient Bayesian Optimization with Unknown Gaussian Process Hyperparameter Estimation",
    arXiv:2306.06844, section 6 (Random+EXP3).
    """

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return a point of the initial design, then Algorithm 1's with the usual likelihood."""
        if not unknown.design_is_behind(history, self.initial):
            return unknown.uniform_point(history, rng)  # D0
        turn = next_turn(history, rng, unknown.evaluations_after_design(history, self.initial))
        if turn.is_random:
            return Proposal(uniform(history, rng), turn.tags)
        fit = unknown.fit(history, rng, "map", self.gamma_prior)  # on the observations
        x, tags = self.maximiser(fit, history, rng)
        return Proposal(x, {**turn.tags, **tags})

    def story(self, trials: Sequence[Trial], names: Sequence[str]) -> Story | None:
        """Return a story of the arms' probabilities and draws."""
        return bandit_story(trials)

    def explain(self, tags: Tags) -> str:
        """Explain the arm, its probability and the point's prediction."""
        return unknown.explain_turn(tags, "to see more than where the model leads")
