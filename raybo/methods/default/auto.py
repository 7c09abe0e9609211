"""auto: the default method, raybo's own.

What it does, and why:
- Ten Sobol points first (a quarter of a short study), whatever the dimension: a longer design is a study half over.
- Values are clipped four robust standard deviations below their median and then made as normal as a power can make
  them, so that a steep wall or a penalty does not set the scale on which the good values are told apart.
- A Gaussian process, Matern-5/2, with a length-scale per axis whose prior expects a third of the cube's side in every
  dimension: priors that grow with the dimension take most functions for smoother than they are.
- Log expected improvement or an upper confidence bound of 1.5 standard deviations, drawn anew each time: they fail in
  different places, and many workers asking at once are spread by it.
- Where the point found is as good as known (standard deviation below a thousandth of the values'), every other time a
  bound of four standard deviations instead: polishing one hill for ever would leave the others unseen.
- Where choices open parameters of their own, expected improvement alone, on values that are only standardised: the best
  values of two branches differ little, and the power that makes values normal squeezes just these together.
- Multi-start climbing from the best of 1,000 points; integers and categories are searched as such, one at a time.
- Failed trials count as the worst value seen; pending ones are believed at their posterior mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raybo.acquisition import Acquisition, LogExpectedImprovement, UpperConfidence
from raybo.events import Tags
from raybo.history import History, Proposal
from raybo.methods.apart import solve_apart
from raybo.methods.design import explain_design, is_in_design, sobol_proposal
from raybo.methods.fitting import fitted
from raybo.methods.guesses import believing, design_by_guess
from raybo.methods.options import Options, option
from raybo.solvers import Solution
from raybo.surrogate import Standardised, Tamed, standard_model

OPTIMISM, FAR_OPTIMISM = 1.5, 4.0  # standard deviations
SETTLED = 1e-3  # of the values' standard deviation: what is known better than this needs no further look


@dataclass(frozen=True, kw_only=True)
class Auto(Options):
    """Log expected improvement and an upper confidence bound, at random in turn, on a Gaussian process of tamed values.

    raybo's own mixture; `raybo reproduce auto-default` shows it beside what it is made of.
    """

    uses_guesses: ClassVar[bool] = True
    initial: int | None = option(
        None, "points of the Sobol design; none: 10, at most a quarter of the trials", at_least=1
    )

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design, then the maximiser of one of the two acquisitions."""
        plain = is_plain(history)
        marked: Tags = {"outputs": "standardised"} if plain else {}
        if is_in_design(history, 10, self.initial):
            design = design_by_guess(history, sobol_proposal(history, rng))
            return Proposal(design.x, {**design.tags, **marked})
        outputs = Standardised.of(history.y) if plain else Tamed.of(history.y)
        fit = fitted(history, standard_model(), rng, outputs=outputs)

        def maximise(acquisition: Acquisition) -> Solution:
            worth = believing(acquisition, history)
            return solve_apart("lbfgsb", worth, history, rng, size=1_000, starts=8, near=fit.best[None, :])

        if not plain and rng.random() < 0.5:
            name, found = "ucb", maximise(UpperConfidence(fit.gp, OPTIMISM))
        else:
            name, found = "log-ei", maximise(LogExpectedImprovement(fit.gp, fit.incumbent))
        if fit.prediction(found.x)["std"] < SETTLED and rng.random() < 0.5:
            name, found = "far", maximise(UpperConfidence(fit.gp, FAR_OPTIMISM))
        tags = {"acquisition": name, **fit.prediction(found.x), **fit.tags, **marked}
        return Proposal(found.x, tags)

    def explain(self, tags: Tags) -> str:
        """The design, or what the model expects of the point in standard deviations of the values."""
        if design := explain_design(tags):
            return design
        names = {"ucb": "upper confidence bound", "log-ei": "expected improvement", "far": "away from a settled hill"}
        return f"{names[tags['acquisition']]}: expects {tags['mean']:+.2f} sd, uncertain by {tags['std']:.2f}"


def is_plain(history: History) -> bool:
    """Whether expected improvement alone is used, on values as they are: where choices open parameters of their own.

    The tag `outputs` marks such a study from its first proposal on. One without it was begun by raybo 0.1, which used
    the mixture there too, and goes on with it.
    """
    if all(condition is None for condition in history.cube.conditions):
        return False
    proposed = next((record for record in history.records if "origin" not in record.tags), None)
    return proposed is None or "outputs" in proposed.tags
