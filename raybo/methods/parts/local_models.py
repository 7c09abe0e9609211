"""Beyond a few hundred trials: a proposal from the observations that matter to it, in time that hardly grows with n.

An exact Gaussian process of n observations costs n^3, but a single proposal needs few of them: an observation far from
a point, and near a thousand others, says little about that point. So every proposal is made in two looks.

    wide    a GP of the best observations, of some spread evenly over all, and of those nearest to the best point. Its
            acquisition is climbed over the whole cube.
    close   if that climb ends away from the best point, a GP of some spread observations and of those nearest to
            the end, from which the climb goes on. The wide GP may have left out much of what is known there.

Of the two ends, the one that is worth more is proposed. Every other trial, at random, goes home instead:

    home    a GP of the observations nearest to the best point, in units and with hyperparameters of their own, which
            tell apart values that look the same beside the worst of thousands. Its acquisition is climbed in the box
            around the best point that holds the nearest few: the box shrinks as results gather there, and moves and
            grows if a better point lies at its edge. Half of these trials go to the best point, a quarter to the best
            one away from it, and so on: a lower hill, once climbed, may turn out to be the higher one.

Distances are in length-scales. Nearby pending trials enter at their posterior mean; others would change nothing
there. Hyperparameters are those of a few hundred chosen observations, and are kept until there are a fiftieth more. All
of it is a function of the history; nothing is kept between calls.

With several metrics or constraints, each number has GPs of its own; for "the best point" read "the front", and no
proposal goes home, see `several`.

Local models within a global search: Eriksson et al. (2019), arXiv:1910.01739; subsets of nearest neighbours: Vecchia
(1988), Katzfuss, Guinness (2021), arXiv:1708.06302. The two looks are raybo's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from raybo.acquisition.protocols import Acquisition
from raybo.methods.parts.fitting import Fitted, leader, observed, uncertain
from raybo.methods.parts.hyperparameters import ESTIMATES, Hyperparameters, fixed_values, with_fixed
from raybo.methods.parts.next_point import least_distance, taken
from raybo.methods.parts.refit_schedule import AFRESH, last_estimate
from raybo.record.events import FAILURES, State
from raybo.record.history import History
from raybo.solvers import Solution, SolverName, solve
from raybo.solvers.box import Box, Within
from raybo.solvers.domain import continuous
from raybo.space import Array
from raybo.surrogate import GP, Model, Observations, Outputs, Tamed, fit_map

LARGE = 400  # observations and pending trials beyond which proposals are made so; below, the GP is exact
FITTED = 200  # observations that the hyperparameters are fitted to
WIDE_SPREAD, WIDE_NEAR, WIDE_PENDING = 150, 180, 60  # points of the wide GP: the best and the spread, the near, pending
HILLS, AWAY = 5, 0.5  # that are climbed; length-scales, a root mean square over the axes, between their tops
HOME, BOXED = 100, 4  # points of the GP of a top's neighbourhood; points per axis in the box around the top
CLOSE_SPREAD, CLOSE_NEAR, CLOSE_PENDING = 40, 200, 60  # of the close one
KEPT_SHARE, KEPT_LEAST = 50, 20  # a fit is kept for a fiftieth of the trials, and for so many at least
RANKED = 500  # values at evenly spaced ranks, which stand for all where the transform of values is estimated
RAW, STARTS, ROUNDS = 250, 4, 15  # of the climb over the whole cube
CLOSE_RAW, CLOSE_STARTS, CLOSE_ROUNDS = 40, 2, 12  # of the one that goes on
REACH = 0.3  # length-scales, a root mean square over the axes: an end no farther from the best point is not away
SAME = 1e-6  # a point so near one that is known is that one
AVOIDED = 800  # points nearest to the best one that a climb keeps away from; whether it did from all is looked at
GRID = 2_000  # points of a random grid at most


def is_large(history: History, estimate: Hyperparameters = "map") -> bool:
    """Whether there are so many trials that an exact GP of all would keep workers waiting.

    Where hyperparameters are sampled, which costs more than all else, no history is; nor is one that raybo 0.1 began.
    """
    if history.generation == 1:
        return False
    if estimate != "map" and estimate in ESTIMATES:
        return False
    return history.count(State.FINISHED, State.PENDING, *FAILURES) > LARGE and history.count(State.FINISHED) > 0


def ranked(y: Array) -> Array:  # (n,) -> (m,)
    """Values at evenly spaced ranks, the least and the largest among them: as the whole, and no more than suffice."""
    if len(y) <= RANKED:
        return y
    return np.sort(y)[np.linspace(0, len(y) - 1, RANKED).astype(np.intp)]


@dataclass(frozen=True)
class Regional:
    """What is known of a study of many trials, of which each GP takes what it needs.

    Attributes:
        history: the study. model: what is assumed of f.
        X, y, z: (n, d), (n,), (n,), observations, and their values in the units of `outputs`; failed trials have the
            worst value.
        added: (n,), what is added to the noise variance of each z, see `fitting.uncertain`.
        pending: (m, d), points in flight.
        theta: (p,), the hyperparameters, and tag: under which name they are kept. outputs: the values' transform.
        best, most: (d,), where the best finished value was seen, and that value; of predicted ones where none was.
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
    ) -> Regional:
        """From a history with at least one finished trial.

        Args:
            estimate: "map", or text that fixes some of the hyperparameters.
            tag: under which name these are kept.
            ended_early: (e, d), points that are believed as pending ones are.
        Raises:
            NumericalError: the likelihood is not finite at any start.
            MethodError: there are several fixed length-scales, but not one for each axis.
        """
        model = with_fixed(model, fixed_values(estimate), history.d)
        X, y = observed(history)
        z, added = outputs.apply(y), uncertain(history, outputs)
        top = leader(history)
        theta = _estimate(history, model, X, z, added, tag)
        best, most = history.X[top], float(history.y[top])
        pending = history.X_pending if ended_early is None else np.vstack([history.X_pending, ended_early])
        return cls(history, model, X, y, z, added, pending, theta, outputs, best, most, tag)

    def wide(self, tops: Array | None = None) -> Fitted:  # (t, d)
        """The GP of the whole cube, with more of what is near the best point, or near each of so many."""
        tops = self.best[None, :] if tops is None else tops
        spread = chosen(self.z, WIDE_SPREAD)
        near = [self.nearest(self.X, top, _share(WIDE_NEAR, tops)) for top in tops]
        apart = self.pending[_evenly(len(self.pending), WIDE_PENDING // 2)]
        nearest = [self.pending[self.nearest(self.pending, top, _share(WIDE_PENDING, tops))] for top in tops]
        return self._fitted(np.unique(np.concatenate([spread, *near])), np.concatenate([*nearest, apart]))

    def hilltop(self, k: int) -> Array:  # (d,)
        """The best point; for k > 0 the best one away from the k tops before it, as long as there is one."""
        top, free = self.best, np.ones(len(self.X), dtype=bool)
        for _ in range(k):
            free &= self.distances(self.X, top) > AWAY**2 * self.history.d
            if not free.any():
                break
            top = self.X[np.flatnonzero(free)[np.argmax(self.y[free])]]
        return top

    def home(self, top: Array) -> Fitted:
        """The GP of a hilltop's neighbourhood, in units and with hyperparameters of its own."""
        near = np.sort(self.nearest(self.X, top, HOME))
        outputs = Tamed.of(self.y[near])
        added = uncertain(self.history, outputs)[near]
        flags = self.history.cube.categorical
        observations = Observations.of(self.X[near], outputs.apply(self.y[near]), flags, added)
        last = last_estimate(self.history, self.model, self.history.d, "home")
        theta = fit_map(observations, self.model, [self.model.start(self.history.d) if last is None else last])
        pending = self.pending[self.nearest(self.pending, top, CLOSE_PENDING)]
        fit = self._conditioned(observations, theta, pending, outputs)
        incumbent = float(observations.y.max())
        return replace(fit, incumbent=incumbent, best=top, tags={**fit.tags, "home": theta.tolist()})

    def close(self, x: Array) -> Fitted:  # (d,)
        """The GP of a point's neighbourhood."""
        near = self.nearest(self.X, x, CLOSE_NEAR)
        nearest = self.nearest(self.pending, x, CLOSE_PENDING)
        return self._fitted(np.union1d(chosen(self.z, CLOSE_SPREAD), near), self.pending[nearest])

    def distances(self, X: Array, x: Array) -> Array:  # (m, d), (d,) -> (m,)
        """Squared distances in length-scales, summed over the axes."""
        if len(X) == 0:
            return np.empty(0)
        kernel = self.model.kernel_at(self.theta, self.history.cube.categorical)
        return np.asarray(kernel.squared_distances(x[None, :], X)[0])

    def nearest(self, X: Array, x: Array, k: int) -> NDArray[np.intp]:  # (m, d), (d,) -> (min(m, k),)
        """Which k rows of X are nearest to x, in length-scales, in no particular order; all where there are fewer."""
        return _smallest(self.distances(X, x), k)

    def _fitted(self, numbers: NDArray[np.intp], pending: Array) -> Fitted:
        flags = self.history.cube.categorical
        observations = Observations.of(self.X[numbers], self.z[numbers], flags, self.added[numbers])
        return self._conditioned(observations, self.theta, pending, self.outputs)

    def _conditioned(self, observations: Observations, theta: Array, pending: Array, outputs: Outputs) -> Fitted:
        if len(pending):
            pending = np.unique(pending, axis=0)
        gp = GP.of(observations, self.model, theta).believing(pending)
        tags = {self.tag: self.theta.tolist(), "ended": self.history.ended}
        incumbent = float(outputs.apply(np.array([self.most]))[0])
        return Fitted((gp,), outputs, incumbent, self.best, tags)


class Look(Protocol):
    """What a climb sees: where it begins (m, d), and at which points there are observations (n, d)."""

    @property
    def near(self) -> Array: ...
    @property
    def known(self) -> Array: ...


L = TypeVar("L", bound=Look)
L_co = TypeVar("L_co", bound=Look, covariant=True)


class Looks(Protocol[L_co]):
    """What two looks are taken at: a `Regional`, or those of several numbers."""

    @property
    def history(self) -> History: ...
    def wide(self) -> L_co: ...
    def close(self, x: Array) -> L_co: ...
    def distances(self, X: Array, x: Array) -> Array: ...


def maximise(
    regional: Looks[L],
    worth: Callable[[L], Acquisition],
    rng: np.random.Generator,
    solver: SolverName = "lbfgsb",
    wide: L | None = None,
    grid: int = GRID,
    **more: Any,
) -> tuple[L, Solution]:
    """The point worth most by two looks, and the one that says so.

    Args:
        worth: the acquisition that a look has.
        solver: by which it is maximised; a random grid has one look.
        wide: the wide look, where it has been taken before.
        grid: points of a random grid.
        more: further settings of L-BFGS-B.
    """
    history = regional.history
    wide = regional.wide() if wide is None else wide
    near = wide.near
    if solver == "random-grid":
        return wide, _solve(history, wide, worth, rng, solver, {"size": grid})
    settings: dict[str, Any] = {"size": RAW, "near": near}
    if solver == "lbfgsb":
        settings |= {"starts": STARTS, "rounds": ROUNDS, **more}
    found = _solve(history, wide, worth, rng, solver, settings)
    away = float(regional.distances(near, found.x).min()) > REACH**2 * history.d
    if not away:
        return wide, found
    close = regional.close(found.x)
    settings |= {"size": CLOSE_RAW, "near": found.x[None, :]}
    if solver == "lbfgsb":
        settings |= {"starts": CLOSE_STARTS, "rounds": CLOSE_ROUNDS}
    again = _solve(history, close, worth, rng, solver, settings)
    # what the wide GP's end is really worth is known now; the best of what lies near the best point may be worth more
    home = _solve(history, wide, worth, rng, solver, settings | {"size": 1, "near": near})
    if home.value > again.value:
        return wide, home
    return close, again


def at_home(
    regional: Regional, worth: Callable[[Fitted], Acquisition], rng: np.random.Generator
) -> tuple[Fitted, Solution]:
    """The point worth most in the box around a hilltop that holds its nearest, by a GP of these alone.

    The tops are the best point, the best one away from it, and so on, each drawn half as often as the one before. Where
    points in flight leave no room there, the one worth most by two looks.
    """
    history = regional.history
    top = regional.hilltop(min(int(rng.geometric(0.5)), HILLS) - 1)
    fit = regional.home(top)
    within = regional.X[regional.nearest(regional.X, top, BOXED * history.d)]
    reach = np.maximum(np.abs(within - top).max(axis=0), least_distance(history.d))
    box = Box.around(history.cube, top, reach)
    points, apart = taken(history)
    near = _smallest(((points - top) ** 2).sum(axis=1), AVOIDED)
    settings: dict[str, Any] = {"size": RAW, "starts": STARTS, "rounds": ROUNDS}
    settings |= {"avoid": box.inwards(points[near]), "apart": apart[near] / reach.min()}
    found = solve("lbfgsb", Within(worth(fit), box), box, rng, **settings)
    found = replace(found, x=history.cube.snap(box.outwards(found.x[None, :]))[0])  # the box's edge may be no value
    if (((points - found.x) ** 2).sum(axis=1) < np.maximum(apart, SAME) ** 2).any():
        return maximise(regional, worth, rng)
    return fit, found


def _solve(
    history: History,
    look: L,
    worth: Callable[[L], Acquisition],
    rng: np.random.Generator,
    solver: SolverName,
    settings: dict[str, Any],
) -> Solution:
    """The best point by one look, apart from all that have been proposed."""
    acquisition = worth(look)
    points, apart = taken(history)
    if continuous(history.cube).all():  # nothing is met twice by chance: it is enough to stay apart from what is near
        q = np.min([((points - top) ** 2).sum(axis=1) for top in look.near], axis=0)
        near = _smallest(q, AVOIDED)
        avoid = np.concatenate([look.known, points[near]])
        found = solve(solver, acquisition, history.cube, rng, avoid=avoid, apart=least_distance(history.d), **settings)
        if (((points - found.x) ** 2).sum(axis=1) >= apart**2).all():
            return found
    return solve(solver, acquisition, history.cube, rng, avoid=points, apart=apart, **settings)


def _smallest(q: Array, k: int) -> NDArray[np.intp]:
    return np.arange(len(q)) if len(q) <= k else np.argpartition(q, k)[:k]


def chosen(z: Array, at_most: int) -> NDArray[np.intp]:
    """The best fifth of so many, and every so many of the rest in the order of asking, ascending."""
    n = len(z)
    if n <= at_most:
        return np.arange(n)
    top = np.argpartition(-z, at_most // 5)[: at_most // 5]
    rest = np.delete(np.arange(n), top)
    return np.sort(np.concatenate([top, rest[_evenly(len(rest), at_most - len(top))]]))


def _evenly(n: int, k: int) -> NDArray[np.intp]:
    return np.arange(n) if n <= k else np.linspace(0, n - 1, k).astype(np.intp)


def _share(k: int, tops: Array) -> int:
    """How many of k each of so many tops has."""
    return -(-k // len(tops))


def _estimate(history: History, model: Model, X: Array, z: Array, added: Array, tag: str) -> Array:  # (p,)
    """The most likely hyperparameters, as they were until there are a fiftieth more trials."""
    last = last_estimate(history, model, history.d, tag)
    lasts = max(KEPT_LEAST, len(history) // KEPT_SHARE)
    if last is not None and len(history) % lasts:
        return last
    few = chosen(z, FITTED)
    observations = Observations.of(X[few], z[few], history.cube.categorical, added[few])
    starts = [model.start(history.d)] if last is None or len(history) // lasts % AFRESH == 0 else []
    return fit_map(observations, model, starts if last is None else [last, *starts])
