"""Shares among gp-ucb and gp-ts: the schedules of exploration and of the random grid, and the model.

Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", UAI,
sections 4 and 5. t counts from 1, suggestions and not results, so that asynchronous workers leave the schedules alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from raybo.acquisition import exploration
from raybo.common.options import option
from raybo.methods.method import Method
from raybo.methods.parts.hyperparameters import HYPERPARAMETERS_MEAN, Hyperparameters, fixed_values
from raybo.methods.parts.initial_design import is_in_design
from raybo.record.history import History
from raybo.solvers import grid_size
from raybo.surrogate import GP, KernelName

Kappa: TypeAlias = Literal["practical", "theory"] | float

LARGEST_POWER = 2.0  # largest power of t in the grid's size: at t = 100, 10,000 times the first grid


@dataclass(frozen=True, kw_only=True)
class RandomGridOptions(Method):
    """Holds the options that both methods share."""

    points_per_round: int = option(100, "grid points, times t if the grid grows", at_least=1)
    grid: Literal["growing", "fixed"] | float = option(
        "growing", "the grid grows with t, is fixed, or grows as t^number", at_least=0, at_most=LARGEST_POWER
    )
    initial: int | None = option(
        None, "points of the Sobol design; none: 10 per axis, at most a quarter of the trials", at_least=1
    )
    kernel: KernelName = option("matern52", "of the standard model: matern52, matern32 or rbf")
    hyperparameters: Hyperparameters = option("map", HYPERPARAMETERS_MEAN)
    B: float = option(1.0, "bound on the objective's norm, for kappa=theory", at_least=0)
    R: float = option(1.0, "sub-Gaussian scale of the noise, for kappa=theory", at_least=0)
    delta: float = option(0.1, "probability that the theorem's bounds may fail, for kappa=theory", above=0, below=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        fixed_values(self.hyperparameters)

    def is_in_design(self, history: History) -> bool:
        """True if the next trial belongs to the initial design."""
        return is_in_design(history, 10 * history.d, self.initial)

    def size(self, t: int) -> int:
        """Return the size of the random grid at step t = 1, 2, ...: c t if growing, c if fixed, or c t^number."""
        power = {"growing": 1.0, "fixed": 0.0}[self.grid] if isinstance(self.grid, str) else self.grid
        return grid_size(t, self.points_per_round, power)

    def exploration(self, rule: Kappa, t: int, gp: GP, result: str) -> float:
        """Return kappa at step t by the rule; the theorem's, which `result` names, by the GP's information gain."""
        gain = gp.information_gain if rule == "theory" else 0.0
        return exploration(rule, t, information_gain=gain, B=self.B, R=self.R, delta=self.delta, result=result)
