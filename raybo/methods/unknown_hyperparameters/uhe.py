"""uhe: a GP whose hyperparameters stay honest, by random points that a bandit doses and a fit to pseudo-data.

Ha et al., Algorithm 1 (UHE-BO). Trials come in rounds of two: at the odd t EXP3 draws an arm, the first of which begins
with a uniform point; at the even t the round is rewarded with its better value on the scale of the initial design. The
hyperparameters maximise the posterior on pseudo-data (eq. (2)), which the observations lend to 2 n uniform points;
predictions use the observations.
In parallel a round's second point waits for the first one's result while other workers open further rounds; p is the
draw's, so the order of results does not matter; pending points enter the standard deviation only, and random ones
ignore them; a fit is kept until another trial ends. With one worker this is the paper's algorithm. With more
workers it learns less: rounds should outnumber them by far (fewer workers than an eighth of the trials).
Departures: a failed trial counts as the worst value seen; a round of failed trials earns 0, of lost ones nothing. At
most 500 pseudo-data, and from 200 observations on the fit is kept until they have grown by a hundredth. T is the
planned trials without the design, 100 if none are planned. Beyond the plan the rounds continue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raybo.common.options import option
from raybo.methods.parts.initial_design import uniform
from raybo.methods.story import Story
from raybo.methods.unknown_hyperparameters import common as unknown
from raybo.methods.unknown_hyperparameters.exp3 import bandit_story, next_turn
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.record.trial import Trial


@dataclass(frozen=True, kw_only=True)
class Uhe(unknown.AcquisitionOptions):
    """Bayesian optimisation with unknown hyperparameters: random points dosed by EXP3, and a consistent fit.

    Ha, Nguyen, Tran-The, Zhang, Zhang, van den Hengel, "Provably Efficient Bayesian Optimization with Unknown Gaussian
    Process Hyperparameter Estimation", arXiv:2306.06844, Algorithm 1 (UHE-BO).
    """

    refit_noise_on_real: bool = option(
        False, "after the fit to pseudo-data, fit the noise alone to the observations (ours)"
    )

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return a point of the initial design, then Algorithm 1's."""
        if not unknown.design_is_behind(history, self.initial):
            return unknown.uniform_point(history, rng)  # D0
        T = unknown.evaluations_after_design(history, self.initial)
        turn = next_turn(history, rng, T)  # odd t: draw the arm; even t: the same arm's second point
        if turn.is_random:  # arm 1, odd t
            return Proposal(uniform(history, rng), turn.tags)
        fit = unknown.fit(
            history, rng, "uhe", self.gamma_prior, refit_noise=self.refit_noise_on_real
        )  # theta_t, eq. (2)
        x, tags = self.maximiser(fit, history, rng)
        return Proposal(x, {**turn.tags, **tags})

    def story(self, trials: Sequence[Trial], names: Sequence[str]) -> Story | None:
        """Return a story of the arms' probabilities and draws."""
        return bandit_story(trials)

    def explain(self, tags: Tags) -> str:
        """Explain the arm, its probability and the point's prediction."""
        return unknown.explain_turn(tags, "to keep the kernel estimate honest")
