"""gp-ucb: upper confidence bounds, maximised as exactly or inexactly as one likes.

Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", UAI,
Algorithm 1 with the random grid of section 4. t counts from 1, suggestions and not results, so that asynchronous
workers leave the schedules alone. The paper's beta_t multiplies the standard deviation: kappa here.
Departures: the model is Matern-5/2 with a length-scale an axis on standardised values (`preset="paper"` restores the
published one); pending trials are believed at their posterior mean; failed trials count as the worst value seen; the
initial design is cut to a quarter of a short study.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from raybo.acquisition import UpperConfidence, exploration
from raybo.errors import MethodError
from raybo.history import History, Proposal, Tags
from raybo.methods.design import LARGEST_POWER, grid_points, sobol_proposal
from raybo.methods.hyperparameters import HYPERPARAMETERS_MEAN, Hyperparameters, fixed_values
from raybo.methods.model import Fitted, design_size, fitted, taken
from raybo.methods.options import option
from raybo.solvers import solve
from raybo.solvers.inexactness import measure
from raybo.surrogate import KernelName, Standardised, random_grid_model, standard_model


@dataclass(frozen=True, kw_only=True)
class GpUcb:
    """Upper confidence bounds of a Gaussian process, maximised over a fresh random grid or by a climber.

    Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", UAI.
    """

    solver: Literal["random-grid", "lbfgsb", "nelder-mead", "cg"] = option("random-grid", "how the bound is maximised")
    kappa: Literal["practical", "theory"] | float = option(
        "practical", "standard deviations added to the mean: sqrt(log(t + 1)), the theorem's, or a number"
    )
    points_per_round: int = option(100, "grid points, times t while the grid grows")
    grid: Literal["growing", "fixed"] | float = option(
        "growing", "the grid grows with t, is fixed, or grows as t^number"
    )
    initial: int | None = option(None, "points of the Sobol design; none: 10 an axis, at most a quarter of the trials")
    kernel: KernelName = option("matern52", "of the standard model: matern52, matern32 or rbf")
    hyperparameters: Hyperparameters = option("map", HYPERPARAMETERS_MEAN)
    diagnostics: int = option(0, "measure the solver's inexactness every so many suggestions; 0 never (it is costly)")
    preset: Literal["standard", "paper"] = option("standard", "the model and the solvers' settings")
    lengthscale_start: float = option(1.0, "of the paper's model, in sides of the cube")
    prior_mean: float = option(0.0, "of the paper's model, in the values that are maximised")
    B: float = option(1.0, "bound of the objective's norm, for kappa=theory")
    R: float = option(1.0, "sub-Gaussian scale of the noise, for kappa=theory")
    delta: float = option(0.1, "probability that the theorem's bounds may fail, for kappa=theory")

    def __post_init__(self) -> None:
        fixed_values("gp-ucb", self.hyperparameters)
        if self.points_per_round < 1:
            raise MethodError(f"gp-ucb: points_per_round must be at least 1, got {self.points_per_round}")
        if not isinstance(self.grid, str) and not 0.0 <= self.grid <= LARGEST_POWER:
            raise MethodError(
                f"gp-ucb: grid must be growing, fixed or a power of t from 0 to {LARGEST_POWER}, got {self.grid}"
            )
        if self.initial is not None and self.initial < 1:
            raise MethodError(f"gp-ucb: initial must be at least 1, got {self.initial}")
        if not 0.0 < self.delta < 1.0:
            raise MethodError(f"gp-ucb: delta must lie in (0, 1), got {self.delta}")

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design, then the maximiser of the bound."""
        if len(history) < design_size(history, 10 * history.d, self.initial) or len(history.y) == 0:
            return sobol_proposal(history, rng)
        t = 1 + history.count_tag("t")
        fit = self._fit(history, rng)
        kappa = exploration(
            self.kappa,
            t,
            information_gain=fit.gp.information_gain if self.kappa == "theory" else 0.0,
            B=self.B,
            R=self.R,
            delta=self.delta,
            result="random-grid-ucb" if self.solver == "random-grid" else "ucb",
        )
        bound = fit.average(lambda gp: UpperConfidence(gp, kappa))
        points, apart = taken(history)
        grid = grid_points(self.points_per_round, self.grid, t)
        found = solve(
            self.solver,
            bound,
            history.cube,
            rng,
            preset=self.preset,
            size=grid if self.solver == "random-grid" else None,
            near=fit.best[None, :],
            avoid=points,
            apart=apart,
        )
        tags = {"t": t, "kappa": kappa, "evaluations": found.evaluations, **fit.prediction(found.x), **fit.tags}
        if self.diagnostics and t % self.diagnostics == 0:
            shift = float(np.max(np.abs(fit.gp.y)))  # the constant B of the paper's shift, estimated
            tags["inexactness"] = measure(bound, history.cube, rng, found, fixed_shift=shift).to_json()
        return Proposal(found.x, tags)

    def _fit(self, history: History, rng: np.random.Generator) -> Fitted:
        if self.preset == "paper":
            model, outputs = random_grid_model(self.lengthscale_start), Standardised(self.prior_mean, 1.0)
            return fitted(history, model, rng, outputs=outputs, estimate=self.hyperparameters)
        return fitted(history, standard_model(self.kernel), rng, estimate=self.hyperparameters)

    def explain(self, tags: Tags) -> str:
        """The design, or the bound's two parts in standard deviations of the values."""
        if "sobol" in tags:
            return "initial design (Sobol)"
        return (
            f"upper confidence bound: expects {tags['mean']:+.2f} sd, {tags['kappa']:.2f} times {tags['std']:.2f} added"
        )
