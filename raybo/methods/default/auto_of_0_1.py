"""The rule of raybo 0.1's `auto`: studies that it began continue by it, and those of many results do too.

Ten Sobol points; then, on one Gaussian process of tamed values, log expected improvement or an upper confidence bound
of 1.5 standard deviations, drawn anew each time, and every other time a bound of four if the point found is known.
"""

from __future__ import annotations

import numpy as np

from raybo.acquisition import Acquisition
from raybo.methods.parts.fitting import fitted
from raybo.methods.parts.initial_design import is_in_design, sobol_proposal
from raybo.methods.parts.next_point import solve_apart
from raybo.methods.parts.trial_costs import costs_that_matter, per_cost
from raybo.record.history import History, Proposal
from raybo.solvers import Solution
from raybo.surrogate import Standardised, Tamed, standard_model

OPTIMISM = 1.5  # standard deviations that a confidence bound adds to the mean
FAR_OPTIMISM = 4.0  # standard deviations that it adds if the point found is as good as known
SETTLED = 1e-3  # of the values' standard deviation: what is known better than this needs no further look


def propose_as_0_1(history: History, rng: np.random.Generator, initial: int | None) -> Proposal:
    """Return a point of the initial design, then the maximiser of one of the two acquisitions."""
    if is_in_design(history, 10, initial):
        return sobol_proposal(history, rng)
    return mixture(history, rng)


def mixture(history: History, rng: np.random.Generator, *, is_plain: bool = False) -> Proposal:
    """Return the maximiser of one of the two acquisitions; failed trials count as the worst value.

    Args:
        is_plain: true if values are only standardised, and expected improvement alone decides.
    """
    outputs = Standardised.of(history.y) if is_plain else Tamed.of(history.y)
    fit = fitted(history, standard_model(), rng, outputs=outputs)

    def maximise(acquisition: Acquisition) -> Solution:
        return solve_apart("lbfgsb", acquisition, history, rng, size=1_000, starts=8, near=fit.near)

    if not is_plain and costs_that_matter(history) is None and rng.random() < 0.5:
        name, found = "ucb", maximise(fit.bound(OPTIMISM))
    else:
        name, found = "log-ei", maximise(per_cost(fit.improvement(), history))
    if fit.prediction(found.x)["std"] < SETTLED and rng.random() < 0.5:
        name, found = "far", maximise(fit.bound(FAR_OPTIMISM))
    return Proposal(found.x, {"acquisition": name, **fit.prediction(found.x), **fit.tags})
