"""Maximises the expected improvement over the posterior mean's maximum, with length-scales within bounds.

    theta_L, theta_U   least and largest length-scales
    mu_plus            the posterior mean's maximum over the cube; u = (mean - mu_plus) / std
    EI_nu              nu std tau(u / nu), eq. (8)

The kernel has variance 1 and the noise is known. Ours, since the paper gives none: theta_L, theta_U, the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from raybo.acquisition import LogAverage, LogExpectedImprovement, UpperConfidence
from raybo.methods.parts.fitted_model import FittedGP, prediction_in_words
from raybo.methods.parts.fitting import fitted
from raybo.methods.parts.next_point import solve_apart
from raybo.record.events import Tags
from raybo.record.history import History
from raybo.solvers import Solution, SolverName, solve
from raybo.space import Array
from raybo.surrogate import GP, Hyperparameter, KernelName, Model, Standardised


@dataclass(frozen=True, eq=False)
class WithinBounds:
    """Holds the model of f and the solver of the improvement.

    Attributes:
        lower, upper: (d,), theta_L and theta_U.
        kernel, noise_variance, standardise, solver: the options.
    """

    lower: Array
    upper: Array
    kernel: KernelName
    noise_variance: float
    standardise: bool
    solver: SolverName

    @property
    def model(self) -> Model:
        """Return the model: length-scales within the bounds, all else fixed."""
        return Model(
            kernel=self.kernel,
            lengthscale=Hyperparameter(
                low=tuple(self.lower.tolist()),
                high=tuple(self.upper.tolist()),
                start=tuple(np.sqrt(self.lower * self.upper).tolist()),
            ),
            outputscale=Hyperparameter(fixed=1.0),
            noise_variance=Hyperparameter(fixed=self.noise_variance),
        )

    def fit(self, history: History, rng: np.random.Generator, estimate: Literal["map", "slice"]) -> FittedGP:
        """Fit the length-scales within the bounds: the most likely ones, or samples."""
        outputs = Standardised.of(history.y) if self.standardise else Standardised(0.0, 1.0)
        starts = [self.model.start(history.d), self.model.bounds(history.d)[:, 1]]
        return fitted(history, self.model, rng, outputs=outputs, estimate=estimate, starts=starts)


def most_promising(
    fit: FittedGP, nu: float, history: History, rng: np.random.Generator, solver: SolverName
) -> tuple[Array, float]:  # (d,)
    """Return argmax EI_nu and mu_plus, both averaged over the members."""
    tops = [highest_mean(gp, history, rng, solver) for gp in fit.members]
    each = [LogExpectedImprovement(gp, top.value, nu) for gp, top in zip(fit.members, tops, strict=True)]
    improvement = each[0] if len(each) == 1 else LogAverage(each)
    near = np.vstack([fit.best, *(top.x for top in tops)])  # EI mostly peaks with the mean
    found = solve_apart(solver, improvement, history, rng, size=1_500, near=near)
    return found.x, float(np.mean([top.value for top in tops]))


def highest_mean(gp: GP, history: History, rng: np.random.Generator, solver: SolverName) -> Solution:
    """Return the maximiser of the posterior mean over the cube, and mu_plus."""
    order = np.argsort(-gp.posterior(history.X)[0], kind="stable")[:10]
    known, mean = history.X[order], UpperConfidence(gp, 0.0)
    return solve(solver, mean, history.cube, rng, near=known)


def explain_improvement(tags: Tags) -> str:
    """Explain the point by its prediction."""
    return f"expected improvement: {prediction_in_words(tags)}"
