"""A model fitted to a study, as methods use it: one protocol, `FittedModel`.

    improvement, bound    acquisitions, whose maximiser is the next point
    prediction            mean and standard deviation at a point, as tags
    tags                  where the next fit starts
    near, known           where to search: around the best points, and away from the observed ones

Two classes implement it: `FittedSurrogate` for one number, `goals_model.FittedGoals` for several metrics and
constraints, each of which has a `FittedSurrogate`. How they are made:

    fitting             from all observations, by a Gaussian process or by several with sampled hyperparameters
    learning_curves     from the reports of trials, at their last step
    local_models        from the observations that matter to one proposal, in studies of many trials
    default.committee   by models that assume different things

Pending trials are part of a fit: they are believed at their posterior mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from raybo.acquisition import (
    Acquisition,
    Average,
    LogAverage,
    LogExpectedImprovement,
    Surrogate,
    UpperConfidence,
)
from raybo.methods.method import EXPECTS, IN_UNITS
from raybo.record.events import Tags
from raybo.space import Array
from raybo.surrogate import GP, Outputs

NINETY = 1.6449  # sd on either side of the mean: the 90% interval of a normal law


class FittedModel(Protocol):
    """A model of a study's values, conditioned on all that is known.

    Its units are those of the transformed, maximised values.
    """

    @property
    def tags(self) -> Tags:
        """The start of the next fit, to be stored with the proposal."""
        ...

    @property
    def near(self) -> Array:  # (m, d)
        """The best points, at which the search for the next point begins."""
        ...

    @property
    def known(self) -> Array:  # (n, d)
        """The points that the model is conditioned on."""
        ...

    def improvement(self, nu: float = 1.0) -> Acquisition:
        """Return the logarithm of the expected improvement over the incumbent.

        Args:
            nu: multiplies the standard deviation of a single metric; above 1 explores more.
        """
        ...

    def bound(self, kappa: float) -> Acquisition:
        """Return the upper confidence bound of kappa standard deviations."""
        ...

    def prediction(self, x: Array) -> Tags:  # (d,)
        """Return the prediction at a point: the tags `mean` and `std`, in the model's units, and `expects`."""
        ...


S_co = TypeVar("S_co", bound=Surrogate, covariant=True)


@dataclass(frozen=True, eq=False)
class FittedSurrogate(Generic[S_co]):
    """One number's surrogates: a single one, or several that are averaged.

    Attributes:
        members: of several, one for each sample of the hyperparameters, or one for each set of assumptions.
        outputs: transforms maximised values into the members' units.
        incumbent: the best finished value, in those units.
        best: (d,), the point with the best known value.
        known: (n, d), the points that the members are conditioned on.
        tags: where the next fit starts.
        weights: of members with different assumptions; the first of them predicts. None if all have the same
            assumptions and predict together.
        seen: (m, d), the points whose means span the values that were seen, if they are others than `known`.
    """

    members: tuple[S_co, ...]
    outputs: Outputs
    incumbent: float
    best: Array
    known: Array
    tags: Tags
    weights: tuple[float, ...] | None = None
    seen: Array | None = None

    @property
    def gp(self) -> S_co:
        """The first member."""
        return self.members[0]

    @property
    def near(self) -> Array:  # (1, d)
        """The best point, where the search begins."""
        return self.best[None, :]

    def improvement(self, nu: float = 1.0) -> Acquisition:
        """Return the logarithm of the expected improvement, averaged over the members."""

        def of(gp: Surrogate) -> Acquisition:
            return LogExpectedImprovement(gp, self.incumbent, nu)

        return self.average(of, log=True)

    def bound(self, kappa: float) -> Acquisition:
        """Return the upper confidence bound of kappa standard deviations, averaged over the members."""

        def of(gp: Surrogate) -> Acquisition:
            return UpperConfidence(gp, kappa)

        return self.average(of)

    def average(self, acquisition: Callable[[S_co], Acquisition], *, log: bool = False) -> Acquisition:
        """Return an acquisition averaged over the members.

        Args:
            acquisition: makes a member's.
            log: average the exponentials of acquisitions that are logarithms.
        """
        if len(self.members) == 1:
            return acquisition(self.gp)
        return (LogAverage if log else Average)([acquisition(gp) for gp in self.members], self.weights)

    def prediction(self, x: Array) -> Tags:  # (d,)
        """Return the posterior mean and standard deviation at a point, as tags."""
        members = self.members if self.weights is None else self.members[:1]
        moments = [gp.posterior(x[None, :]) for gp in members]
        means, variances = np.array([m[0][0] for m in moments]), np.array([m[1][0] for m in moments])
        tags: Tags = {"mean": float(means.mean()), "std": float(np.sqrt(variances.mean() + means.var()))}
        expected = self._expected(x)
        return {**tags, EXPECTS: [expected]} if expected else tags

    def _expected(self, x: Array) -> list[float]:  # (d,)
        """Return the maximised value that all members together expect, with its 90% interval and the best known one.

        Its 5%, 50% and 95% points and, once a trial has finished, the incumbent, with six digits; empty if one of
        them is not finite.
        """
        seen = self.known if self.seen is None else self.seen
        if len(seen) == 0:
            return []
        moments = [gp.posterior(x[None, :]) for gp in self.members]
        means, variances = np.array([m[0][0] for m in moments]), np.array([m[1][0] for m in moments])
        mean = float(np.average(means, weights=self.weights))
        sd = math.sqrt(float(np.average(variances + np.square(means - mean), weights=self.weights)))
        best = [self.incumbent] if math.isfinite(self.incumbent) else []
        ends = np.array([mean - NINETY * sd, mean, mean + NINETY * sd, *best])
        known = self.gp.posterior(seen)[0]
        low, high = float(known.min()), max(float(known.max()), self.incumbent)
        with np.errstate(all="ignore"):
            # beyond what was seen a power transform's inverse may grow without bound: continued by its mean slope
            bottom, top = self.outputs.invert(np.array([low, high]))
            inside = np.clip(ends, low, high)
            values = self.outputs.invert(inside) + (ends - inside) * (top - bottom) / (high - low)
        return [float(f"{value:.6g}") for value in values] if np.isfinite(values).all() else []


FittedGP: TypeAlias = FittedSurrogate[GP]
Transform: TypeAlias = Callable[[Array], Outputs]  # makes the transform of given values


def prediction_in_words(tags: Tags) -> str:
    """Return the prediction in the tags of a point, in words, and probabilities.

    In the metrics' units if `tags` has it so, see `explaining.in_units`; else in standard deviations of the values.
    """
    text = tags.get(IN_UNITS) or _in_deviations(tags)
    for name, word in (("feasible", "satisfies the constraints"), ("success", "succeeds")):
        if name in tags:
            text += f", {word} with probability {tags[name]:.2f}"
    return text


def _in_deviations(tags: Tags) -> str:
    means, stds = (tags[name] if isinstance(tags[name], list) else [tags[name]] for name in ("mean", "std"))
    sides = (f"{abs(mean):.2f} sd {'better' if mean >= 0.0 else 'worse'} than average" for mean in means)
    return f"expected {' and '.join(sides)}, uncertain by {' and '.join(f'{std:.2f}' for std in stds)} sd"
