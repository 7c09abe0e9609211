"""a-gp-ucb: upper confidence bounds whose length-scales shrink once the regret that they admit grows too slowly.

Berkenkamp et al. (2019), as Ha et al., section 6, compare with it: reference p(t) = t^0.9, the most likely
length-scales divided by h(t), and a constant kappa, so that the function's norm, which grows with h, does not enter.

    2 kappa std(x_t)      bounds the regret of step t, in standard deviations of the values
    S_t                   its sum
    h_t                   1.1^j h_(t-1), j = 0..40, at most 1,000: brings S_t nearest to p(t); it never falls

If S_t is above p(t) without it, h stays, as it does for most or all of a search of some dozens of steps: until then the
method is `map`. The other reading is `norm=growing`: as in the theory of Berkenkamp et al., h = g^d is the growth of
the function's norm, kappa is multiplied by it, and the length-scales are divided by g. Ha et al. do not name theirs.
Constants and the rule are reconstructed: neither paper gives all of them.
In parallel t, S and h advance with every proposal, whose standard deviation knows the pending points; failed trials
count as the worst value seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raybo.common.options import option
from raybo.methods.parts.fitted_model import FittedGP
from raybo.methods.story import Story
from raybo.methods.unknown_hyperparameters import common as unknown
from raybo.methods.unknown_hyperparameters.shorter_lengthscales import (
    LARGEST,
    STEP,
    candidates,
    divided,
    lengthscale_story,
    std_at_top,
)
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.record.trial import Trial
from raybo.space import Array

GRID = 41  # values of h that a step compares


@dataclass(frozen=True, kw_only=True)
class AGpUcb(unknown.UnknownOptions):
    """Upper confidence bounds of a GP whose most likely length-scales are divided by a growing factor.

    Berkenkamp, Schoellig, Krause (2019), "No-Regret Bayesian Optimization with Unknown Hyperparameters", JMLR 20:50, as
    compared with in Ha et al., arXiv:2306.06844.
    """

    power: float = option(
        0.9, "exponent of t in the reference for the sum of the regret's bounds, in (0, 1]", above=0, at_most=1
    )

    norm: Literal["constant", "growing"] = option(
        "constant", "the function's norm: growing multiplies kappa by h, and divides length-scales by its d-th root"
    )

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return a point of the design, then the maximiser of the bound by the fitted or shorter length-scales."""
        if unknown.is_in_design(history, self.initial):
            return unknown.uniform_point(history, rng)
        t = 1 + history.count_tag("S")
        h, S = float(history.last_tag("h", 1.0)), float(history.last_tag("S", 0.0))
        reference = t**self.power  # p(t)
        fit = unknown.fit(history, rng, "map", self.gamma_prior)
        x, tags = self._top(fit, h, history, rng)
        if S + 2.0 * self._kappa(h) * tags["std"] < reference:
            grown = self._grown(fit, h, reference - S, history, rng)
            if grown > h:
                h = grown
                x, tags = self._top(fit, h, history, rng)
        S += 2.0 * self._kappa(h) * tags["std"]
        used = fit.gp.lengthscale / self._divisor(h, history.d)
        return Proposal(x, {"t": t, "h": h, "S": S, "reference": reference, "lengthscale": used.tolist(), **tags})

    def _divisor(self, h: float, d: int) -> float:
        """Return g, the divisor of the length-scales."""
        return h if self.norm == "constant" else float(h ** (1.0 / d))

    def _kappa(self, h: float) -> float:
        return self.kappa if self.norm == "constant" else self.kappa * h

    def _top(self, fit: FittedGP, h: float, history: History, rng: np.random.Generator) -> tuple[Array, Tags]:
        shorter = divided(fit, self._divisor(h, history.d), history)
        return unknown.maximiser(shorter, history, rng, acquisition="ucb", kappa=self._kappa(h), solver=self.solver)

    def _grown(self, fit: FittedGP, h: float, wanted: float, history: History, rng: np.random.Generator) -> float:
        """Return the h whose step has the bound nearest to the target; the smallest of equals."""
        grid = np.minimum(h * STEP ** np.arange(GRID), LARGEST)
        points = candidates(fit, history, rng)
        shorter = [divided(fit, self._divisor(each, history.d), history) for each in grid]
        kappas = [self._kappa(each) for each in grid]
        bounds = [2.0 * kappa * std_at_top(fit, kappa, points) for fit, kappa in zip(shorter, kappas, strict=True)]
        return float(grid[np.argmin(np.square(wanted - np.array(bounds)))])

    def story(self, trials: Sequence[Trial], names: Sequence[str]) -> Story | None:
        """Return a story of the divided length-scales."""
        return lengthscale_story(trials, names)

    def explain(self, tags: Tags) -> str:
        """Explain a point of the design, or the bound's by its prediction and the division of the length-scales."""
        if "design" in tags:
            return unknown.explain_point(tags)
        divisor = self._divisor(tags["h"], len(tags.get("lengthscale", ())) or 1)
        lengths = "length-scales as fitted" if tags["h"] == 1.0 else f"length-scales divided by {divisor:.2f}"
        sums = f"regret bounds sum to {tags['S']:.1f}, reference {tags['reference']:.1f}"
        return f"{unknown.explain_point(tags)}; {lengths}; {sums}"
