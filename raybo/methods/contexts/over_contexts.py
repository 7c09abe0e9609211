"""Shares among the methods over contexts: options, design, the model over points and contexts, search, explanations.

Each of them maximises upper confidence bounds at many contexts, reduced to one number. That costs as many predictions
per point as there are contexts, so the cube is searched with few of them, and what is found is climbed on with all.

If the next trial's context is known beforehand, every one of them tunes for it: by the bound at that one context.

Constraints are kept by a price on what breaks them, see `constrained`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raybo.acquisition import Acquisition, ContextConfidence
from raybo.common.options import option
from raybo.context import Density, Expectation, Joint, cube_of_contexts, expected, fit_joint, with_context
from raybo.methods.contexts.constrained import limits_of
from raybo.methods.method import Method
from raybo.methods.parts.fitted_model import prediction_in_words
from raybo.methods.parts.initial_design import design_size, explain_design, sobol_proposal
from raybo.methods.parts.next_point import taken
from raybo.methods.parts.refit_schedule import Fit, is_kept, last_estimate, starts_of_fit
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.solvers import SolverName
from raybo.solvers.two_stage import two_stages
from raybo.space import Array
from raybo.surrogate import Model, Observations, fit_map

DESIGN = 10  # points of the initial design, as published
SCREENED = 64  # the first stage of the search averages over so many contexts
PREDICTED = 256  # the tags' expectation is over so many contexts
ALL = 1 << 62  # as a limit on contexts: unlimited


@dataclass(frozen=True, eq=False)
class Learned:
    """Holds the models that a proposal is made with.

    Attributes:
        density: the estimated law of the contexts.
        contexts: (t, dc), the observed ones, oldest first.
        joint: the surrogate over points and contexts.
        rng: the proposal's stream, from which atoms are drawn.
    """

    density: Density
    contexts: Array
    joint: Joint
    rng: np.random.Generator


@dataclass(frozen=True, kw_only=True)
class OverContexts(Method):
    """A method that maximises a bound over contexts; subclasses choose the contexts and reduce their bounds.

    Attributes:
        meaning: the bound in words, for explanations.
        screened: the first stage's limit of contexts.
        candidates: uniform points of the first stage; None for the solver's own number.
    """

    needs_context: ClassVar[bool] = True
    takes_constraints: ClassVar[bool] = True
    meaning: ClassVar[str]
    screened: ClassVar[int] = SCREENED
    candidates: ClassVar[int | None] = None

    kappa: float = option(1.5, "standard deviations added to the mean", at_least=0)
    initial: int | None = option(
        None, "points of the Sobol design; none: 10, at most a quarter of the trials", at_least=1
    )
    solver: SolverName = option(
        "lbfgsb", "how the cube is searched with few of the contexts; what it finds is then improved with all of them"
    )

    def density(self, history: History) -> Density:
        """Estimate the law of the contexts; by default for pending trials and for a proposal's tags only."""
        return Density.of(history.contexts, cube_of_contexts(history))

    @abstractmethod
    def bound(self, known: Learned, most: int) -> ContextConfidence:
        """Return the acquisition over at most `most` contexts."""

    def stages(self, known: Learned) -> tuple[Acquisition, Acquisition]:
        """Return the acquisitions of the two stages: a cheap one for the search, and the exact one."""
        return self.bound(known, self.screened), self.bound(known, ALL)

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return a point of the initial design, then the maximiser of the bound.

        Raises:
            MethodError: the study declares no context.
        """
        cube_of_contexts(history)  # a design without a context would be wasted
        if len(history) < design_size(history, DESIGN, self.initial) or not _is_informative(history):
            return sobol_proposal(history, rng)
        density = self.density(history)

        def fit(tag: str) -> Fit:
            return lambda observations, model: _theta(history, observations, model, tag)

        joint = fit_joint(history, density, rng, fit=fit("theta"))
        limits = limits_of(history, density, rng, fit)
        tags: Tags = {"theta": joint.gp.theta.tolist(), "contexts": len(history.contexts)}
        if joint.left_out:
            tags["left_out"] = joint.left_out
        if history.next_context is None:
            coarse, meant = self.stages(Learned(density, history.contexts, joint, rng))
            atoms, p = density.atoms(PREDICTED, rng)
            few, share = density.atoms(min(self.screened, PREDICTED), rng) if limits.joints else (atoms, p)
            coarse, meant = limits.within(coarse, few, share), limits.within(meant, atoms, p)
        else:
            atoms, p = history.next_context.reshape(1, -1), np.ones(1)
            coarse = meant = limits.within(ContextConfidence(joint.gp, atoms, Expectation(p), self.kappa), atoms, p)
            tags["wanted"] = history.next_context.tolist()
        points, apart = taken(history)
        near = history.X[[int(np.argmax(np.where(history.feasible, history.y, -np.inf)))]]
        found = two_stages(
            self.solver, coarse, meant, history.cube, rng, size=self.candidates, near=near, avoid=points, apart=apart
        )
        mean, std = expected(joint.gp, found.x[None, :], atoms, p)
        tags |= {"value": found.value, "mean": float(mean[0]), "std": float(std[0]), "evaluations": found.evaluations}
        return Proposal(found.x, tags | limits.tags(found.x, atoms, p))

    def explain(self, tags: Tags) -> str:
        """Explain a point of the design, or the bound's by its prediction over the contexts."""
        if design := explain_design(tags):
            return design
        over = "at the context that is known" if "wanted" in tags else "on average over contexts"
        what = "upper confidence bound" if "wanted" in tags else self.meaning
        left = f"; {tags['left_out']} trials without a context left out" if "left_out" in tags else ""
        return f"{what}: {prediction_in_words(tags)}, {over}{left}"


@dataclass(frozen=True, kw_only=True)
class OverDensity(OverContexts):
    """A method over contexts whose atoms are drawn from the density."""

    atoms: int = option(1024, "contexts drawn from the density", at_least=1)
    bandwidth: float = option(
        1.0, "multiplies the rule-of-thumb bandwidth; near 0 the atoms are the contexts met", above=0
    )
    half_life: float | None = option(None, "a context counts half as much as one met this many contexts later", above=0)

    def density(self, history: History) -> Density:
        """Estimate the law of the contexts."""
        return Density.of(history.contexts, cube_of_contexts(history), half_life=self.half_life, scale=self.bandwidth)


def _is_informative(history: History) -> bool:
    """Return True if there are values at known contexts, not all equal."""
    y = with_context(history)[1]
    return len(y) > 1 and bool(np.any(y != y[0]))


def _theta(history: History, observations: Observations, model: Model, tag: str) -> Array:  # (p,)
    """Return the most likely hyperparameters, starting from the last ones, which many observations keep a while."""
    d = len(observations.categorical)
    last = last_estimate(history, model, d, tag)
    if last is not None and is_kept(history, len(observations.X)):
        return last
    return fit_map(observations, model, starts_of_fit(history, model, d, last))
