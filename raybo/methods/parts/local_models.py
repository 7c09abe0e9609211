"""Models of the observations that matter to one proposal, for studies of more than a few hundred trials.

An exact Gaussian process of n observations costs n^3, but a single proposal needs few of them: an observation far from
a point, and near a thousand others, says little about that point. So each model is of a subset of the data:

    wide     the best observations, some spread evenly over all, and those nearest to the best point
    close    the observations nearest to a given point, and some spread evenly over all
    home     the observations nearest to a top, a point that is the best around. Units and hyperparameters are its own:
             they tell apart values that look equal beside the worst of thousands

`local_maximiser` searches with these models. Distances are in length-scales. Pending trials near the observations are
believed at their posterior mean; others would change nothing there. Hyperparameters are fitted to a few hundred chosen
observations, and fitted again once there are a fiftieth more. All of it is a function of the history.

Subsets of nearest neighbours: Vecchia (1988); Katzfuss, Guinness (2021), arXiv:1708.06302.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from raybo.methods.parts.fitted_model import FittedGP, FittedModel, FittedSurrogate
from raybo.methods.parts.fitting import added_noise, leader, observed
from raybo.methods.parts.hyperparameters import ESTIMATES, Hyperparameters, fixed_values, with_fixed
from raybo.methods.parts.refit_schedule import AFRESH, last_estimate
from raybo.record.history import History
from raybo.record.states import FAILURES, State
from raybo.space import Array
from raybo.surrogate import GP, Model, Observations, Outputs, Tamed, fit_map

LARGE = 400  # observations and pending trials above which models are local; up to it the GP is exact
FITTED = 200  # observations to which hyperparameters are fitted
WIDE_SPREAD = 150  # observations of the wide model that are the best or evenly spread
WIDE_NEAR = 180  # observations of the wide model that are nearest to the best point
WIDE_PENDING = 60  # pending trials nearest to the best point that the wide model believes
CLOSE_SPREAD = 40  # observations of a close model that are the best or evenly spread
CLOSE_NEAR = 200  # observations of a close model that are nearest to its point
CLOSE_PENDING = 60  # pending trials that a close or a home model believes
HOME = 100  # observations of a home model
AWAY = 0.5  # least distance between tops, in length-scales, a root mean square over the axes
KEPT_SHARE = 50  # a fit is kept until the trials have grown by this part of themselves
KEPT_LEAST = 20  # trials for which a fit is kept at least
RANKED = 500  # values at evenly spaced ranks that stand for all when a transform of values is estimated


def is_large(history: History, estimate: Hyperparameters = "map") -> bool:
    """True if an exact GP of all trials would keep workers waiting.

    Never true if hyperparameters are sampled, which costs more than all else, or if raybo 0.1 began the study.
    """
    if history.generation == 1:
        return False
    if estimate != "map" and estimate in ESTIMATES:
        return False
    return history.count(State.FINISHED, State.PENDING, *FAILURES) > LARGE and history.count(State.FINISHED) > 0


def ranked(y: Array) -> Array:  # (n,) -> (m,)
    """Return the values at evenly spaced ranks, the least and the largest among them; at most 500."""
    if len(y) <= RANKED:
        return y
    return np.sort(y)[np.linspace(0, len(y) - 1, RANKED).astype(np.intp)]


M_co = TypeVar("M_co", bound=FittedModel, covariant=True)


@dataclass(frozen=True, eq=False)
class LocalModels(Generic[M_co]):
    """A wide model of the whole cube, and close ones on request.

    Attributes:
        history: of the study.
        make_wide: fits the wide model.
        close: fits the model around a point (d,).
        distances: (m, d), (d,) -> (m,), squared distances in length-scales, summed over the axes.
    """

    history: History
    make_wide: Callable[[], M_co]
    close: Callable[[Array], M_co]
    distances: Callable[[Array, Array], Array]

    @cached_property
    def wide(self) -> M_co:
        """The model of the whole cube, fitted when first needed."""
        return self.make_wide()


@dataclass(frozen=True, eq=False)
class ManyObservations:
    """All observations of one number, of which each model takes those that it needs.

    Attributes:
        history: of the study.
        model: what is assumed of f.
        X, y, z: (n, d), (n,), (n,), points, maximised values, and these in the units of `outputs`; failed trials have
            the worst value.
        added: (n,), added to the noise variance of each z, see `fitting.added_noise`.
        pending: (m, d), points in flight.
        theta: (p,), the hyperparameters.
        outputs: the values' transform.
        best: (d,), the point of the best finished value; of the best predicted one if none has finished.
        most: the value there.
        tag: the name of the tag that keeps theta.
    """

    history: History
    model: Model
    X: Array
    y: Array
    z: Array
    added: Array
    pending: Array
    theta: Array
    outputs: Outputs
    best: Array
    most: float
    tag: str = "theta"

    @classmethod
    def of(
        cls,
        history: History,
        model: Model,
        outputs: Outputs,
        estimate: Hyperparameters = "map",
        tag: str = "theta",
        ended_early: Array | None = None,
    ) -> ManyObservations:
        """Return the observations of a history with at least one finished trial, and fit the hyperparameters.

        Args:
            history: of one number.
            model: what is assumed of f.
            outputs: the values' transform.
            estimate: "map", or text that fixes some of the hyperparameters.
            tag: the name of the tag that keeps theta.
            ended_early: (e, d), points that are believed as pending ones are.
        Raises:
            NumericalError: the likelihood is not finite at any start.
            MethodError: there are several fixed length-scales, but not one for each axis.
        """
        model = with_fixed(model, fixed_values(estimate), history.d)
        X, y = observed(history)
        z, added = outputs.apply(y), added_noise(history, outputs)
        top = leader(history)
        theta = _estimate(history, model, X, z, added, tag)
        best, most = history.X[top], float(history.y[top])
        pending = history.X_pending if ended_early is None else np.vstack([history.X_pending, ended_early])
        return cls(history, model, X, y, z, added, pending, theta, outputs, best, most, tag)

    def local_models(self) -> LocalModels[FittedGP]:
        """Return the models with which the next point is searched for."""
        return LocalModels(self.history, self.wide, self.close, self.distances)

    def wide(self, tops: Array | None = None) -> FittedGP:  # (t, d)
        """Fit the GP of the whole cube, with more of what is near the best point, or near each of these tops."""
        tops = self.best[None, :] if tops is None else tops
        spread = chosen(self.z, WIDE_SPREAD)
        near = [self.nearest(self.X, top, _share(WIDE_NEAR, tops)) for top in tops]
        apart = self.pending[_evenly(len(self.pending), WIDE_PENDING // 2)]
        nearest = [self.pending[self.nearest(self.pending, top, _share(WIDE_PENDING, tops))] for top in tops]
        return self._fitted(np.unique(np.concatenate([spread, *near])), np.concatenate([*nearest, apart]))

    def hilltop(self, k: int) -> Array:  # (d,)
        """Return the best point; for k > 0 the best one away from the k tops before it, as long as there is one."""
        top, free = self.best, np.ones(len(self.X), dtype=bool)
        for _ in range(k):
            free &= self.distances(self.X, top) > AWAY**2 * self.history.d
            if not free.any():
                break
            top = self.X[np.flatnonzero(free)[np.argmax(self.y[free])]]
        return top

    def home(self, top: Array) -> FittedGP:  # (d,)
        """Fit the GP of a top's neighbourhood, in units and with hyperparameters of its own."""
        near = np.sort(self.nearest(self.X, top, HOME))
        outputs = Tamed.of(self.y[near])
        added = added_noise(self.history, outputs)[near]
        flags = self.history.cube.categorical
        observations = Observations.of(self.X[near], outputs.apply(self.y[near]), flags, added)
        last = last_estimate(self.history, self.model, self.history.d, "home")
        theta = fit_map(observations, self.model, [self.model.start(self.history.d) if last is None else last])
        pending = self.pending[self.nearest(self.pending, top, CLOSE_PENDING)]
        fit = self._conditioned(observations, theta, pending, outputs)
        incumbent = float(observations.y.max())
        return replace(fit, incumbent=incumbent, best=top, tags={**fit.tags, "home": theta.tolist()})

    def close(self, x: Array) -> FittedGP:  # (d,)
        """Fit the GP of a point's neighbourhood."""
        near = self.nearest(self.X, x, CLOSE_NEAR)
        nearest = self.nearest(self.pending, x, CLOSE_PENDING)
        return self._fitted(np.union1d(chosen(self.z, CLOSE_SPREAD), near), self.pending[nearest])

    def distances(self, X: Array, x: Array) -> Array:  # (m, d), (d,) -> (m,)
        """Return squared distances in length-scales, summed over the axes."""
        if len(X) == 0:
            return np.empty(0)
        kernel = self.model.stationary_at(self.theta, self.history.cube.categorical)
        return np.asarray(kernel.squared_distances(x[None, :], X)[0])

    def nearest(self, X: Array, x: Array, k: int) -> NDArray[np.intp]:  # (m, d), (d,) -> (min(m, k),)
        """Return which k rows of X are nearest to x, in length-scales, in no particular order; at most all."""
        return smallest(self.distances(X, x), k)

    def _fitted(self, numbers: NDArray[np.intp], pending: Array) -> FittedGP:
        flags = self.history.cube.categorical
        observations = Observations.of(self.X[numbers], self.z[numbers], flags, self.added[numbers])
        return self._conditioned(observations, self.theta, pending, self.outputs)

    def _conditioned(self, observations: Observations, theta: Array, pending: Array, outputs: Outputs) -> FittedGP:
        if len(pending):
            pending = np.unique(pending, axis=0)
        gp = GP.of(observations, self.model, theta).believing(pending)
        tags = {self.tag: self.theta.tolist(), "ended": self.history.ended}
        incumbent = float(outputs.apply(np.array([self.most]))[0])
        return FittedSurrogate((gp,), outputs, incumbent, self.best, gp.X, tags)


def smallest(values: Array, k: int) -> NDArray[np.intp]:
    """Return the places of the k smallest values, in no particular order; at most all."""
    return np.arange(len(values)) if len(values) <= k else np.argpartition(values, k)[:k]


def chosen(z: Array, at_most: int) -> NDArray[np.intp]:
    """Return the places of so many values, ascending: a fifth are the best, the others evenly spread."""
    n = len(z)
    if n <= at_most:
        return np.arange(n)
    top = np.argpartition(-z, at_most // 5)[: at_most // 5]
    rest = np.delete(np.arange(n), top)
    return np.sort(np.concatenate([top, rest[_evenly(len(rest), at_most - len(top))]]))


def _evenly(n: int, k: int) -> NDArray[np.intp]:
    return np.arange(n) if n <= k else np.linspace(0, n - 1, k).astype(np.intp)


def _share(k: int, tops: Array) -> int:
    """Return how many of k each top gets."""
    return -(-k // len(tops))


def _estimate(history: History, model: Model, X: Array, z: Array, added: Array, tag: str) -> Array:  # (p,)
    """Return the most likely hyperparameters; the last ones until there are a fiftieth more trials."""
    last = last_estimate(history, model, history.d, tag)
    lasts = max(KEPT_LEAST, len(history) // KEPT_SHARE)
    if last is not None and len(history) % lasts:
        return last
    few = chosen(z, FITTED)
    observations = Observations.of(X[few], z[few], history.cube.categorical, added[few])
    starts = [model.start(history.d)] if last is None or len(history) // lasts % AFRESH == 0 else []
    return fit_map(observations, model, starts if last is None else [last, *starts])
