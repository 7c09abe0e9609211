"""gp-ucb: upper confidence bounds, maximised as exactly or inexactly as one likes.

Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", UAI,
Algorithm 1 with the random grid of section 4. The paper's beta_t multiplies the standard deviation: kappa here. The
experiments' is sqrt(log(t + 1)); with kappa=theory it is Theorem 3's or 7's, for the information gain of the points
visited in place of the largest that any could have.
Departures: the model is Matern-5/2 with a length-scale an axis on standardised values (`preset="paper"` restores the
published one, `preset="contexts"` takes that of Huang et al. (2024), for comparisons with their methods); pending
trials are believed at their posterior mean; failed trials count as the worst value seen; the initial design is cut to a
quarter of a short study.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from raybo.acquisition import UpperConfidence
from raybo.context import context_model
from raybo.history import History, Proposal, Tags
from raybo.methods.shared.apart import taken
from raybo.methods.shared.design import sobol_proposal
from raybo.methods.shared.model import Fitted, fitted
from raybo.methods.shared.options import option, require_finite, require_not_negative, require_positive
from raybo.methods.shared.random_grid import Kappa, RandomGridOptions, check_kappa
from raybo.solvers import SolverName, solve
from raybo.solvers.inexactness import measure
from raybo.surrogate import Standardised, random_grid_model, standard_model


@dataclass(frozen=True, kw_only=True)
class GpUcb(RandomGridOptions):
    """Upper confidence bounds of a Gaussian process, maximised over a fresh random grid or by a climber.

    Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", UAI.
    """

    solver: SolverName = option("random-grid", "how the bound is maximised")
    kappa: Kappa = option(
        "practical", "standard deviations added to the mean: sqrt(log(t + 1)), the theorem's, or a number"
    )
    diagnostics: int = option(0, "measure the solver's inexactness every so many suggestions; 0 never (it is costly)")
    preset: Literal["standard", "paper", "contexts"] = option(
        "standard",
        "the model, and with paper the solvers' settings; contexts: the model that sbo-kde has, over x alone",
    )
    lengthscale_start: float = option(1.0, "of the paper's model, in sides of the cube")
    prior_mean: float = option(0.0, "of the paper's model, in the values that are maximised")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kappa(self.kappa)
        require_not_negative(self, "diagnostics")
        require_positive(self, "lengthscale_start")
        require_finite(self, "prior_mean")

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design, then the maximiser of the bound."""
        if self.is_in_design(history):
            return sobol_proposal(history, rng)
        t = 1 + history.count_tag("t")
        fit = self._fit(history, rng)
        on_grid = self.solver == "random-grid"
        kappa = self.exploration(self.kappa, t, fit.gp, "random-grid-ucb" if on_grid else "ucb")
        bound = fit.average(lambda gp: UpperConfidence(gp, kappa))
        points, apart = taken(history)
        found = solve(
            self.solver,
            bound,
            history.cube,
            rng,
            preset="paper" if self.preset == "paper" else "standard",
            size=self.size(t) if on_grid else None,
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
        model = context_model() if self.preset == "contexts" else standard_model(self.kernel)
        return fitted(history, model, rng, estimate=self.hyperparameters)

    def explain(self, tags: Tags) -> str:
        """The design, or the bound's two parts in standard deviations of the values."""
        if "sobol" in tags:
            return "initial design (Sobol)"
        return (
            f"upper confidence bound: expects {tags['mean']:+.2f} sd, {tags['kappa']:.2f} times {tags['std']:.2f} added"
        )
