"""portfolio: EXP3 over two ways to choose a point, uniformly or by the upper confidence bound.

Hoffman et al. (2011), as Ha et al., section 6, compare with it: one point per iteration, the most likely
hyperparameters, and as the reward the posterior mean at the point after the fit that includes it, on the scale of the
initial design; gamma is that of T rounds.
In parallel a trial's reward is taken by the first proposal after its end, and stands in that proposal's tags; p is the
draw's. A failed trial earns 0, a lost or stopped one nothing. Pending points enter the standard deviation only.
T is the planned trials without the design, 100 if none are planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raybo.methods.parts.fitted_model import FittedGP
from raybo.methods.parts.initial_design import uniform
from raybo.methods.story import Story
from raybo.methods.unknown_hyperparameters import common as unknown
from raybo.methods.unknown_hyperparameters.exp3 import (
    ARMS,
    bandit_story,
    design_range,
    learning_rate,
    log_gain,
    probabilities,
    scaled,
)
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.space import Array


@dataclass(frozen=True, kw_only=True)
class Portfolio(unknown.AcquisitionOptions):
    """Uniform points and upper confidence bounds, mixed by EXP3 with rewards from the model.

    Hoffman, Brochu, de Freitas (2011), "Portfolio Allocation for Bayesian Optimization", as compared with in Ha et al.,
    arXiv:2306.06844.
    """

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return a point of the initial design, then the drawn arm's."""
        if not unknown.design_is_behind(history, self.initial):
            return unknown.uniform_point(history, rng)  # D0
        fit = unknown.fit(history, rng, "map", self.gamma_prior)
        low, high = design_range(history)
        earned = new_rewards(history, fit, low, high)
        logs = portfolio_log_weights(history, earned)
        gamma = learning_rate(unknown.evaluations_after_design(history, self.initial))
        p = probabilities(logs, gamma)
        arm = 1 if rng.random() < p[0] else 2
        tags: Tags = {"arm": arm, "p": float(p[arm - 1]), "gamma": gamma, "log_weights": logs.tolist()}
        tags["earned"] = [[number, reward] for number, reward in earned.items()]
        if history.first_tag("range") is None:
            tags["range"] = [low, high]
        if arm == 1:
            return Proposal(uniform(history, rng), {**tags, **fit.tags})
        x, more = self.maximiser(fit, history, rng)
        return Proposal(x, {**tags, **more})

    def story(self, trials: Sequence[Trial], names: Sequence[str]) -> Story | None:
        """Return a story of the arms' probabilities and draws."""
        return bandit_story(trials)

    def explain(self, tags: Tags) -> str:
        """Explain the arm, its probability and the point's prediction."""
        if "design" in tags:
            return unknown.explain_point(tags)
        why = unknown.explain_point(tags) if "acquisition" in tags else "a random point, as one of two ways to choose"
        return f"arm {tags['arm']}: {why}; p = {tags['p']:.2f}"


def new_rewards(history: History, fit: FittedGP, low: float, high: float) -> dict[int, float]:
    """Return by trial the rewards of the bandit's ended trials that no tag holds yet."""
    known = {number for record in history.records for number, _ in record.tags.get("earned", [])}
    rewards = {}
    for number, record in enumerate(history.records):
        if "arm" not in record.tags or number in known:
            continue
        if record.y is not None and record.has_ended:
            mean = fit.gp.posterior(record.x[None, :])[0]  # pending points are believed: they do not move the mean
            rewards[number] = scaled(float(fit.outputs.invert(mean)[0]), low, high)
        elif record.state is State.FAILED:
            rewards[number] = 0.0
    return rewards


def portfolio_log_weights(history: History, earned: dict[int, float]) -> Array:  # (2,)
    """Return both arms' log weights after all rewards in tags and the new ones."""
    logs = np.zeros(ARMS)
    past = [tuple(each) for record in history.records for each in record.tags.get("earned", [])]
    for number, reward in [*past, *earned.items()]:
        tags = history.records[number].tags
        logs[tags["arm"] - 1] += log_gain(tags["gamma"], tags["p"], reward)
    return logs
