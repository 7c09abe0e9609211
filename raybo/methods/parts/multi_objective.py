"""Several metrics and constraints: what the methods that support them share.

Each metric and each constrained number has a Gaussian process of its own, with its own hyperparameters. These are
maximised, where log P is the logarithm of the probability that all constraints hold:

    one metric, constraints     log expected improvement over the best feasible value, or the bound, + log P
    several metrics             log expected hypervolume improvement, or the bound of a random scalarisation, + log P
    nothing is feasible yet     log P alone

From trials that have reported but not finished, each model knows what they reported for its number, as with a single
metric: it either models the curves (`auto`), or has their final values as predicted by the rule of `unfinished`. For a
constraint that must hold at every step, a trial that was ended early has what it reported last. A model that learns
nothing from trials that were ended early treats them as pending; otherwise they would be proposed again.

The front is that of the posterior means at the feasible trials, which noise does not flatter; pending trials count at
their means too, so that no two workers look for the same gain. Volume counts above a reference, for each metric the
lower of two values: one lies a tenth of the front's extent below the front's worst; the other is, in turn, the worst or
the lower quartile of what feasible trials are expected to have. The worst reaches for the ends of the front, the
quartile fills it, and a reference just below the front would count only improvements on a front that is still too
short. The ends of a front of three metrics or more are fronts themselves, and easily missed: every fourth time the
reference lies so far below the front that its ends are most of the volume.

Beyond a few hundred trials, every number has GPs of the observations that matter to it, see `regional`: its best, some
spread evenly, and those near the best known points, which make up the front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from raybo.acquisition import (
    Acquisition,
    LogExpectedHypervolumeImprovement,
    LogProbabilityOfImprovement,
    ScalarisedConfidence,
    Surrogate,
    Total,
    random_weights,
)
from raybo.common.errors import MethodError
from raybo.methods.parts.fitting import Fitted, fitted
from raybo.methods.parts.hyperparameters import Hyperparameters
from raybo.methods.parts.local_models import GRID, Regional, is_large, ranked
from raybo.methods.parts.local_models import maximise as maximise_by_looks
from raybo.methods.parts.next_point import solve_apart
from raybo.methods.parts.running_trials import predicted
from raybo.record.events import OPEN, State, Tags
from raybo.record.goals import Goals
from raybo.record.history import History
from raybo.record.pareto import non_dominated
from raybo.solvers import Solution, SolverName
from raybo.space import Array
from raybo.surrogate import Model, Outputs, SignedLog, Tamed

MARGIN = 0.1  # of the front's extent: how far the reference lies below its worst values
LEVELS = 0.0, 0.25  # of the feasible trials' values, in turn
FAR, OFTEN = 3.0, 4  # of three metrics or more: how far in extents the reference lies below the front, every how often
LEAST_EXTENT = 0.1  # standard deviations; of a front that is a point, or flat
NEAR = 10  # points of the front that the search begins around
DIRECTIONS, EACH = 24, 4  # of many trials the best in so many random directions, and so many of each, make up the front
OF_MANY: dict[str, Any] = {"size": 500, "starts": 6}  # of the climb among many trials

Improvement: TypeAlias = Callable[[Surrogate, float], Acquisition]  # over an incumbent
Transform: TypeAlias = Callable[[Array], Outputs]  # made from values
N = TypeVar("N")


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
class FitOptions:
    """How each number is fitted.

    Attributes:
        model: what is assumed of it.
        estimate: how its hyperparameters are found, see `fitted`.
        outputs: makes the transform of a metric from its values.
        of_curves: fits its curves, if there are any to learn from; where it is not given, ends of unfinished trials are
            predicted.
    """

    model: Model
    estimate: Hyperparameters = "map"
    outputs: Transform = Tamed.of
    of_curves: OfCurves | None = None


@dataclass(frozen=True)
class Several:
    """What is known of a study with several metrics or constraints.

    Attributes:
        metrics: the fit of each metric.
        limits: log P of each constraint.
        is_feasible: whether some finished trial keeps all constraints.
        incumbent: of a single metric, the best of what is expected where the best feasible value was seen.
        front: (n, k), what no other dominates, in the units of the fits, trials in flight included.
        near: (m, d), where the best known points are. known: (p, d), where there are observations.
        reference: (k,), above which volume counts.
        tags: what the next fits start from.
    """

    metrics: tuple[OfNumber, ...]
    limits: tuple[Acquisition, ...]
    is_feasible: bool
    incumbent: float
    front: Array
    near: Array
    known: Array
    reference: Array
    tags: Tags

    @classmethod
    def of(cls, history: History, options: FitOptions, rng: np.random.Generator) -> Several:
        """Fit every metric and every constraint to all observations, of which there is at least one."""

        def fit(known: History, transform: Transform, tag: str) -> OfNumber:
            found = fitted(known, options.model, rng, outputs=transform(known.y), estimate=options.estimate, tag=tag)
            ended_early = known.points(State.PRUNED)
            return replace(found, members=tuple(gp.believing(ended_early) for gp in found.members))

        fits = _of_numbers(history, options, fit)
        kept = history.feasible
        best = history.X[kept] if kept.any() else history.X[[int(np.argmin(history.violation))]]
        if history.goals.k == 1 and kept.any():
            best = best[np.argsort(-history.y[kept], kind="stable")]
        return _joined(history, fits, best, None)

    @property
    def name(self) -> str:
        """What `improvement` is called in a tag."""
        if not self.is_feasible:
            return "feasible"
        return "log-ei" if len(self.metrics) == 1 else "log-ehvi"

    def improvement(self, single: Improvement) -> Acquisition:
        """The logarithm of what a point is expected to add, times the probability that it is feasible.

        Args:
            single: makes the logarithm of an expected improvement, for one metric.
        """
        if not self.is_feasible:
            return Total(self.limits)
        gps = [fit.gp for fit in self.metrics]
        if len(gps) == 1:
            return Total([single(gps[0], self.incumbent), *self.limits])
        return Total([LogExpectedHypervolumeImprovement(gps, self.front, self.reference), *self.limits])

    def bound(self, kappa: float, weights: Array) -> Acquisition:  # (k,)
        """An upper confidence bound, of several metrics that of their scalarisation, and the probability's log."""
        if not self.is_feasible:
            return Total(self.limits)
        gps = [fit.gp for fit in self.metrics]
        return Total([ScalarisedConfidence(gps, kappa, self.reference, weights), *self.limits])

    def prediction(self, x: Array) -> Tags:  # (d,)
        """What is expected at a point, as tags: of each metric mean and std, and how likely it is feasible."""
        told = [fit.prediction(x) for fit in self.metrics]
        tags: Tags = {"mean": [each["mean"] for each in told], "std": [each["std"] for each in told]}
        if len(told) == 1:
            tags = told[0]
        if self.limits:
            tags["feasible"] = float(np.exp(sum(float(limit.value(x[None, :])[0]) for limit in self.limits)))
        return tags


@dataclass(frozen=True)
class SeveralOfMany:
    """The same of a history too large for exact GPs, at which looks are taken, see `regional`.

    Attributes:
        history: the study.
        numbers: what each metric and each constraint has; a fit where it is one of curves.
        best: (b, d), the best known points: of the front, or those that are nearest to keeping all constraints.
    """

    history: History
    numbers: tuple[Regional | OfNumber, ...]
    best: Array

    @classmethod
    def of(cls, history: History, options: FitOptions, rng: np.random.Generator) -> SeveralOfMany:
        """Estimate the hyperparameters of every number, and choose the best points."""

        def prepare(known: History, transform: Transform, tag: str) -> Regional:
            early = known.points(State.PRUNED)
            return Regional.of(known, options.model, transform(ranked(known.y)), options.estimate, tag, early)

        numbers = _of_numbers(history, options, prepare)
        return cls(history, tuple(numbers), _best_of_many(history, rng))

    def wide(self) -> Several:
        """What is known of the whole cube, more of it near the best points."""
        return self._wide

    @cached_property
    def _wide(self) -> Several:
        fits = [each.wide(self.best) if isinstance(each, Regional) else each for each in self.numbers]
        k = self.history.goals.k
        values = [fit.outputs.apply(column) for fit, column in zip(fits, self.history.Y.T, strict=False)]
        return _joined(self.history, fits, self.best, np.stack(values[:k], axis=1)[self.history.feasible])

    def close(self, x: Array) -> Several:  # (d,)
        """The same of a point's neighbourhood, beside the whole's front."""
        fits = [each.close(x) if isinstance(each, Regional) else each for each in self.numbers]
        k = self.history.goals.k
        return replace(self._wide, metrics=tuple(fits[:k]), limits=_limits(fits[k:]), known=_known(fits, self.history))

    def distances(self, X: Array, x: Array) -> Array:  # (m, d), (d,) -> (m,)
        """Squared distances in length-scales, summed over the axes, of the number in which points differ most."""
        regional = [each.distances(X, x) for each in self.numbers if isinstance(each, Regional)]
        return np.max(regional, axis=0) if regional else np.full(len(X), np.inf)


def proposed(
    history: History,
    options: FitOptions,
    rng: np.random.Generator,
    worth: Callable[[Several], Acquisition],
    solver: SolverName = "lbfgsb",
    **more: Any,
) -> tuple[Several, Solution]:
    """The point that is worth most, and what is known there.

    The best known points are also climbed from with their discrete coordinates held.

    Args:
        history: with at least one finished trial.
        options: how each number is fitted.
        rng: for the fits that draw, and the search.
        worth: the acquisition.
        solver: by which it is maximised.
        more: further settings of the solver.
    """
    if solver == "lbfgsb":
        more["hold"] = True
    if is_large(history, options.estimate):
        grid = min(more.pop("size", None) or GRID, GRID)
        of_many = SeveralOfMany.of(history, options, rng)
        return maximise_by_looks(of_many, worth, rng, solver, grid=grid, **(more | OF_MANY))
    several = Several.of(history, options, rng)
    return several, solve_apart(solver, worth(several), history, rng, near=several.near, **more)


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
        raise MethodError(f"hyperparameters={hyperparameters} needs a single metric and no constraints; give map")


def _of_numbers(
    history: History, options: FitOptions, fit: Callable[[History, Transform, str], N]
) -> list[N | OfNumber]:
    """What is made of each metric and then of each constraint, each as a history of its own."""

    def made(known: History, transform: Transform, tag: str) -> N | OfNumber:
        if options.of_curves is None or known.steps is None:
            known = predicted(known)
        elif (curves := options.of_curves(known, transform, tag)) is not None:
            return curves
        return fit(known, transform, tag)

    goals = history.goals
    metrics = [made(history.of_number(j), options.outputs, f"theta_{j}" if j else "theta") for j in range(goals.k)]
    limits = range(len(goals.constraints))
    return metrics + [made(_with_early_ends(history, j), SignedLog.of, f"theta_limit_{j}") for j in limits]


def _joined(history: History, fits: Sequence[OfNumber], best: Array, values: Array | None) -> Several:
    """From a fit of every number, and the best points (b, d), all of them feasible if any is.

    Args:
        values: (n, k), of all feasible trials in the units of the fits; where it is not given, `best` are all of them,
            and count as they are expected.
    """
    k = history.goals.k
    metrics, is_feasible = tuple(fits[:k]), bool(history.feasible.any())
    tags: Tags = {}
    for fit in [*fits[k:], *metrics]:
        tags |= fit.tags
    feasible = best if is_feasible else best[:0]
    in_flight = still_feasible(history)
    front, reference, order = _front(metrics, feasible, in_flight, values)
    near = best[:1] if k == 1 or not is_feasible else best[order[:NEAR]]
    incumbent = float(metrics[0].gp.posterior(near)[0].max())
    return Several(
        metrics, _limits(fits[k:]), is_feasible, incumbent, front, near, _known(fits, history), reference, tags
    )


def still_feasible(history: History) -> Array:  # (m, d)
    """Points of the open and pruned trials, but for those that broke a constraint on their way."""
    kept = [
        record.x
        for record in history.records
        if record.state in (*OPEN, State.PRUNED) and not (history.worst_margins(record) < 0.0).any()
    ]
    return np.array(kept, dtype=np.float64).reshape(-1, history.d)


def _limits(fits: Sequence[OfNumber]) -> tuple[Acquisition, ...]:
    """log P of each constraint, of a fit of its margin."""
    return tuple(LogProbabilityOfImprovement(fit.gp, float(fit.outputs.apply(np.zeros(1))[0])) for fit in fits)


def _known(fits: Sequence[OfNumber], history: History) -> Array:  # (p, d)
    """The points that fits of ends are conditioned on."""
    return np.vstack([np.empty((0, history.d)), *(fit.known for fit in fits if isinstance(fit, Fitted))])


def _best_of_many(history: History, rng: np.random.Generator) -> Array:  # (b, d)
    """The best feasible points, of several metrics those in random directions; else those nearest to being feasible."""
    kept = history.feasible
    if not kept.any():
        return history.X[np.argsort(history.violation, kind="stable")[:NEAR]]
    X, Y = history.X[kept], history.Y[kept]
    if history.goals.k == 1:
        return X[np.argsort(-Y[:, 0], kind="stable")[:NEAR]]
    behind = 1.0 - rankdata(Y, axis=0) / len(Y)  # as a share of the trials, whatever the metrics' scales
    best = [
        np.argsort((weights * behind).max(axis=1), kind="stable")[:EACH]
        for weights in [*np.eye(Y.shape[1]), *(random_weights(Y.shape[1], rng) for _ in range(DIRECTIONS))]
    ]
    return X[np.unique(np.concatenate(best))]


def _with_early_ends(history: History, j: int) -> History:
    """The history as one of a constraint's margins: also of trials that were ended early and had told theirs."""
    margins = history.of_number(history.goals.k + j)
    for number in history.records.numbers(State.PRUNED).tolist():
        record = margins.records[number]
        if record.early is not None and np.isfinite(record.early[j]):
            margins.records[number] = replace(record, state=State.FINISHED, y=float(record.early[j]))
    return margins


def _front(
    metrics: Sequence[OfNumber], feasible: Array, pending: Array, values: Array | None
) -> tuple[Array, Array, NDArray[np.intp]]:
    """The front and its reference, in the units of the fits; and which feasible points are on it, spread over it."""
    k = len(metrics)
    points = np.vstack([feasible, pending]) if len(feasible) else feasible
    Y = np.stack([fit.gp.posterior(points)[0] for fit in metrics], axis=1) if len(points) else np.empty((0, k))
    kept = np.flatnonzero(non_dominated(Y))
    front = Y[kept]
    if not len(front):
        return front, np.zeros(k), kept
    values = Y[: len(feasible)] if values is None else values
    low, high = front.min(axis=0), front.max(axis=0)
    level = LEVELS[len(values) % len(LEVELS)]
    at_level = np.quantile(values, level, axis=0)
    extent = np.maximum(high - low, LEAST_EXTENT)
    reference = np.minimum(low - MARGIN * extent, at_level)
    if k > 2 and len(values) % OFTEN == OFTEN - 1:
        reference = low - FAR * extent
    observed = kept[kept < len(feasible)]
    if not len(observed):  # whatever is expected of those in flight is better in everything
        observed = np.flatnonzero(non_dominated(Y[: len(feasible)]))
    order = observed[np.argsort(Y[observed, 0], kind="stable")]
    spread = np.unique(np.linspace(0, len(order) - 1, NEAR).round().astype(int)) if len(order) else order
    return front, reference, order[spread]
