"""A fitted model of several metrics and constraints, and its acquisitions.

Each metric and each constrained number has surrogates of its own. With log P, the logarithm of the probability that all
constraints hold, the acquisitions are

    one metric, constraints     log expected improvement over the best feasible value, or the bound, + log P
    several metrics             log expected hypervolume improvement, or the bound of a random scalarisation, + log P
    nothing is feasible yet     log P alone
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from raybo.acquisition import (
    Acquisition,
    LogExpectedHypervolumeImprovement,
    LogExpectedImprovement,
    LogProbabilityOfImprovement,
    ScalarisedConfidence,
    Surrogate,
    Total,
)
from raybo.methods.method import EXPECTS
from raybo.methods.parts.fitted_model import FittedSurrogate
from raybo.methods.parts.front_and_reference import front_and_reference, still_feasible
from raybo.record.events import Tags
from raybo.record.history import History
from raybo.space import Array

FittedNumber: TypeAlias = FittedSurrogate[Surrogate]


@dataclass(frozen=True, eq=False)
class FittedGoals:
    """A model of a study with several metrics or constraints, see `fitted_model.FittedModel`.

    Attributes:
        metrics: the fit of each metric.
        limits: log P of each constraint.
        is_feasible: True if some finished trial satisfies all constraints.
        incumbent: of a single metric, the posterior mean where the best feasible value was observed.
        front: (f, k), the non-dominated values, in the units of the fits, pending trials included.
        near: (m, d), the best known points.
        known: (n, d), the points that the fits of final values are conditioned on.
        reference: (k,), above which hypervolume counts.
        tags: where the next fits start.
    """

    metrics: tuple[FittedNumber, ...]
    limits: tuple[Acquisition, ...]
    is_feasible: bool
    incumbent: float
    front: Array
    near: Array
    known: Array
    reference: Array
    tags: Tags

    @classmethod
    def of(
        cls, history: History, fits: Sequence[FittedNumber], best: Array, values: Array | None = None
    ) -> FittedGoals:
        """Return the model made of a fit of each metric, and then of each constraint.

        Args:
            history: of the study.
            fits: one for each number.
            best: (b, d), the best points, all of them feasible if any is.
            values: (n, k), of all feasible trials in the units of the fits; if None, `best` holds all feasible points,
                and their posterior means count.
        """
        k = history.goals.k
        metrics, is_feasible = tuple(fits[:k]), bool(history.feasible.any())
        tags: Tags = {}
        for fit in [*fits[k:], *metrics]:
            tags |= fit.tags
        surrogates = [fit.gp for fit in metrics]
        feasible = best if is_feasible else best[:0]
        front, reference, rows = front_and_reference(surrogates, feasible, still_feasible(history), values)
        near = best[:1] if k == 1 or not is_feasible else best[rows]
        incumbent = float(surrogates[0].posterior(near)[0].max())
        return cls(metrics, _limits(fits[k:]), is_feasible, incumbent, front, near, _known(fits), reference, tags)

    def of_other_fits(self, fits: Sequence[FittedNumber]) -> FittedGoals:
        """Return the model with other fits of the numbers, and the same front."""
        k = len(self.metrics)
        return replace(self, metrics=tuple(fits[:k]), limits=_limits(fits[k:]), known=_known(fits))

    @property
    def name(self) -> str:
        """The name of `improvement` in tags."""
        if not self.is_feasible:
            return "feasible"
        return "log-ei" if len(self.metrics) == 1 else "log-ehvi"

    def improvement(self, nu: float = 1.0) -> Acquisition:
        """Return the logarithm of the expected improvement times the probability that the point is feasible.

        Args:
            nu: multiplies the standard deviation, if there is a single metric.
        """
        if not self.is_feasible:
            return Total(self.limits)
        gps = [fit.gp for fit in self.metrics]
        if len(gps) == 1:
            return Total([LogExpectedImprovement(gps[0], self.incumbent, nu), *self.limits])
        return Total([LogExpectedHypervolumeImprovement(gps, self.front, self.reference), *self.limits])

    def bound(self, kappa: float, weights: Array | None = None) -> Acquisition:  # (k,)
        """Return an upper confidence bound plus log P.

        Args:
            kappa: standard deviations.
            weights: of the metrics in their scalarisation; equal unless given.
        """
        if not self.is_feasible:
            return Total(self.limits)
        gps = [fit.gp for fit in self.metrics]
        weights = np.ones(len(gps)) if weights is None else weights
        return Total([ScalarisedConfidence(gps, kappa, self.reference, weights), *self.limits])

    def prediction(self, x: Array) -> Tags:  # (d,)
        """Return mean and std of each metric at a point, and the probability that it is feasible, as tags."""
        predictions = [fit.prediction(x) for fit in self.metrics]
        tags: dict[str, Any] = {name: [each[name] for each in predictions] for name in ("mean", "std")}
        if all(EXPECTS in each for each in predictions):
            tags[EXPECTS] = [each[EXPECTS][0] for each in predictions]
        if len(predictions) == 1:
            tags = predictions[0]
        if self.limits:
            tags["feasible"] = float(np.exp(sum(float(limit.value(x[None, :])[0]) for limit in self.limits)))
        return tags


def _limits(fits: Sequence[FittedNumber]) -> tuple[Acquisition, ...]:
    """Return log P of each constraint, given the fit of its margin."""
    return tuple(LogProbabilityOfImprovement(fit.gp, float(fit.outputs.apply(np.zeros(1))[0])) for fit in fits)


def _known(fits: Sequence[FittedNumber]) -> Array:  # (n, d)
    return np.vstack([fit.known for fit in fits])
