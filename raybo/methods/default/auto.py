"""auto: the default method, raybo's own.

What it does, and why:
- First a point in the middle of the space, where its owner expects something, then Sobol points, until three trials
  have a value, whatever the dimension: a model of three values finds better ones than chance does. Ten points (a
  quarter of a short study) if choices open parameters of their own, as a model commits itself to a branch early, and if
  there are several metrics or constraints.
- If the user guesses where the best lies, the first point is there, and four are tried, two of them without regard
  to the guess: the least that shows whether it holds (see `guesses`). Next guesses take the place of these three.
  After them it weighs the expected improvement alone: added to a bound it would hold every other proposal near the
  guess long after the results know better.
- Values are clipped four robust standard deviations below their median and then made as normal as a power can make
  them, so that a steep wall or a penalty does not set the scale on which the good values are told apart.
- Three Gaussian processes that assume different things, and a say for each by how well it explains the results: see
  `committee`. Their length-scales are expected at a third of the cube's side in every dimension: priors that grow with
  the dimension take most functions for smoother than they are. Those of choices, of which any two are 1 apart, are
  expected at 3, so that what one choice is worth is learnt from configurations that differ in others.
- The point of the highest expected improvement or upper confidence bound of 1.5 standard deviations, averaged over
  the models. Which of the two is drawn anew each time: they fail in different places, and many workers asking at once
  are spread by it.
- Every fourth proposal is the highest bound of four standard deviations while the plain model, leaving each trial out,
  cannot rank the better half of them (rank correlation below 0.6): scores of trees are rough at every scale, and a
  model that takes this for small hills clings to the first good place. Where it can rank them, nothing changes.
- If the point found is as good as known (standard deviation below a thousandth of the values'), every other time a
  bound of four standard deviations instead: polishing one hill for ever would leave the others unseen.
- If choices open parameters of their own, expected improvement alone, on values that are only standardised: the best
  values of two branches differ little, and the power that makes values normal squeezes just these together.
- Multi-start climbing from the best of 500 points; integers and categories are searched as such, one at a time.
- Running out of memory is a constraint, learnt from the trials that did. Other failed trials count as the worst value
  seen; pending ones are believed at each model's mean.
- Constraints: expected improvement on one model, times the probability that all hold. A bound in its place stays off
  the edge of what is allowed, where the best usually is: it gains little there beside what the probability loses.
  Several metrics: expected hypervolume improvement, which bounds of scalarisations did not beat (`multi_objective`).
- If trials that report are ended early, another model: see `curves`. It is that of jobs with cheap versions too, if
  these save enough: see `fidelities`.
- From 150 results on one model, and beyond 400 trials that of the observations that matter to a proposal, see
  `local_models`. Studies that raybo 0.1 began continue by its rule, see `auto_of_0_1`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from raybo.acquisition import Acquisition
from raybo.common.options import option
from raybo.methods.default.auto_of_0_1 import FAR_OPTIMISM, OPTIMISM, SETTLED, mixture, propose_as_0_1
from raybo.methods.default.committee import MEMBERS, convene
from raybo.methods.default.curves import explain_curves, propose_for_last_step
from raybo.methods.default.fidelities import explain_fidelity, propose_at_fidelity
from raybo.methods.method import Method
from raybo.methods.parts.fitted_model import FittedGP, FittedModel, Transform, prediction_in_words
from raybo.methods.parts.fitting import added_noise, leader, observed
from raybo.methods.parts.guesses import believing, design_by_guess
from raybo.methods.parts.initial_design import explain_design, is_in_design, middle_proposal, sobol_proposal, uniform
from raybo.methods.parts.learning_curves import has_cut_curves
from raybo.methods.parts.local_maximiser import maximise, maximise_at_home
from raybo.methods.parts.local_models import ManyObservations, is_large, ranked
from raybo.methods.parts.memory_limit import with_memory_limit
from raybo.methods.parts.multi_objective import FitOptions, maximise_goals
from raybo.methods.parts.next_point import solve_apart, taken
from raybo.methods.parts.prior_points import misled
from raybo.methods.parts.trial_costs import costs_that_matter, per_cost
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.solvers import Solution
from raybo.solvers.domain import continuous
from raybo.surrogate import GP, Standardised, Tamed, standard_model

RANKED_SINCE = 3  # the generation from which a model that cannot rank the better trials explores
LEAST_RANKED = 11  # results, below which the better half is too small to be ranked
RANKED = 0.6  # rank correlation of the better half with its leave-one-out predictions, from which a model is trusted
LOOKS = 4  # of so many proposals one is made far away if it is not
FIRST_VALUES = 3  # results before there is a model
FIRST_GUESSED = 4  # results before there is a model, if the user has guessed where the best lies
FIRST_POINTS = 10  # points before there is a model, if there are branches, several metrics or constraints
AT_HOME = 0.5  # share of the proposals beyond a few hundred trials that are made near the best points
REDRAWN = 64  # times at most that a first point is drawn again because it is known
MANY = 150  # results, from which on three models cost more than they are worth
NAMES = {
    "ucb": "upper confidence bound",
    "log-ei": "expected improvement",
    "far": "exploring, as the most promising point is all but known",
    "wide": "exploring, as the model cannot yet rank the best trials",
    "log-ehvi": "expected hypervolume improvement",
    "feasible": "nothing is feasible yet",
}


@dataclass(frozen=True, kw_only=True)
class Auto(Method):
    """Expected improvement or an upper confidence bound, chosen at random, averaged over three Gaussian processes.

    raybo's own; docs/evidence/default.md shows what each part is worth.
    """

    takes_goals: ClassVar[bool] = True
    models_reports: ClassVar[bool] = True
    uses_guesses: ClassVar[bool] = True
    chooses_fidelity: ClassVar[bool] = True
    members: ClassVar[Sequence[str]] = tuple(MEMBERS)

    initial: int | None = option(
        None,
        "points before there is a model; none: until three have a value, four with guesses; ten with branches, several "
        "metrics or constraints",
        at_least=1,
    )

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return the next point, by the first rule that applies."""
        if history.generation == 1:
            return propose_as_0_1(history, rng, self.initial)
        has_fidelity = history.fidelity is not None
        if has_fidelity and (chosen := propose_at_fidelity(history, rng, self.initial, transform(history))):
            return chosen
        limited = with_memory_limit(history)
        if limited.goals.is_plain and has_cut_curves(history) and not has_fidelity:
            return propose_for_last_step(history, rng, self.initial, transform(history))
        if is_first(history, self.initial):
            return first_point(history, rng)
        if not limited.goals.is_plain:
            return propose_for_goals(limited, rng)
        if is_large(history):
            return propose_among_many(history, rng)
        if len(history.y) >= MANY:
            return mixture(history, rng, is_plain=history.cube.is_conditional)
        return propose_by_committee(history, rng, self.members)

    def explain(self, tags: Tags) -> str:
        """Return the design, or what the plain model expects of the point in standard deviations of the values."""
        if "middle" in tags:
            return "initial design (the middle of the space)"
        if design := explain_design(tags):
            return design
        if look := explain_fidelity(tags):
            return look
        if curves := explain_curves(tags):
            return curves
        where = " near one of the best points" if "home" in tags else ""
        return f"{NAMES[tags['acquisition']]}{where}: {prediction_in_words(tags)}"


def is_first(history: History, initial: int | None) -> bool:
    """Return true if the next point is one of the first, which no model proposes."""
    if initial is not None or history.cube.is_conditional or not history.goals.is_plain:
        return is_in_design(history, FIRST_POINTS, initial)
    return len(history.y) < (FIRST_VALUES if history.cube.guess is None else FIRST_GUESSED)


def first_point(history: History, rng: np.random.Generator) -> Proposal:
    """Return a point in the middle of the space; then the next ones of the study's Sobol sequence."""
    has_guess = history.cube.guess is not None  # which has been tried, and not the middle
    if not has_guess and all("origin" in record.tags for record in history.records):
        return middle_proposal(history, rng)

    def led(point: Proposal) -> Proposal:
        return design_by_guess(history, point) if has_guess else point

    point, known = sobol_proposal(history, rng), taken(history)[0]
    proposal = led(point)
    for _ in range(0 if has_guess and history.generation < RANKED_SINCE else REDRAWN):
        if not (history.cube.snap(proposal.x[None, :]) == known).all(axis=1).any():
            break
        proposal = led(replace(point, x=uniform(history, rng)))  # in a space of few points it soon comes to one again
    return proposal


def propose_by_committee(history: History, rng: np.random.Generator, members: Sequence[str]) -> Proposal:
    """Return the maximiser of one of the two acquisitions, averaged over the models."""
    models = committee_of(history, members)

    def maximise(acquisition: Acquisition) -> Solution:
        return solve_apart("lbfgsb", acquisition, history, rng, size=500, starts=4, near=models.near)

    if looks_far(history, models):
        name, found = "wide", maximise(models.bound(FAR_OPTIMISM))
    else:
        if takes_bound(history, rng):
            name, found = "ucb", maximise(models.bound(OPTIMISM))
        else:
            name, found = "log-ei", maximise(per_cost(believing(models.improvement(), history), history))
        if leaves_hill(models.prediction(found.x), rng):
            name, found = "far", maximise(models.bound(FAR_OPTIMISM))
    prediction = models.prediction(found.x)
    return Proposal(found.x, {"acquisition": name, **prediction, **models.tags, "ended": history.ended})


def looks_far(history: History, models: FittedGP) -> bool:
    """Return true for every fourth proposal, if the plain model cannot tell the better trials apart.

    Never while trials differ in cost, as with `takes_bound`.
    """
    turn = len(history) - misled(history)
    if history.generation < RANKED_SINCE or len(history.y) < LEAST_RANKED or turn % LOOKS != LOOKS - 1:
        return False
    seen = models.gp.n - len(history.X_pending)  # of known points, repeated ones are one
    return costs_that_matter(history) is None and rank_correlation(models.gp, seen) < RANKED


def rank_correlation(gp: GP, n: int) -> float:
    """Return Spearman's correlation of the better half of the first n values with their leave-one-out predictions."""
    from scipy.stats import rankdata  # slow to import

    y = gp.y[:n]
    better = y >= np.median(y)
    ranks = [rankdata(values[better]) for values in (y, gp.leave_one_out(n))]
    a, b = (r - r.mean() for r in ranks)
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale else 0.0


def takes_bound(history: History, rng: np.random.Generator) -> bool:
    """Return true if the acquisition is a confidence bound: every other time, unless choices open parameters.

    Never while trials differ in cost: only an improvement can be weighed against it.
    """
    if history.cube.is_conditional or costs_that_matter(history) is not None:
        return False
    return bool(rng.random() < 0.5)


def leaves_hill(prediction: Tags, rng: np.random.Generator) -> bool:
    """Return true if a point is as good as known and is left for one farther away, as it is every other time."""
    return bool(prediction["std"] < SETTLED and rng.random() < 0.5)


def committee_of(history: History, members: Sequence[str] = tuple(MEMBERS)) -> FittedGP:
    """Return the models of a history with a finished trial, fitted anew if a trial has ended since the last were."""
    X, y = observed(history)
    outputs = transform(history)(history.y)
    last = next((record.tags for record in reversed(history.records) if "models" in record.tags), {})
    return convene(
        X,
        y,
        outputs,
        history.cube.categorical,
        history.X_pending,
        last.get("models", {}),
        len(history) - misled(history),
        added=added_noise(history, outputs),
        best=history.X[leader(history)],
        members=members,
        is_kept=last.get("ended") == history.ended,
    )


def propose_for_goals(history: History, rng: np.random.Generator) -> Proposal:
    """Return the maximiser of the expected improvement for several metrics or constraints."""

    def worth(models: FittedModel) -> Acquisition:
        return per_cost(believing(models.improvement(), history), history)

    options = FitOptions(standard_model(), transform=transform(history), models_curves=True)
    models, found = maximise_goals(history, options, rng, worth, size=1_000, starts=8)
    return Proposal(found.x, {"acquisition": models.name, **models.prediction(found.x), **models.tags})


def propose_among_many(history: History, rng: np.random.Generator) -> Proposal:
    """Return the maximiser of one of the two acquisitions, in a history too large for one exact Gaussian process."""
    observations = ManyObservations.of(history, standard_model(), transform(history)(ranked(history.y)))
    models = observations.local_models()
    name = "ucb" if takes_bound(history, rng) else "log-ei"

    def worth(fit: FittedGP) -> Acquisition:
        if name == "log-ei":
            return per_cost(fit.improvement(), history)
        return fit.bound(OPTIMISM if name == "ucb" else FAR_OPTIMISM)

    if goes_home(history, rng):
        fit, found = maximise_at_home(observations, worth, rng)
    else:
        fit, found = maximise(models, worth, rng)
        if leaves_hill(fit.prediction(found.x), rng):
            name = "far"
            fit, found = maximise(models, worth, rng)
    return Proposal(found.x, {"acquisition": name, **fit.prediction(found.x), **fit.tags})


def goes_home(history: History, rng: np.random.Generator) -> bool:
    """Return true if the next point is sought near one of the best: as often as not, if an axis is continuous."""
    return not history.cube.is_conditional and bool(continuous(history.cube).any()) and bool(rng.random() < AT_HOME)


def transform(history: History) -> Transform:
    """Return the transform of the values for a model; they are only standardised if choices open parameters."""
    return Standardised.of if history.cube.is_conditional else Tamed.of
