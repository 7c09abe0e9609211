"""auto: the default method, raybo's own.

What it does, and why:
- First a point in the middle of the space, where its owner expects something, then Sobol points: seven in all, or one
  more than there are axes, and at most a quarter of a short study. Models help sooner than a longer design would end.
- Values are clipped four robust standard deviations below their median and then made as normal as a power can make
  them, so that a steep wall or a penalty does not set the scale on which the good values are told apart.
- Four Gaussian processes that assume different things, and a say for each by how well it explains the results: see
  `committee`. Their length-scales are expected at a third of the cube's side in every dimension: priors that grow with
  the dimension take most functions for smoother than they are.
- The point of the highest expected improvement or upper confidence bound of 1.5 standard deviations, in the mean over
  the models. Which of the two is drawn anew each time: they fail in different places, and many workers asking at once
  are spread by it.
- Where the point found is as good as known (standard deviation below a thousandth of the values'), every other time a
  bound of four standard deviations instead: polishing one hill for ever would leave the others unseen.
- Where choices open parameters of their own, expected improvement alone, on values that are only standardised: the best
  values of two branches differ little, and the power that makes values normal squeezes just these together.
- Multi-start climbing from the best of 500 points; integers and categories are searched as such, one at a time.
- Failed trials count as the worst value seen; pending ones are believed at each model's mean.
- From 200 results on, and in studies that raybo 0.1 began, one model and its rule: see `auto_0_1`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.acquisition import Acquisition
from raybo.events import Tags
from raybo.history import History, Proposal
from raybo.methods.apart import solve_apart
from raybo.methods.default.auto_0_1 import FAR_OPTIMISM, OPTIMISM, SETTLED, mixture, propose_as_0_1
from raybo.methods.default.committee import Committee, convene
from raybo.methods.design import explain_design, is_in_design, sobol_proposal
from raybo.methods.fitting import observed
from raybo.methods.options import Options, option
from raybo.solvers import Solution
from raybo.surrogate import Standardised, Tamed

FIRST_POINTS = 7
MIDDLE = 0.4, 0.6  # of each axis; not quite the same point in every study
MANY = 200  # results, from which on four models cost more than they are worth
RULE: Tags = {"rule": 2}  # marks what this rule proposed, from a study's first proposal on


@dataclass(frozen=True, kw_only=True)
class Auto(Options):
    """Expected improvement and an upper confidence bound, at random in turn, in the mean over four Gaussian processes.

    raybo's own; docs/default.md shows what each part is worth.
    """

    initial: int | None = option(
        None,
        "points before there is a model; none: 7, or one more than axes, at most a quarter of the trials",
        at_least=1,
    )

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design, then the maximiser of one of the two acquisitions."""
        if was_begun_by_0_1(history):
            return propose_as_0_1(history, rng, self.initial)
        if is_in_design(history, FIRST_POINTS, self.initial):
            return first_point(history, rng)
        if len(history.y) >= MANY:
            proposal = mixture(history, rng)
            return Proposal(proposal.x, {**proposal.tags, **RULE})
        models = committee_of(history)

        def maximise(acquisition: Acquisition) -> Solution:
            return solve_apart("lbfgsb", acquisition, history, rng, size=500, starts=4, near=best[None, :])

        best = history.X[np.argmax(history.y)]
        if not is_conditional(history) and rng.random() < 0.5:
            name, found = "ucb", maximise(models.bound(OPTIMISM))
        else:
            name, found = "log-ei", maximise(models.improvement())
        if models.prediction(found.x)["std"] < SETTLED and rng.random() < 0.5:
            name, found = "far", maximise(models.bound(FAR_OPTIMISM))
        tags = {"acquisition": name, **models.prediction(found.x), **models.tags, "ended": history.ended}
        return Proposal(found.x, {**tags, **RULE})

    def explain(self, tags: Tags) -> str:
        """The design, or what the plain model expects of the point in standard deviations of the values."""
        if "middle" in tags:
            return "initial design (the middle of the space)"
        if design := explain_design(tags):
            return design
        names = {"ucb": "upper confidence bound", "log-ei": "expected improvement", "far": "away from a settled hill"}
        return f"{names[tags['acquisition']]}: expects {tags['mean']:+.2f} sd, uncertain by {tags['std']:.2f}"


def first_point(history: History, rng: np.random.Generator) -> Proposal:
    """A point in the middle of the space; then the next ones of the study's Sobol sequence."""
    if history.first_tag("rule") is None:
        return Proposal(rng.uniform(*MIDDLE, history.d), {"middle": True, **RULE})
    design = sobol_proposal(history, rng)
    return Proposal(design.x, {**design.tags, **RULE})


def committee_of(history: History) -> Committee:
    """The models of a history with a finished trial, fitted anew if a trial has ended since the last were."""
    X, y = observed(history)
    outputs = Standardised.of(history.y) if is_conditional(history) else Tamed.of(history.y)
    last = next((record.tags for record in reversed(history.records) if "models" in record.tags), {})
    return convene(
        X,
        y,
        outputs,
        history.cube.categorical,
        history.X_pending,
        last.get("models", {}),
        len(history),
        is_kept=last.get("ended") == history.ended,
    )


def is_conditional(history: History) -> bool:
    """Whether choices open parameters of their own."""
    return any(condition is not None for condition in history.cube.conditions)


def was_begun_by_0_1(history: History) -> bool:
    """Whether the first proposal of the study is not marked as this rule's, and so goes on with that of raybo 0.1."""
    proposed = next((record for record in history.records if not {"origin", "fallback"} & record.tags.keys()), None)
    return proposed is not None and "rule" not in proposed.tags
