"""gp-ts: Thompson sampling, the maximiser of one function drawn from the posterior.

Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", UAI,
Algorithm 2 and Theorem 8: f_t has the posterior's mean and kappa_t^2 times its covariance, and is maximised over a
fresh random grid of c t points. The draw is joint and exact on up to 2,000 points, and beyond made of random features
corrected by the data, as it is for the climbing solvers.
Departures: the model is the standard one (the paper has no experiment with Thompson sampling); failed trials count as
the worst value seen. Pending trials need nothing: draws differ; they are believed all the same, so that many workers
keep apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from raybo.acquisition import Inflated, JointDraw, exploration
from raybo.acquisition.thompson import LARGEST_JOINT
from raybo.errors import MethodError
from raybo.history import History, Proposal, Tags
from raybo.methods.design import LARGEST_POWER, grid_points, sobol_proposal
from raybo.methods.hyperparameters import HYPERPARAMETERS_MEAN, Hyperparameters, fixed_values
from raybo.methods.model import design_size, fitted, taken
from raybo.methods.options import option
from raybo.solvers import solve
from raybo.surrogate import KernelName, draw_function, standard_model


@dataclass(frozen=True, kw_only=True)
class GpTs:
    """Thompson sampling: maximises a function drawn from the posterior, over a fresh random grid or by a climber.

    Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", UAI.
    """

    solver: Literal["random-grid", "lbfgsb", "nelder-mead", "cg"] = option("random-grid", "how the draw is maximised")
    kappa: Literal["practical", "theory"] | float = option(
        1.0, "factor on the draw's spread about the mean: a number, sqrt(log(t + 1)), or the theorem's"
    )
    points_per_round: int = option(100, "grid points, times t while the grid grows")
    grid: Literal["growing", "fixed"] | float = option(
        "growing", "the grid grows with t, is fixed, or grows as t^number"
    )
    initial: int | None = option(None, "points of the Sobol design; none: 10 an axis, at most a quarter of the trials")
    kernel: KernelName = option("matern52", "matern52, matern32 or rbf")
    hyperparameters: Hyperparameters = option("map", HYPERPARAMETERS_MEAN)
    inflation: float = option(0.0, "added to the standard deviation on a grid: (1 / eta - 1) B of Theorem 4")
    B: float = option(1.0, "bound of the objective's norm, for kappa=theory")
    R: float = option(1.0, "sub-Gaussian scale of the noise, for kappa=theory")
    delta: float = option(0.1, "probability that the theorem's bounds may fail, for kappa=theory")

    def __post_init__(self) -> None:
        fixed_values("gp-ts", self.hyperparameters)
        if self.points_per_round < 1:
            raise MethodError(f"gp-ts: points_per_round must be at least 1, got {self.points_per_round}")
        if not isinstance(self.grid, str) and not 0.0 <= self.grid <= LARGEST_POWER:
            raise MethodError(
                f"gp-ts: grid must be growing, fixed or a power of t from 0 to {LARGEST_POWER}, got {self.grid}"
            )
        if self.inflation < 0.0:
            raise MethodError(f"gp-ts: inflation must not be negative, got {self.inflation}")
        if not 0.0 < self.delta < 1.0:
            raise MethodError(f"gp-ts: delta must lie in (0, 1), got {self.delta}")

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design, then the maximiser of a draw."""
        if len(history) < design_size(history, 10 * history.d, self.initial) or len(history.y) == 0:
            return sobol_proposal(history, rng)
        t = 1 + history.count_tag("t")
        fit = fitted(history, standard_model(self.kernel), rng, estimate=self.hyperparameters)
        gp = fit.members[int(rng.integers(len(fit.members)))]
        on_grid = self.solver == "random-grid"
        kappa = exploration(
            self.kappa,
            t,
            information_gain=gp.information_gain if self.kappa == "theory" else 0.0,
            B=self.B,
            R=self.R,
            delta=self.delta,
            result="random-grid-ts" if on_grid else "ts",
        )
        grid = grid_points(self.points_per_round, self.grid, t)
        points, apart = taken(history)
        if on_grid and grid <= LARGEST_JOINT:
            joint = JointDraw(gp, int(rng.integers(2**63)), kappa, self.inflation)
            found = solve(self.solver, joint, history.cube, rng, size=grid, avoid=points, apart=apart)
        else:
            draw = Inflated(gp, draw_function(gp, rng, levels=history.cube.levels), kappa)
            found = solve(
                self.solver,
                draw,
                history.cube,
                rng,
                size=grid if on_grid else None,
                near=fit.best[None, :],
                avoid=points,
                apart=apart,
            )
        tags = {"t": t, "kappa": kappa, "drawn": found.value, **fit.prediction(found.x), **fit.tags}
        return Proposal(found.x, tags)

    def explain(self, tags: Tags) -> str:
        """The design, or what the draw promised."""
        if "sobol" in tags:
            return "initial design (Sobol)"
        return f"Thompson sampling: a drawn function promised {tags['drawn']:+.2f} sd, {tags['mean']:+.2f} expected"
