"""What gp-ucb and gp-ts share: the schedules of exploration and of the random grid, and the model.

Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", UAI,
sections 4 and 5. t counts from 1, suggestions and not results, so that asynchronous workers leave the schedules alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from raybo.acquisition import exploration
from raybo.errors import MethodError
from raybo.history import History
from raybo.methods.design import design_size
from raybo.methods.hyperparameters import HYPERPARAMETERS_MEAN, Hyperparameters, fixed_values
from raybo.methods.options import option, require_counts, require_not_negative, require_probabilities
from raybo.solvers import grid_size
from raybo.surrogate import GP, KernelName

Kappa: TypeAlias = Literal["practical", "theory"] | float

LARGEST_POWER = 2.0  # of t in the grid's size: 10,000 times the first one's at t = 100


@dataclass(frozen=True, kw_only=True)
class RandomGridOptions:
    """The options that both methods share."""

    points_per_round: int = option(100, "grid points, times t while the grid grows")
    grid: Literal["growing", "fixed"] | float = option(
        "growing", "the grid grows with t, is fixed, or grows as t^number"
    )
    initial: int | None = option(None, "points of the Sobol design; none: 10 an axis, at most a quarter of the trials")
    kernel: KernelName = option("matern52", "of the standard model: matern52, matern32 or rbf")
    hyperparameters: Hyperparameters = option("map", HYPERPARAMETERS_MEAN)
    B: float = option(1.0, "bound of the objective's norm, for kappa=theory")
    R: float = option(1.0, "sub-Gaussian scale of the noise, for kappa=theory")
    delta: float = option(0.1, "probability that the theorem's bounds may fail, for kappa=theory")

    def __post_init__(self) -> None:
        fixed_values(self.hyperparameters)
        require_counts(self, "points_per_round", "initial")
        require_not_negative(self, "B", "R")
        require_probabilities(self, "delta")
        if not isinstance(self.grid, str) and not 0.0 <= self.grid <= LARGEST_POWER:
            raise MethodError(f"grid must be growing, fixed or a power of t from 0 to {LARGEST_POWER}, got {self.grid}")

    def is_in_design(self, history: History) -> bool:
        """Whether the next trial belongs to the initial design."""
        return len(history) < design_size(history, 10 * history.d, self.initial) or len(history.y) == 0

    def size(self, t: int) -> int:
        """Points of the random grid at step t = 1, 2, ...: c t where it is growing, c where fixed, or c t^number."""
        power = {"growing": 1.0, "fixed": 0.0}[self.grid] if isinstance(self.grid, str) else self.grid
        return grid_size(t, self.points_per_round, power)

    def exploration(self, rule: Kappa, t: int, gp: GP, result: str) -> float:
        """kappa at step t by the rule; the theorem's, of which `result` names the one, from what the GP has learnt."""
        gain = gp.information_gain if rule == "theory" else 0.0
        return exploration(rule, t, information_gain=gain, B=self.B, R=self.R, delta=self.delta, result=result)


def check_kappa(kappa: Kappa) -> None:
    """MethodError for a number that is not finite and at least 0."""
    if not isinstance(kappa, str) and not 0.0 <= kappa < math.inf:
        raise MethodError(f"kappa must be practical, theory or a number from 0, got {kappa}")
