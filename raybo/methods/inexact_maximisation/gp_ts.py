"""gp-ts: Thompson sampling, the maximiser of one function drawn from the posterior.

Kim et al. (2025), Algorithm 2 and Theorem 8: f_t has the posterior's mean and kappa_t^2 times its covariance, and is
maximised over a fresh random grid of c t points. The draw is joint and exact on up to 2,000 points, and beyond made of
random features corrected by the data, as it is for the climbing solvers.
Departures: kappa is 1, plain Thompson sampling, unless the option is set (the theorem's kappa_t grows, and the
paper has no experiment with Thompson sampling); the model is the standard one; failed trials count as the worst value
seen. Pending trials need nothing: draws differ; they are believed all the same, so that many workers keep apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.acquisition import Inflated, JointDraw
from raybo.acquisition.thompson import LARGEST_JOINT
from raybo.common.options import option
from raybo.methods.inexact_maximisation.schedules import Kappa, RandomGridOptions
from raybo.methods.parts.fitted_model import prediction_in_words
from raybo.methods.parts.fitting import fitted
from raybo.methods.parts.initial_design import explain_design, sobol_proposal
from raybo.methods.parts.next_point import solve_apart
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.solvers import SolverName
from raybo.surrogate import draw_function, standard_model


@dataclass(frozen=True, kw_only=True)
class GpTs(RandomGridOptions):
    """Thompson sampling: maximises a posterior sample over a fresh random grid or by a local optimiser.

    Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", UAI.
    """

    solver: SolverName = option("random-grid", "how the draw is maximised")
    kappa: Kappa = option(
        1.0, "factor on the draw's spread about the mean: a number, sqrt(log(t + 1)), or the theorem's", at_least=0
    )
    inflation: float = option(0.0, "added to the standard deviation: (1 / eta - 1) B of Theorem 4", at_least=0)

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return a point of the initial design, then the maximiser of a draw."""
        if self.is_in_design(history):
            return sobol_proposal(history, rng)
        t = 1 + history.count_tag("t")
        fit = fitted(history, standard_model(self.kernel), rng, estimate=self.hyperparameters)
        gp = fit.members[int(rng.integers(len(fit.members)))]
        on_grid = self.solver == "random-grid"
        kappa = self.exploration(self.kappa, t, gp, "random-grid-ts" if on_grid else "ts")
        grid = self.size(t)
        if on_grid and grid <= LARGEST_JOINT:
            joint = JointDraw(gp, int(rng.integers(2**63)), kappa, self.inflation)
            found = solve_apart(self.solver, joint, history, rng, size=grid)
        else:
            draw = Inflated(gp, draw_function(gp, rng, levels=history.cube.levels), kappa, self.inflation)
            size = grid if on_grid else None
            found = solve_apart(self.solver, draw, history, rng, size=size, near=fit.best[None, :])
        tags = {"t": t, "kappa": kappa, "drawn": found.value, **fit.prediction(found.x), **fit.tags}
        return Proposal(found.x, tags)

    def explain(self, tags: Tags) -> str:
        """Explain a point of the design, or the draw's maximiser by its prediction."""
        if design := explain_design(tags):
            return design
        return f"Thompson sampling: {prediction_in_words(tags)}"
