"""gp-ucb: upper confidence bounds, maximised as exactly or inexactly as the options set.

Kim et al. (2025), Algorithm 1 with the random grid of section 4. The paper's beta_t multiplies the standard deviation:
kappa here. The experiments' is sqrt(log(t + 1)); with kappa=theory it is Theorem 3's or 7's, for the information gain
of the points visited in place of the largest that any could have.
Departures: the model is Matern-5/2 with a length-scale per axis on standardised values (`preset="paper"` restores the
published one, `preset="contexts"` takes that of Huang et al. (2024), for comparisons with their methods); pending
trials are believed at their posterior mean; failed trials count as the worst value seen; the initial design is cut to a
quarter of a short study. Several metrics: the bound of a random scalarisation; constraints: plus the logarithm of the
probability that they hold. Beyond 400 trials the standard model is of the observations that matter to a proposal, see
`local_models`, and the grid has 2,000 points; not for kappa=theory, which needs all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from raybo.acquisition import Acquisition, random_weights
from raybo.common.errors import MethodError
from raybo.common.options import option
from raybo.context import context_model
from raybo.methods.inexact_maximisation.schedules import Kappa, RandomGridOptions
from raybo.methods.parts.fitted_model import FittedGP, prediction_in_words
from raybo.methods.parts.fitting import fitted
from raybo.methods.parts.goals_model import FittedGoals
from raybo.methods.parts.guesses import believing, design_by_guess
from raybo.methods.parts.initial_design import explain_design, sobol_proposal
from raybo.methods.parts.local_maximiser import GRID, maximise
from raybo.methods.parts.local_models import ManyObservations, is_large
from raybo.methods.parts.memory_limit import with_memory_limit
from raybo.methods.parts.multi_objective import FitOptions, maximise_goals, require_one_estimate
from raybo.methods.parts.next_point import solve_apart
from raybo.methods.story import OverTrials, Scale, Series, Story
from raybo.record.events import Tags
from raybo.record.goals import Goals
from raybo.record.history import History, Proposal
from raybo.record.trial import Trial
from raybo.solvers import Solution, SolverName
from raybo.solvers.inexactness import measure
from raybo.surrogate import GP, Standardised, random_grid_model, standard_model


@dataclass(frozen=True, kw_only=True)
class GpUcb(RandomGridOptions):
    """Upper confidence bounds of a Gaussian process, maximised over a fresh random grid or by a local optimiser.

    Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", UAI.
    """

    takes_goals: ClassVar[bool] = True
    uses_guesses: ClassVar[bool] = True

    solver: SolverName = option("random-grid", "how the bound is maximised")
    kappa: Kappa = option(
        "practical", "standard deviations added to the mean: sqrt(log(t + 1)), the theorem's, or a number", at_least=0
    )
    diagnostics: int = option(
        0, "measure the solver's inexactness every N suggestions; 0: never (it is costly)", at_least=0
    )
    preset: Literal["standard", "paper", "contexts"] = option(
        "standard",
        "the model, and with paper the solvers' settings too; contexts: sbo-kde's model, over x alone",
    )
    lengthscale_start: float = option(
        1.0, "of the paper's model, in sides of the cube: the raw unit, in which the paper's solvers work", above=0
    )
    origin: tuple[float, ...] = option((0.0,), "of the paper's solvers: the cube's lower corner in raw units")
    prior_mean: float = option(0.0, "of the paper's model, in the values that are maximised")

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return a point of the initial design, then the maximiser of the bound."""
        if self.is_in_design(history):
            return design_by_guess(history, sobol_proposal(history, rng))
        t = 1 + history.count_tag("t")
        history = with_memory_limit(history)
        if not history.goals.is_plain:
            return self._several(history, t, rng)
        if self.preset == "standard" and self.kappa != "theory" and is_large(history, self.hyperparameters):
            return self._of_many(history, rng, t)
        fit = self._fit(history, rng)
        on_grid = self.solver == "random-grid"
        kappa = self.exploration(self.kappa, t, fit.gp, "random-grid-ucb" if on_grid else "ucb")
        bound = believing(fit.bound(kappa), history)
        size = self.size(t) if on_grid else None
        settings: dict[str, Any] = {"near": fit.near}
        if self.preset == "paper":
            if len(self.origin) not in (1, history.d):
                raise MethodError(
                    f"origin gives {len(self.origin)} numbers for {history.d} axes; give 1 or {history.d}"
                )
            settings = {"preset": "paper", "unit": self.lengthscale_start, "origin": self.origin}
        found = solve_apart(self.solver, bound, history, rng, size=size, **settings)
        return self._proposal(history, rng, t, kappa, bound, fit, found)

    def _of_many(self, history: History, rng: np.random.Generator, t: int) -> Proposal:
        """Propose for a history too large for one exact Gaussian process."""
        model, outputs = standard_model(self.kernel), Standardised.of(history.y)
        models = ManyObservations.of(history, model, outputs, self.hyperparameters).local_models()
        kappa = self.exploration(self.kappa, t, models.wide.gp, "ucb")
        grid = min(self.size(t), GRID)
        fit, found = maximise(models, lambda fit: fit.bound(kappa), rng, self.solver, grid)
        return self._proposal(history, rng, t, kappa, fit.bound(kappa), fit, found)

    def _proposal(
        self,
        history: History,
        rng: np.random.Generator,
        t: int,
        kappa: float,
        bound: Acquisition,
        fit: FittedGP,
        found: Solution,
    ) -> Proposal:
        tags = {"t": t, "kappa": kappa, "evaluations": found.evaluations, **fit.prediction(found.x), **fit.tags}
        if self.diagnostics and t % self.diagnostics == 0:
            shift = float(np.max(np.abs(fit.gp.y)))  # the constant B of the paper's shift, estimated
            tags["inexactness"] = measure(bound, history.cube, rng, found, fixed_shift=shift).to_json()
        return Proposal(found.x, tags)

    def _several(self, history: History, t: int, rng: np.random.Generator) -> Proposal:
        """Return the maximiser of the bound of a random scalarisation, weighted by the constraints' probability."""
        on_grid, k = self.solver == "random-grid", history.goals.k
        weights = random_weights(k, rng) if k > 1 and history.feasible.any() else np.ones(k)

        def kappa_of(models: FittedGoals) -> float:
            gp = models.metrics[0].gp
            assert isinstance(gp, GP), "curves are not modelled here"
            return self.exploration(self.kappa, t, gp, "random-grid-ucb" if on_grid else "ucb")

        def worth(models: FittedGoals) -> Acquisition:
            return believing(models.bound(kappa_of(models), weights), history)

        options = FitOptions(standard_model(self.kernel), self.hyperparameters, Standardised.of)
        size = self.size(t) if on_grid else None
        models, found = maximise_goals(history, options, rng, worth, self.solver, size=size)
        tags = {**models.prediction(found.x), **models.tags}
        return Proposal(found.x, {"t": t, "kappa": kappa_of(models), "evaluations": found.evaluations, **tags})

    def check_goals(self, goals: Goals) -> None:
        """Raise MethodError if an option needs a single metric and no constraints."""
        require_one_estimate(self.hyperparameters)
        given = {"preset": self.preset != "standard", "diagnostics": self.diagnostics > 0}
        if wrong := next((name for name, is_given in given.items() if is_given), None):
            raise MethodError(f"{wrong}={getattr(self, wrong)} needs a single metric and no constraints; leave it out")

    def _fit(self, history: History, rng: np.random.Generator) -> FittedGP:
        if self.preset == "paper":
            model, outputs = random_grid_model(self.lengthscale_start), Standardised(self.prior_mean, 1.0)
            return fitted(history, model, rng, outputs=outputs, estimate=self.hyperparameters, afresh=True)
        model = context_model() if self.preset == "contexts" else standard_model(self.kernel)
        return fitted(history, model, rng, estimate=self.hyperparameters)

    def story(self, trials: Sequence[Trial], names: Sequence[str]) -> Story | None:
        """Return a story of the solver's inexactness, if it was measured."""
        return inexactness_story(trials)

    def share_reached(self, tags: Tags) -> float | None:
        """Return eta_t; NaN if it was not measured, None in the initial design."""
        if "t" not in tags:
            return None
        eta = tags["inexactness"]["eta"] if "inexactness" in tags else None
        return math.nan if eta is None else float(eta)

    def explain(self, tags: Tags) -> str:
        """Explain a point of the design, or of the bound by its prediction."""
        if design := explain_design(tags):
            return design
        return f"upper confidence bound (kappa {tags['kappa']:.3g}): {prediction_in_words(tags)}"


def inexactness_story(trials: Sequence[Trial]) -> Story | None:
    """Return a story of the solver's distance to the bound's maximum; None if it was not measured."""
    measured = [(trial.number, trial.tags["inexactness"]) for trial in trials if "inexactness" in trial.tags]
    if not measured:
        return None
    numbers = tuple(number for number, _ in measured)
    eta, gap = (
        Series(numbers, tuple(tag.get(name) for _, tag in measured), look="measured", digits=4)
        for name in ("eta", "gap")
    )
    known = [value for value in eta.values if value is not None]
    mean = f" It was {np.mean(known):.3f} on average." if known else ""
    caption = (
        "How exactly the acquisition was maximised, against a much more thorough search: its value relative to the "
        f"highest one after the shift that makes it non-negative (left), and the difference (right).{mean}"
    )
    left = OverTrials((eta,), Scale("accuracy (1 is exact)", (-0.03, 1.05)))
    right = OverTrials((gap,), Scale("gap to the maximum, in sd", from_zero=True))
    return Story("inexactness", "Inexactness of the inner solver", caption, (left, right), 340)
