"""Several metrics and constraints: what the methods that take them share.

Each metric and each constrained number has a Gaussian process of its own, with its own hyperparameters. What is
maximised, with log P the logarithm of the probability that all constraints hold:

    one metric, constraints     log expected improvement over the best feasible value, or the bound, + log P
    several metrics             log expected hypervolume improvement, or the bound of a random scalarisation, + log P
    nothing is feasible yet     log P alone

Of trials that have reported and not finished each model knows what they said of its number, as with a single metric: it
is a model of the curves (`auto`), or has what they are predicted to come to by the rule of `unfinished`. Of a
constraint that must hold at every step, a trial that was ended early has what it reported last. To a model that learns
nothing of them trials that were ended early are what pending trials are: else they would be proposed again.

The front is that of the posterior means at the feasible trials, which noise does not flatter; pending trials count at
their means too, so that no two workers look for the same gain. Volume counts above a tenth of the front's extent below
its worst values, and where that is lower, in turn above the worst and the lower quartile of what feasible trials are
expected to have: the first reaches for the ends of the front, the second fills it, and a reference just below the front
would count nothing but what improves on a front that is still too short. The ends of a front of three metrics or more
are fronts themselves, and easily missed: every fourth time the reference lies so far below that they are most of the
volume.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybo.acquisition import (
    Acquisition,
    LogExpectedHypervolumeImprovement,
    LogProbabilityOfImprovement,
    ScalarisedConfidence,
    Surrogate,
    Total,
    random_weights,
)
from raybo.errors import MethodError
from raybo.events import OPEN, State, Tags
from raybo.front import non_dominated
from raybo.goal import Goals
from raybo.history import History
from raybo.methods.apart import solve_apart
from raybo.methods.fitting import fitted
from raybo.methods.hyperparameters import Hyperparameters
from raybo.methods.unfinished import predicted
from raybo.solvers import Solution, SolverName
from raybo.space import Array
from raybo.surrogate import Model, Outputs, SignedLog, Tamed

MARGIN = 0.1  # of the front's extent: how far the reference lies below its worst values
LEVELS = 0.0, 0.25  # of the feasible trials' values, in turn
FAR, OFTEN = 3.0, 4  # of three metrics or more: how far in extents the reference lies below the front, every how often
LEAST_EXTENT = 0.1  # standard deviations; of a front that is a point, or flat
NEAR = 10  # points of the front that the search begins around

Improvement: TypeAlias = Callable[[Surrogate, float], Acquisition]  # over an incumbent
Transform: TypeAlias = Callable[[Array], Outputs]  # made from values


class OfNumber(Protocol):
    """A fit of one number: its posterior, in the units of `outputs`, and what the next fit starts from."""

    @property
    def gp(self) -> Surrogate: ...
    @property
    def outputs(self) -> Outputs: ...
    @property
    def tags(self) -> Tags: ...
    def prediction(self, x: Array) -> Tags: ...


OfCurves: TypeAlias = Callable[
    [History, Transform, str], OfNumber | None
]  # of one number, with the tag of its estimate


@dataclass(frozen=True)
class Several:
    """What is known of a study with several metrics or constraints.

    Attributes:
        metrics: the fit of each metric.
        limits: log P of each constraint.
        feasible: points of the feasible trials, (f, d), and front: (n, k), what no other dominates, in the units of the
            fits, trials in flight included.
        near: (m, d), where the best known points are.
        reference: (k,), above which volume counts.
        tags: what the next fits start from.
    """

    metrics: tuple[OfNumber, ...]
    limits: tuple[Acquisition, ...]
    feasible: Array
    front: Array
    near: Array
    reference: Array
    tags: Tags

    @classmethod
    def of(
        cls,
        history: History,
        model: Model,
        rng: np.random.Generator,
        *,
        estimate: Hyperparameters = "map",
        outputs: Transform = Tamed.of,
        of_curves: OfCurves | None = None,
    ) -> Several:
        """Fit every metric and every constraint.

        Args:
            history: with at least one finished trial.
            model: what is assumed of each.
            rng: for the fits that draw.
            estimate: how hyperparameters are found, see `fitted`.
            outputs: makes the transform of a metric from its values.
            of_curves: fits the curves of a number, if there are any to learn from; where it is not given, ends of
                unfinished trials are predicted.
        """

        def fit(known: History, transform: Transform, tag: str) -> OfNumber:
            if of_curves is None:
                known = predicted(known)
            elif (curves := of_curves(known, transform, tag)) is not None:
                return curves
            found = fitted(known, model, rng, outputs=transform(known.y), estimate=estimate, tag=tag)
            ended_early = known.points(State.PRUNED)
            return replace(found, members=tuple(gp.believing(ended_early) for gp in found.members))

        Y, margins = history.Y, history.margins
        metrics = tuple(
            fit(history.of_number(j), outputs, f"theta_{j}" if j else "theta") for j in range(history.goals.k)
        )
        tags: Tags = {}
        limits = []
        for j in range(len(history.goals.constraints)):
            limit = fit(_with_early_ends(history, j), SignedLog.of, f"theta_limit_{j}")
            threshold = float(limit.outputs.apply(np.zeros(1))[0])
            limits.append(LogProbabilityOfImprovement(limit.gp, threshold))
            tags |= limit.tags
        for each in metrics:
            tags |= each.tags
        kept = history.feasible
        feasible = history.X[kept]
        front, reference, order = _front(metrics, feasible, history.points(*OPEN, State.PRUNED))
        if history.goals.k == 1 and len(feasible):
            order = np.argsort(-Y[kept, 0], kind="stable")
        near = feasible[order[:NEAR]] if history.goals.k > 1 else feasible[order[:1]]
        if not len(near):
            near = history.X[[int(np.argmin(np.maximum(-margins / _spread(margins), 0.0).max(axis=1)))]]
        return cls(metrics, tuple(limits), feasible, front, near, reference, tags)

    @property
    def name(self) -> str:
        """What `improvement` is called in a tag."""
        if not self.is_feasible:
            return "feasible"
        return "log-ei" if len(self.metrics) == 1 else "log-ehvi"

    @property
    def is_feasible(self) -> bool:
        """Whether some finished trial keeps all constraints."""
        return len(self.feasible) > 0

    def improvement(self, single: Improvement) -> Acquisition:
        """The logarithm of what a point is expected to add, times the probability that it is feasible.

        Args:
            single: makes the logarithm of an expected improvement, for one metric.
        """
        if not self.is_feasible:
            return Total(self.limits)
        gps = [fit.gp for fit in self.metrics]
        if len(gps) == 1:
            fit = self.metrics[0]
            incumbent = float(fit.gp.posterior(self.near)[0].max())
            return Total([single(fit.gp, incumbent), *self.limits])
        return Total([LogExpectedHypervolumeImprovement(gps, self.front, self.reference), *self.limits])

    def bound(self, kappa: float, rng: np.random.Generator) -> Acquisition:
        """An upper confidence bound, of several metrics that of a random scalarisation, and the probability's log."""
        if not self.is_feasible:
            return Total(self.limits)
        gps = [fit.gp for fit in self.metrics]
        weights = random_weights(len(gps), rng) if len(gps) > 1 else np.ones(1)
        return Total([ScalarisedConfidence(gps, kappa, self.reference, weights), *self.limits])

    def maximise(
        self, worth: Acquisition, history: History, rng: np.random.Generator, solver: SolverName = "lbfgsb", **more: Any
    ) -> Solution:
        """The point that is worth most. The best known are also climbed from with their discrete coordinates held.

        Args:
            more: further settings of the solver.
        """
        if solver == "lbfgsb":
            more["hold"] = True
        return solve_apart(solver, worth, history, rng, near=self.near, **more)

    def prediction(self, x: Array) -> Tags:  # (d,)
        """What is expected at a point, as tags: of each metric mean and std, and how likely it is feasible."""
        told = [fit.prediction(x) for fit in self.metrics]
        tags: Tags = {"mean": [each["mean"] for each in told], "std": [each["std"] for each in told]}
        if len(told) == 1:
            tags = told[0]
        if self.limits:
            tags["feasible"] = float(np.exp(sum(float(limit.value(x[None, :])[0]) for limit in self.limits)))
        return tags


def in_words(tags: Tags) -> str:
    """What is expected of a point, from its tags: in standard deviations of the values, and how likely it does well."""
    means, stds = (tags[name] if isinstance(tags[name], list) else [tags[name]] for name in ("mean", "std"))
    expected = " and ".join(f"{mean:+.2f} sd" for mean in means)
    text = f"expects {expected}, uncertain by {' and '.join(f'{std:.2f}' for std in stds)}"
    for name, word in (("feasible", "satisfies the constraints"), ("success", "succeeds")):
        if name in tags:
            text += f", {word} with probability {tags[name]:.2f}"
    return text


def require_one_estimate(hyperparameters: str, goals: Goals) -> None:
    """MethodError where hyperparameters are sampled, which several metrics and constraints do not have."""
    if hyperparameters in ("mcmc", "slice"):
        raise MethodError(f"hyperparameters={hyperparameters} goes with one metric and no constraints; give map")


def _with_early_ends(history: History, j: int) -> History:
    """The history as one of a constraint's margins: also of trials that were ended early and had told theirs."""
    margins = history.of_number(history.goals.k + j)
    for number in history.records.numbers(State.PRUNED).tolist():
        record = margins.records[number]
        if record.early is not None and np.isfinite(record.early[j]):
            margins.records[number] = replace(record, state=State.FINISHED, y=float(record.early[j]))
    return margins


def _front(metrics: Sequence[OfNumber], feasible: Array, pending: Array) -> tuple[Array, Array, NDArray[np.intp]]:
    """The front and its reference, in the units of the fits; and which feasible points are on it, spread over it."""
    k = len(metrics)
    points = np.vstack([feasible, pending]) if len(feasible) else feasible
    Y = np.stack([fit.gp.posterior(points)[0] for fit in metrics], axis=1) if len(points) else np.empty((0, k))
    kept = np.flatnonzero(non_dominated(Y))
    front = Y[kept]
    if not len(front):
        return front, np.zeros(k), kept
    low, high = front.min(axis=0), front.max(axis=0)
    level = LEVELS[len(feasible) % len(LEVELS)]
    at_level = np.quantile(Y[: len(feasible)], level, axis=0)
    extent = np.maximum(high - low, LEAST_EXTENT)
    reference = np.minimum(low - MARGIN * extent, at_level)
    if k > 2 and len(feasible) % OFTEN == OFTEN - 1:
        reference = low - FAR * extent
    observed = kept[kept < len(feasible)]
    if not len(observed):  # whatever is expected of those in flight is better in everything
        observed = np.flatnonzero(non_dominated(Y[: len(feasible)]))
    order = observed[np.argsort(Y[observed, 0], kind="stable")]
    spread = np.unique(np.linspace(0, len(order) - 1, NEAR).round().astype(int)) if len(order) else order
    return front, reference, order[spread]


def _spread(margins: Array) -> Array:  # (n, c) -> (c,)
    std = margins.std(axis=0)
    return np.where(std > 0.0, std, 1.0)
