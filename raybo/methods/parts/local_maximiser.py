"""The search for the next point with local models, in time that hardly grows with the number of trials.

In two looks: the wide model's acquisition is climbed over the whole cube. If that climb ends away from the best point,
it goes on from there with the close model of that end, as the wide one may have left out much of what is known there.
Of both ends, the one with the higher acquisition is proposed.

At home: the acquisition of a top's home model is climbed in a box around that top, which holds its nearest points. The
box shrinks as results gather in it, and moves and grows if a better point lies at its edge. A lower hill, once climbed,
may turn out to be the higher one, so each lower top is drawn half as often as the one before.

Local models within a global search: Eriksson et al. (2019), arXiv:1910.01739. The two looks are raybo's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from raybo.acquisition.protocols import Acquisition
from raybo.methods.parts.fitted_model import FittedGP, FittedModel
from raybo.methods.parts.local_models import LocalModels, ManyObservations, smallest
from raybo.methods.parts.next_point import least_distance, taken
from raybo.record.history import History
from raybo.solvers import Solution, SolverName, solve
from raybo.solvers.box import Box, Within
from raybo.solvers.domain import continuous

RAW = 250  # points at which the acquisition is evaluated before the climbs
STARTS = 4  # climbs
ROUNDS = 15  # iterations of each climb
CLOSE_RAW = 40  # points evaluated before the climbs with a close model
CLOSE_STARTS = 2  # climbs with a close model
CLOSE_ROUNDS = 12  # iterations of each climb with a close model
REACH = 0.3  # distance from the best point up to which an end is near it, in length-scales, a root mean square
SAME = 1e-6  # distance below which two points are one
AVOIDED = 800  # points nearest to the best one that a climb avoids; it is checked afterwards that it avoided all
GRID = 2_000  # points of a random grid at most
HILLS = 5  # tops that are climbed
BOXED = 4  # points per axis in the box around a top

M = TypeVar("M", bound=FittedModel)


def maximise(
    models: LocalModels[M],
    acquisition: Callable[[M], Acquisition],
    rng: np.random.Generator,
    solver: SolverName = "lbfgsb",
    grid: int = GRID,
    **more: Any,
) -> tuple[M, Solution]:
    """Return the point of the highest acquisition by two looks, and the model that says so.

    Args:
        models: wide and close.
        acquisition: makes a model's.
        rng: for the solver.
        solver: maximises the acquisition; with a random grid, of the wide model alone.
        grid: points of a random grid.
        more: further settings of L-BFGS-B in the first look.
    """
    history, wide = models.history, models.wide
    near = wide.near
    if solver == "random-grid":
        return wide, _solve(history, wide, acquisition, rng, solver, {"size": grid})
    settings: dict[str, Any] = {"size": RAW, "near": near}
    if solver == "lbfgsb":
        settings |= {"starts": STARTS, "rounds": ROUNDS, **more}
    first = _solve(history, wide, acquisition, rng, solver, settings)
    if float(models.distances(near, first.x).min()) <= REACH**2 * history.d:
        return wide, first
    close = models.close(first.x)
    settings |= {"size": CLOSE_RAW, "near": first.x[None, :]}
    if solver == "lbfgsb":
        settings |= {"starts": CLOSE_STARTS, "rounds": CLOSE_ROUNDS}
    second = _solve(history, close, acquisition, rng, solver, settings)
    # the close model may have lowered the first end; then the best of what lies near the best point may be higher
    near_best = _solve(history, wide, acquisition, rng, solver, settings | {"size": 1, "near": near})
    if near_best.value > second.value:
        return wide, near_best
    return close, second


def maximise_at_home(
    observations: ManyObservations, acquisition: Callable[[FittedGP], Acquisition], rng: np.random.Generator
) -> tuple[FittedGP, Solution]:
    """Return the point of the highest acquisition in the box around a top, and the home model of that top.

    The point by two looks if those in flight leave no room in the box.
    """
    history = observations.history
    top = observations.hilltop(min(int(rng.geometric(0.5)), HILLS) - 1)
    fit = observations.home(top)
    nearest = observations.X[observations.nearest(observations.X, top, BOXED * history.d)]
    reach = np.maximum(np.abs(nearest - top).max(axis=0), least_distance(history.d))
    box = Box.around(history.cube, top, reach)
    points, apart = taken(history)
    near = smallest(((points - top) ** 2).sum(axis=1), AVOIDED)
    settings: dict[str, Any] = {"size": RAW, "starts": STARTS, "rounds": ROUNDS}
    settings |= {"avoid": box.inwards(points[near]), "apart": apart[near] / reach.min()}
    solution = solve("lbfgsb", Within(acquisition(fit), box), box, rng, **settings)
    x = history.cube.snap(box.outwards(solution.x[None, :]))[0]  # a value at the box's edge may not exist
    if (((points - x) ** 2).sum(axis=1) < np.maximum(apart, SAME) ** 2).any():
        return maximise(observations.local_models(), acquisition, rng)
    return fit, replace(solution, x=x)


def _solve(
    history: History,
    model: M,
    acquisition: Callable[[M], Acquisition],
    rng: np.random.Generator,
    solver: SolverName,
    settings: dict[str, Any],
) -> Solution:
    """Return the best point by one model, apart from all that have been proposed."""
    function = acquisition(model)
    points, apart = taken(history)
    if continuous(history.cube).all():  # no point repeats by chance: staying apart from what is near is enough
        distances = np.min([((points - top) ** 2).sum(axis=1) for top in model.near], axis=0)
        near = smallest(distances, AVOIDED)
        avoid = np.concatenate([model.known, points[near]])
        solution = solve(solver, function, history.cube, rng, avoid=avoid, apart=least_distance(history.d), **settings)
        if (((points - solution.x) ** 2).sum(axis=1) >= apart**2).all():
            return solution
    return solve(solver, function, history.cube, rng, avoid=points, apart=apart, **settings)
