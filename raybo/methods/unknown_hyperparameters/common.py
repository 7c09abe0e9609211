"""Shares design, model and search among the methods of Ha et al., which then differ only in what is compared.

Ha et al., "Provably Efficient Bayesian Optimization with Unknown Gaussian Process Hyperparameter Estimation",
arXiv:2306.06844, section 6 and appendix C. That paper's beta = 1.96 is the normal distribution's 97.5% quantile, and
multiplies the standard deviation: kappa here. "Gamma(10^-3, 10)" is read as GPy's constructor reads it, shape and rate,
on the logarithms with their Jacobian: without it the density has no mode. Ours, since the paper gives none: 3 d uniform
points at first; observations standardised; 1,500 uniform candidates and 200 around the best point, climbed from 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from raybo.acquisition import LogExpectedImprovement, UpperConfidence
from raybo.common.errors import MethodError
from raybo.common.options import option
from raybo.methods.method import Method
from raybo.methods.parts import initial_design
from raybo.methods.parts.fitted_model import FittedGP, prediction_in_words
from raybo.methods.parts.fitting import fitted
from raybo.methods.parts.hyperparameters import Estimate
from raybo.methods.parts.next_point import solve_apart
from raybo.methods.parts.trial_costs import per_cost
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.record.states import State
from raybo.solvers import SolverName
from raybo.space import Array
from raybo.surrogate import Gamma, Model, uhe_model

AcquisitionName: TypeAlias = Literal["ucb", "ei"]

UNPLANNED = 100  # T if no number of trials is planned
KAPPA = 1.96
PRIOR = (1e-3, 10.0)


@dataclass(frozen=True, kw_only=True)
class UnknownOptions(Method):
    """Holds the options that all of these methods share."""

    solver: SolverName = option("lbfgsb", "how the acquisition is maximised")
    kappa: float = option(KAPPA, "standard deviations added to the mean", at_least=0)
    gamma_prior: tuple[float, ...] = option(PRIOR, "shape and rate of every hyperparameter's Gamma prior", above=0)
    initial: int | None = option(
        None, "uniform points at first; none: 3 per axis, at most a quarter of the trials", at_least=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.gamma_prior) != 2:
            raise MethodError(f"gamma_prior must be two positive numbers, shape and rate, got {self.gamma_prior}")

    def fitted_hyperparameters(self, tags: Tags) -> Array | None:  # (s, p)
        """Return the hyperparameters of a proposal: the samples, or the fit with the length-scales that were used."""
        if "theta" not in tags:
            return None
        thetas = np.array(tags.get("thetas", [tags["theta"]]), dtype=np.float64)
        if "lengthscale" in tags:
            thetas[:, :-2] = np.log(tags["lengthscale"])
        return thetas


@dataclass(frozen=True, kw_only=True)
class AcquisitionOptions(UnknownOptions):
    """Adds the choice of the acquisition, for the methods that work with either."""

    acquisition: AcquisitionName = option("ucb", "upper confidence bound, or expected improvement over the best value")

    def maximiser(self, fit: FittedGP, history: History, rng: np.random.Generator) -> tuple[Array, Tags]:
        """Return x_t = argmax of the acquisition, and the prediction there."""
        return maximiser(fit, history, rng, acquisition=self.acquisition, kappa=self.kappa, solver=self.solver)


def points_of_design(history: History, initial: int | None) -> int:
    """Return n0: 3 per axis by default, at most a quarter of a short study."""
    return initial_design.design_size(history, 3 * history.d, initial)


def evaluations_after_design(history: History, initial: int | None) -> int:
    """Return T: the planned trials without the design; 100 if none are planned."""
    if history.planned is None:
        return UNPLANNED
    return max(1, history.planned - points_of_design(history, initial))


def is_in_design(history: History, initial: int | None) -> bool:
    """Return True while the next trial belongs to the design: fewer than n0 are proposed, or none has a value yet."""
    return initial_design.is_in_design(history, 3 * history.d, initial)


def design_is_behind(history: History, initial: int | None) -> bool:
    """Return True once n0 trials have ended and one of them has a value; from the first round on it stays True.

    Workers that wait for this get further uniform points, which belong to the design: any n0 of them will do, so that
    a slow one holds nothing up.
    """
    if history.count_tag("range"):
        return True
    return history.ended >= points_of_design(history, initial) and history.count(State.FINISHED) > 0


def uniform_point(history: History, rng: np.random.Generator) -> Proposal:
    """Return a point of the initial design."""
    return Proposal(initial_design.uniform(history, rng), {"design": "uniform"}, in_design=True)


def fit(
    history: History,
    rng: np.random.Generator,
    estimate: Estimate,
    prior: tuple[float, ...],
    *,
    refit_noise: bool = False,
    tune: bool = False,
    tag: str = "theta",
) -> FittedGP:
    """Return theta_t by the named estimate, and the GP conditioned on the real observations.

    Every fit starts from the last one's end and from the model's start; the first also from a rougher model.
    """
    model = uhe_model(Gamma(*prior))
    starts = [model.start(history.d)]
    if history.last_tag(tag) is None:
        starts.append(_rough(model, history.d))
    return fitted(history, model, rng, estimate=estimate, starts=starts, refit_noise=refit_noise, tune=tune, tag=tag)


def _rough(model: Model, d: int) -> Array:  # (p,)
    return np.concatenate([np.log(np.full(model.lengthscales(d), 0.1)), np.log([1.0, 1e-2])])


def maximiser(
    fit: FittedGP,
    history: History,
    rng: np.random.Generator,
    *,
    acquisition: AcquisitionName,
    kappa: float,
    solver: SolverName,
) -> tuple[Array, Tags]:
    """Return x_t = argmax of the acquisition, averaged over the fit's members, and the prediction there."""
    if acquisition == "ucb":
        worth = fit.average(lambda gp: UpperConfidence(gp, kappa))
    else:
        worth = per_cost(fit.average(lambda gp: LogExpectedImprovement(gp, fit.incumbent), log=True), history)
    more: dict[str, Any] = {"perturbations": 200} if solver == "lbfgsb" else {}
    found = solve_apart(solver, worth, history, rng, size=1_500, near=fit.best[None, :], **more)
    return found.x, {"acquisition": acquisition, **fit.prediction(found.x), **fit.tags}


def explain_point(tags: Tags) -> str:
    """Explain a point of the design, or one of the acquisition by its prediction."""
    if "design" in tags:
        return "initial design (uniform)"
    name = {"ucb": "upper confidence bound", "ei": "expected improvement"}[tags["acquisition"]]
    return f"{name}: {prediction_in_words(tags)}"


def explain_turn(tags: Tags, purpose: str) -> str:
    """Explain the arm and its probability; `purpose` is the purpose of arm 1's random point."""
    if "design" in tags:
        return explain_point(tags)
    if "owed" in tags:
        return f"a second point that was still owed at the end; {explain_point(tags)}"
    drawn = f"; p = {tags['p']:.2f}" if tags["p"] < 1.0 else ""
    if "acquisition" not in tags:
        return f"arm {tags['arm']}: a random point, {purpose}{drawn}"
    place = "second" if tags["slot"] == 2 else "only" if tags.get("single") else "first"
    return f"arm {tags['arm']}, {place} point: {explain_point(tags)}{drawn}"
