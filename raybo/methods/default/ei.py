"""ei: expected improvement over the incumbent, or its probability, maximised through the logarithm.

Kushner (1964) for the probability; Mockus (1978); Jones et al. (1998); Ament et al. (2023), "Unexpected Improvements to
Expected Improvement for Bayesian Optimization", for the logarithm.
Pending trials are believed at their posterior mean; failed trials count as the worst value seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from raybo.acquisition import (
    Acquisition,
    LogExpectedImprovement,
    LogProbabilityOfImprovement,
    best_posterior_mean,
)
from raybo.errors import MethodError
from raybo.events import Tags
from raybo.history import History, Proposal
from raybo.methods.apart import solve_apart
from raybo.methods.design import explain_design, is_in_design, sobol_proposal
from raybo.methods.fitting import fitted
from raybo.methods.guesses import believing, design_by_guess
from raybo.methods.hyperparameters import HYPERPARAMETERS_MEAN, Hyperparameters, fixed_values
from raybo.methods.options import Options, option
from raybo.solvers import SolverName
from raybo.surrogate import GP, KernelName, standard_model


@dataclass(frozen=True, kw_only=True)
class Ei(Options):
    """Expected improvement over the best value seen, or over the best posterior mean where values are noisy.

    Jones, Schonlau, Welch (1998), "Efficient global optimization of expensive black-box functions".
    """

    uses_guesses: ClassVar[bool] = True
    solver: SolverName = option("lbfgsb", "how it is maximised")
    incumbent: Literal["value", "mean"] = option("value", "the best value seen, or the best posterior mean at a point")
    improvement: Literal["expected", "probability"] = option("expected", "its expectation, or its probability")
    nu: float = option(1.0, "multiplies the standard deviation; more explores more", above=0)
    points: int = option(1_000, "points of the random grid", at_least=1)
    initial: int | None = option(
        None, "points of the Sobol design; none: 10 per axis, at most a quarter of the trials", at_least=1
    )
    kernel: KernelName = option("matern52", "matern52, matern32 or rbf")
    hyperparameters: Hyperparameters = option("map", HYPERPARAMETERS_MEAN)

    def __post_init__(self) -> None:
        super().__post_init__()
        fixed_values(self.hyperparameters)
        if self.improvement == "probability" and self.nu != 1.0:
            raise MethodError(
                f"nu rescales the expected improvement, not its probability; leave it at 1, got {self.nu}"
            )

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design, then the maximiser of the expected improvement."""
        if is_in_design(history, 10 * history.d, self.initial):
            return design_by_guess(history, sobol_proposal(history, rng))
        fit = fitted(history, standard_model(self.kernel), rng, estimate=self.hyperparameters)

        def improvement(gp: GP) -> Acquisition:
            incumbent = fit.incumbent if self.incumbent == "value" else best_posterior_mean(gp, history.X)
            if self.improvement == "probability":
                return LogProbabilityOfImprovement(gp, incumbent)
            return LogExpectedImprovement(gp, incumbent, self.nu)

        size = self.points if self.solver == "random-grid" else None
        worth = believing(fit.average(improvement, log=True), history)
        found = solve_apart(self.solver, worth, history, rng, size=size, near=fit.best[None, :])
        name = "log_ei" if self.improvement == "expected" else "log_pi"
        return Proposal(found.x, {name: found.value, **fit.prediction(found.x), **fit.tags})

    def explain(self, tags: Tags) -> str:
        """The design, or what is expected of the point in standard deviations of the values."""
        if design := explain_design(tags):
            return design
        name = "probability of improvement" if "log_pi" in tags else "expected improvement"
        return f"{name}: expects {tags['mean']:+.2f} sd, uncertain by {tags['std']:.2f}"
