"""ei: expected improvement over the incumbent, or its probability, maximised through the logarithm.

Kushner (1964) for the probability; Mockus (1978); Jones et al. (1998); Ament et al. (2023), "Unexpected Improvements to
Expected Improvement for Bayesian Optimization", for the logarithm.
Pending trials are believed at their posterior mean; failed trials count as the worst value seen.
Several metrics: expected hypervolume improvement; constraints: times the probability that they hold.
Beyond 400 trials the model is of the observations that matter to a proposal, see `local_models`, unless hyperparameters
are sampled.
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
from raybo.common.errors import MethodError
from raybo.common.options import option
from raybo.methods.method import Method
from raybo.methods.parts.fitted_model import FittedGP, prediction_in_words
from raybo.methods.parts.fitting import fitted
from raybo.methods.parts.goals_model import FittedGoals
from raybo.methods.parts.guesses import believing, design_by_guess
from raybo.methods.parts.hyperparameters import HYPERPARAMETERS_MEAN, Hyperparameters, fixed_values
from raybo.methods.parts.initial_design import explain_design, is_in_design, sobol_proposal
from raybo.methods.parts.local_maximiser import maximise
from raybo.methods.parts.local_models import ManyObservations, is_large
from raybo.methods.parts.memory_limit import with_memory_limit
from raybo.methods.parts.multi_objective import FitOptions, maximise_goals, require_one_estimate
from raybo.methods.parts.next_point import solve_apart
from raybo.methods.parts.trial_costs import per_cost
from raybo.record.events import Tags
from raybo.record.goals import Goals
from raybo.record.history import History, Proposal
from raybo.solvers import Solution, SolverName
from raybo.space import Array
from raybo.surrogate import GP, KernelName, Standardised, standard_model


@dataclass(frozen=True, kw_only=True)
class Ei(Method):
    """Expected improvement over the best value seen or, with `incumbent=mean`, over the best posterior mean.

    Jones, Schonlau, Welch (1998), "Efficient global optimization of expensive black-box functions".
    """

    takes_goals: ClassVar[bool] = True
    uses_guesses: ClassVar[bool] = True

    solver: SolverName = option("lbfgsb", "how it is maximised")
    incumbent: Literal["value", "mean"] = option("value", "the best value seen, or the best posterior mean at a point")
    improvement: Literal["expected", "probability"] = option(
        "expected", "the improvement's expectation, or its probability"
    )
    nu: float = option(1.0, "multiplies the standard deviation; a larger one explores more", above=0)
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
        """Return a point of the initial design, then the maximiser of the expected improvement."""
        if is_in_design(history, 10 * history.d, self.initial):
            return design_by_guess(history, sobol_proposal(history, rng))
        history = with_memory_limit(history)
        if not history.goals.is_plain:
            return self._several(history, rng)
        model = standard_model(self.kernel)
        if is_large(history, self.hyperparameters):
            observations = ManyObservations.of(history, model, Standardised.of(history.y), self.hyperparameters)
            models = observations.local_models()
            fit, found = maximise(
                models,
                lambda fit: per_cost(self._worth(fit.gp, fit, fit.gp.X), history),
                rng,
                self.solver,
                grid=self.points,
            )
            return self._proposal(fit, found)
        fit = fitted(history, model, rng, estimate=self.hyperparameters)
        size = self.points if self.solver == "random-grid" else None
        worth = fit.average(lambda gp: self._worth(gp, fit, history.X), log=True)
        worth = per_cost(believing(worth, history), history)
        found = solve_apart(self.solver, worth, history, rng, size=size, near=fit.near)
        return self._proposal(fit, found)

    def _worth(self, gp: GP, fit: FittedGP, X: Array) -> Acquisition:
        """Return the improvement by one GP over the incumbent, or over the best mean at the rows of X."""
        incumbent = fit.incumbent if self.incumbent == "value" else best_posterior_mean(gp, X)
        if self.improvement == "probability":
            return LogProbabilityOfImprovement(gp, incumbent)
        return LogExpectedImprovement(gp, incumbent, self.nu)

    def _proposal(self, fit: FittedGP, found: Solution) -> Proposal:
        name = "log_ei" if self.improvement == "expected" else "log_pi"
        return Proposal(found.x, {name: found.value, **fit.prediction(found.x), **fit.tags})

    def _several(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return the maximiser of the expected improvement, of the value or of the hypervolume, if constraints hold."""

        def worth(models: FittedGoals) -> Acquisition:
            return per_cost(believing(models.improvement(self.nu), history), history)

        options = FitOptions(standard_model(self.kernel), self.hyperparameters)
        size = self.points if self.solver == "random-grid" else None
        models, found = maximise_goals(history, options, rng, worth, self.solver, size=size)
        tags = {**models.prediction(found.x), **models.tags}
        return Proposal(found.x, {models.name.replace("-", "_"): found.value, **tags})

    def check_goals(self, goals: Goals) -> None:
        """Raise MethodError if an option needs a single metric, or one without constraints."""
        require_one_estimate(self.hyperparameters)
        given = {"improvement": self.improvement != "expected", "incumbent": self.incumbent != "value"}
        if wrong := next((name for name, is_given in given.items() if is_given), None):
            raise MethodError(f"{wrong}={getattr(self, wrong)} needs a single metric and no constraints; leave it out")
        if self.nu != 1.0 and goals.k > 1:
            raise MethodError(f"nu={self.nu} needs a single metric; leave it out")

    def explain(self, tags: Tags) -> str:
        """Return the design, or what is expected of the point in standard deviations of the values."""
        if design := explain_design(tags):
            return design
        names = {
            "log_pi": "probability of improvement",
            "log_ehvi": "expected hypervolume improvement",
            "feasible_first": "nothing is feasible yet",
        }
        name = next((words for tag, words in names.items() if tag in tags), "expected improvement")
        return f"{name}: {prediction_in_words(tags)}"
