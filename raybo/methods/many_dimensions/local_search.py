"""Shares among gibo, mpd, min-ucb and la-min-ucb: options, the model of the newest trials, exploration, the move.

Sign: the papers minimise f; values are maximised here. With g = -f, their upper bound mu_f + beta sigma, to be made
small, is -(mu_g - beta sigma): the lower confidence bound of g, to be made large. Gradients change their sign with f.

Workers: pending points enter the variances for exploration, never the move, which would then look safer than it
is. Exploration depends on points alone, so the points that workers evaluate side by side are those that a single worker
would choose one after the other. Late results join the window on arrival; failed trials count as its worst value.

Defaults that are ours: of a planned study at most a tenth explores in an iteration; the window holds 20 results at
least; length-scales are fitted within [0.05, 2]. The published settings of each task are in `trials/papers/local.py`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raybo.acquisition import UpperConfidence
from raybo.acquisition.protocols import Acquisition
from raybo.common.errors import MethodError
from raybo.common.options import option
from raybo.methods.many_dimensions.iterations import AroundCentre, Iteration
from raybo.methods.many_dimensions.runs import RunOptions, new_start
from raybo.methods.parts.next_point import least_distance
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.record.states import State
from raybo.solvers import Solution, solve
from raybo.solvers.box import Box, Within
from raybo.solvers.from_starts import ascent_from
from raybo.space import Array
from raybo.surrogate import GP, Hyperparameter, Model, Observations, Standardised, fit_map, gibo_model

RAW_POINTS = 64  # candidates for an exploration point, as published
CLIMBS = 5  # climbs from the best candidates, as published
CLOSEST = 4  # the bound is climbed from so many window points of highest mean, and of highest bound
AT_LEAST = 1.01  # length-scales up to this multiple of the least one count as least
RANDOM_STARTS = 5  # the bound is climbed from so many random points near the centre


@dataclass(frozen=True, kw_only=True)
class LocalOptions(AroundCentre, RunOptions):
    """Holds the options that gibo, mpd, min-ucb and la-min-ucb share."""

    batch: int | None = option(
        None, "exploration points per iteration; none: one per axis, at most a tenth of the trials", at_least=1
    )
    delta: float = option(
        0.2, "how far from the centre exploration points may lie on each axis, in sides of the cube", above=0
    )
    window: int | None = option(
        None, "how many of the newest results the model sees; none: 5 per axis, at least 20", at_least=1
    )
    quorum: float = option(
        1.0, "share of an iteration's trials that must have ended before it moves", above=0, at_most=1
    )
    kernel: Literal["rbf", "matern52"] = option("rbf", "rbf or matern52; gradients need one as smooth as these")
    noise_variance: float = option(
        0.01, "noise variance of a single value, not fitted; of standardised values, unless standardise=false", above=0
    )
    lengthscale: float | tuple[float, ...] | None = option(
        None, "known length-scales, one or one per axis, in sides of the cube; none: fitted once per iteration", above=0
    )
    outputscale: float | None = option(
        None, "known prior variance of the values; none: fitted once per iteration", above=0
    )
    lengthscale_low: float = option(0.05, "smallest length-scale of the fit, in sides of the cube", above=0)
    lengthscale_high: float = option(2.0, "largest length-scale of the fit, in sides of the cube", above=0)
    mean: Literal["constant", "zero"] = option("constant", "the prior mean: estimated, or 0")
    standardise: bool = option(True, "whether the window's values are standardised; false if scales are known")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lengthscale == ():
            raise MethodError("lengthscale must be a number or a list with one number per axis, got an empty list")
        if not self.lengthscale_high >= self.lengthscale_low:
            raise MethodError(f"lengthscale_high must not be below lengthscale_low, got {self.lengthscale_high}")
        self._model()  # refuses length-scales and variances that are not positive

    def begin(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return the next point of a run's design, or its first centre; raise MethodError as `model` does."""
        self.model(history.d)
        return super().begin(history, rng)

    def another_run(self, history: History, now: Iteration, rng: np.random.Generator) -> Proposal | None:
        """Return the first point of another run if this one has no values or is stuck; None if it moves."""
        if len(history.y) == 0:  # all have failed
            return new_start(history, rng, now.number + 1)
        return self.begin(history, rng) if self.is_stuck(history, now) else None

    def is_stuck(self, history: History, now: Iteration) -> bool:
        """Return True if all values are equal, or differ by noise only: every length-scale was fitted as its least."""
        if super().is_stuck(history, now):
            return True
        if not self.restart or history.last_tag("run") is None or now.theta is None or self.lengthscale is not None:
            return False
        lengthscales = np.exp(now.theta[: history.d])
        return bool((lengthscales <= AT_LEAST * self.lengthscale_low).all())

    def batch_size(self, history: History) -> int:
        """Return the number of exploration points of an iteration."""
        if self.batch is not None:
            return self.batch
        return history.d if history.planned is None else min(history.d, max(1, history.planned // 10))

    def window_size(self, history: History) -> int:
        """Return the number of results that the model is fitted to."""
        return max(5 * history.d, 20) if self.window is None else self.window

    def model(self, d: int) -> Model:
        """Return the model of f.

        Raises:
            MethodError: the number of length-scales differs from the number of axes.
        """
        if isinstance(self.lengthscale, tuple) and len(self.lengthscale) not in (1, d):
            raise MethodError(f"lengthscale has {len(self.lengthscale)} values for {d} axes: give one, or one per axis")
        return self._model()

    def _model(self) -> Model:
        model = gibo_model(self.noise_variance, self.lengthscale_low, self.lengthscale_high, self.kernel)
        model = dataclasses.replace(model, mean=self.mean)
        if self.lengthscale is not None:
            model = dataclasses.replace(model, lengthscale=Hyperparameter(fixed=self.lengthscale))
        if self.outputscale is not None:
            model = dataclasses.replace(model, outputscale=Hyperparameter(fixed=self.outputscale))
        return model


def window(history: History, size: int) -> tuple[Array, Array, Array]:  # (n, d), (n,), (n,)
    """Return X, y and added variances of the newest `size` finished trials, and of failures since by the worst y."""
    finished = [i for i, record in enumerate(history.records) if record.state is State.FINISHED][-size:]
    if not finished:
        return np.empty((0, history.d)), np.empty(0), np.empty(0)
    newest = [r for r in history.records[finished[0] :] if r.state is State.FINISHED or r.has_failed]
    worst = min(history.records[i].y or 0.0 for i in finished)
    y = np.array([worst if record.y is None else record.y for record in newest])
    return np.array([record.x for record in newest]), y, np.array([record.error for record in newest])


def surrogate(history: History, options: LocalOptions, theta: Array) -> GP:
    """Return the posterior given the window's finished trials; the prior if none has finished."""
    return GP.of(_observations(history, options), options.model(history.d), theta)


def estimated(history: History, options: LocalOptions, now: Iteration) -> tuple[Array, Tags]:
    """Return the iteration's hyperparameters, and the tag that stores them if they are new."""
    model = options.model(history.d)
    if now.theta is not None:
        return np.array(now.theta), {}
    theta = last_theta(history, options)
    if len(history.y) == 0 or not model.free(history.d).any():
        return theta, {}
    theta = fit_map(_observations(history, options), model, [theta])
    return theta, {"theta": theta.tolist()}


def last_theta(history: History, options: LocalOptions) -> Array:
    """Return the newest stored hyperparameters, with which an iteration moves; before any, the model's start."""
    theta = history.last_tag("theta")
    return options.model(history.d).start(history.d) if theta is None else np.array(theta)


def _observations(history: History, options: LocalOptions) -> Observations:
    X, y, added = window(history, options.window_size(history))
    outputs = Standardised.of(y) if options.standardise else Standardised(0.0, 1.0)
    return Observations.of(X, outputs.apply(y), history.cube.categorical, outputs.variances(added))


def explore(worth: Acquisition, history: History, centre: Array, delta: float, rng: np.random.Generator) -> Solution:
    """Return the acquisition's maximiser in the cube centre -+ delta, apart from pending points."""
    return within(worth, Box.around(history.cube, centre, delta), history, rng)


def within(
    worth: Acquisition,
    box: Box,
    history: History,
    rng: np.random.Generator,
    *,
    size: int = RAW_POINTS,
    starts: int = CLIMBS,
) -> Solution:
    """Return the acquisition's maximiser in a box, apart from pending points."""
    avoid, apart = box.inwards(history.X_pending), least_distance(history.d)
    found = solve("lbfgsb", Within(worth, box), box, rng, size=size, starts=starts, avoid=avoid, apart=apart)
    return dataclasses.replace(found, x=box.outwards(found.x[None, :])[0])


def safest(
    gp: GP, beta: float, history: History, centre: Array, delta: float, rng: np.random.Generator
) -> tuple[Solution, Array, Array]:
    """Return the point of the highest lower bound mean - beta std: the papers' minimum of the upper bound.

    Climbed from the centre, from the window points of highest mean and of highest bound, and from random points near
    the centre; never below the bound at any of these.

    Returns:
        The point; and all ends of the climbs (k, d) with their bounds (k,).
    """
    bound = UpperConfidence(gp, -beta)
    starts = [centre[None, :]]
    if gp.n:
        mean, var = gp.posterior(gp.X)
        for order in (np.argsort(-mean, kind="stable"), np.argsort(beta * np.sqrt(var) - mean, kind="stable")):
            starts.append(gp.X[order[:CLOSEST]])
    box = Box.around(history.cube, centre, delta)
    starts.append(box.outwards(rng.random((RANDOM_STARTS, history.d))))
    found, ends = ascent_from(np.concatenate(starts), bound, history.cube, rng)
    return found, ends, bound.value(ends)


def prediction(gp: GP, x: Array) -> Tags:  # (d,)
    """Return posterior mean and standard deviation at a point, as tags."""
    mean, var = gp.posterior(x[None, :])
    return {"mean": float(mean[0]), "std": float(np.sqrt(var[0]))}
