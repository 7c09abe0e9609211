"""The retired method uhe-checked: the usual fit while it explains enough of the variance over the cube, else uhe's.

raybo's own. Studies of earlier releases continue with it, and experiments name its class; it is not offered to new
studies, since on 160 fresh seeds it ends above `map` on Deceptive (experiment uhe-deceptive).

What `uhe` gains over `map` on rough functions comes from its fit: there the most likely length-scales shrink until
every observation stands alone, and the search is blind. What it loses on smooth ones it loses by the same fit, as
pseudo-data look noisy. So the fit is checked by the share of the prior variance that the observations explain, on
average over the cube. Below a half the hyperparameters are those of pseudo-data. That rule was chosen after seven
others had been tried.
No point is random after the design, for that is not where the gain came from; so `uhe`'s guarantee does not hold. With
`rounds=dosed` and `rounds=divided` some are, as in `uhe`. By the plan of the experiment uhe-variants (eight functions,
seeds 800 to 839) both were out, as they end above `map` on Rosenbrock.

The pseudo-data are those of Ha et al., eq. (2); all else is as in `map`.
Pending trials are believed at their posterior mean; failed ones count as the worst value seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raybo.common.options import option
from raybo.methods.parts.fitted_model import FittedGP
from raybo.methods.parts.initial_design import uniform
from raybo.methods.story import Story
from raybo.methods.unknown_hyperparameters import common as unknown
from raybo.methods.unknown_hyperparameters.exp3 import bandit_story, next_turn
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.record.trial import Trial
from raybo.space import Array
from raybo.surrogate import GP

CHECKED = 500  # the variance is averaged over so many uniform points
HONEST = "theta_uhe"  # the tag of the fit to pseudo-data
LAST = 4  # the last fourth of the evaluations after the design has no random point


@dataclass(frozen=True, kw_only=True)
class UheChecked(unknown.AcquisitionOptions):
    """Upper confidence bounds under the most likely hyperparameters, or uhe's if those explain too little.

    raybo's own, after Ha et al., "Provably Efficient Bayesian Optimization with Unknown Gaussian Process
    Hyperparameter Estimation", arXiv:2306.06844.
    """

    trusted: float = option(
        0.5, "share of the variance, from 0 to 1, that the usual fit must explain to be trusted", at_least=0, at_most=1
    )
    rounds: Literal["none", "dosed", "divided"] = option(
        "none", "uhe's rounds with their random points: dosed has none at the end, divided checks the second arm's fit"
    )

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return a point of the design, then the maximiser of the bound by the checked fit, or a round's point."""
        if self.rounds == "none":
            if unknown.is_in_design(history, self.initial):
                return unknown.uniform_point(history, rng)
            fit, tags = self._checked(history, rng)
            x, more = self.maximiser(fit, history, rng)
            return Proposal(x, {**tags, **more})
        if not unknown.design_is_behind(history, self.initial):
            return unknown.uniform_point(history, rng)
        T = unknown.evaluations_after_design(history, self.initial)
        turn = next_turn(history, rng, T)
        if turn.is_random and not (self.rounds == "dosed" and _ends(history, T)):
            return Proposal(uniform(history, rng), turn.tags)
        tags = dict(turn.tags)
        if self.rounds == "divided" and turn.tags.get("arm") == 1:
            fit = unknown.fit(history, rng, "uhe", self.gamma_prior, tag=HONEST)
        else:
            fit, checked = self._checked(history, rng)
            tags |= checked
        x, more = self.maximiser(fit, history, rng)
        return Proposal(x, {**tags, **more})

    def _checked(self, history: History, rng: np.random.Generator) -> tuple[FittedGP, Tags]:
        """Return the fit of the most likely hyperparameters if it explains enough, otherwise that of pseudo-data."""
        fit = unknown.fit(history, rng, "map", self.gamma_prior)
        tags: Tags = {**fit.tags, "known": known_share(fit.gp, history.cube.snap(history.cube.uniform(rng, CHECKED)))}
        if tags["known"] < self.trusted:
            fit = unknown.fit(history, rng, "uhe", self.gamma_prior, tag=HONEST)
        return fit, tags

    def fitted_hyperparameters(self, tags: Tags) -> Array | None:  # (s, p)
        """Return the hyperparameters of the fit that a proposal was made with."""
        return super().fitted_hyperparameters({**tags, "theta": tags[HONEST]} if HONEST in tags else tags)

    def story(self, trials: Sequence[Trial], names: Sequence[str]) -> Story | None:
        """Return a story of the arms, if there are rounds."""
        return bandit_story(trials)

    def explain(self, tags: Tags) -> str:
        """Explain the arm, if there are rounds, and the point's prediction and fit."""
        if "design" in tags:
            return unknown.explain_point(tags)
        in_rounds = self.rounds != "none"
        point = unknown.explain_turn(tags, "to keep the fit honest") if in_rounds else unknown.explain_point(tags)
        if "known" not in tags:
            return f"{point}; by uhe's fit" if HONEST in tags else point
        which = "uhe's fit, for the usual one" if HONEST in tags else "the usual fit, which"
        return f"{point}; by {which} explains {100 * tags['known']:.0f}% of the cube"


def _ends(history: History, T: int) -> bool:
    """Return True for the last quarter of the planned trials after the design, and beyond the plan."""
    return history.planned is not None and len(history) >= history.planned - T // LAST


def known_share(gp: GP, X: Array) -> float:  # (m, d)
    """Return the share of f's prior variance that the observations explain, on average over the rows of X."""
    return 1.0 - float(gp.posterior(X)[1].mean()) / gp.outputscale
