"""auto: the default. Log expected improvement and an optimistic bound in turn, on a model with short length-scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.acquisition.confidence import UpperConfidence
from raybo.acquisition.improvement import LogExpectedImprovement
from raybo.history import History, Proposal, Tags
from raybo.methods.design import sobol_proposal
from raybo.methods.model import design_size, fitted, taken
from raybo.methods.options import option
from raybo.solvers import solve
from raybo.surrogate import Hyperparameter, LogNormal, Model, Tamed

OPTIMISM = 1.5  # standard deviations
MODEL = Model(
    kernel="matern52",
    lengthscale=Hyperparameter(LogNormal(-1.0, 1.0), low=5e-3, high=20.0, start=0.4),
    outputscale=Hyperparameter(LogNormal(0.0, 1.5), low=1e-2, high=1e2, start=1.0),
    noise_variance=Hyperparameter(LogNormal(-6.0, 1.5), low=1e-6, high=1.0, start=1e-3),
)


@dataclass(frozen=True, kw_only=True)
class Auto:
    """Log expected improvement and an upper confidence bound, at random in turn, on a Gaussian process."""

    initial: int | None = option(None, "points of the Sobol design; none: 10, at most a quarter of the trials")

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """The initial design, then the maximiser of one of the two acquisitions."""
        if len(history) < design_size(history, 10, self.initial) or len(history.y) == 0:
            return sobol_proposal(history, rng)
        fit = fitted(history, MODEL, outputs=Tamed.of(history.y))
        optimistic = bool(rng.random() < 0.5)
        acquisition = UpperConfidence(fit.gp, OPTIMISM) if optimistic else LogExpectedImprovement(fit.gp, fit.incumbent)
        points, apart = taken(history)
        found = solve("lbfgsb", acquisition, history.cube, rng, near=fit.best[None, :], avoid=points, apart=apart)
        mean, var = fit.gp.posterior(found.x[None, :])
        tags = {
            "acquisition": "ucb" if optimistic else "log-ei",
            "theta": fit.theta.tolist(),
            "mean": float(mean[0]),
            "std": float(np.sqrt(var[0])),
        }
        return Proposal(found.x, tags)

    def explain(self, tags: Tags) -> str:
        """The design, or what the model expects of the point in standard deviations of the values."""
        if "sobol" in tags:
            return "initial design (Sobol)"
        names = {"ucb": "upper confidence bound", "log-ei": "expected improvement"}
        return f"{names[tags['acquisition']]}: expects {tags['mean']:+.2f} sd, uncertain by {tags['std']:.2f}"
