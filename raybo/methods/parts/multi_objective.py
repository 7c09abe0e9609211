"""Proposals for several metrics and constraints: a fit of each number, and the search for the next point.

From trials that have reported but not finished, each model knows what they reported for its number, as with a single
metric: either it models the curves, or it has the final values predicted in `running_trials`. For a constraint that
must hold at every step, a trial that was ended early has its last report. Other trials that were ended early are
believed like pending ones; otherwise they would be proposed again.

In studies of many trials, every number has local models, around the front in place of the best point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from raybo.acquisition import Acquisition
from raybo.common.errors import MethodError
from raybo.methods.parts.fitted_model import Transform
from raybo.methods.parts.fitting import fitted
from raybo.methods.parts.front_and_reference import best_points, best_points_of_many
from raybo.methods.parts.goals_model import FittedGoals, FittedNumber
from raybo.methods.parts.hyperparameters import Hyperparameters
from raybo.methods.parts.learning_curves import fitted_curves
from raybo.methods.parts.local_maximiser import GRID, maximise
from raybo.methods.parts.local_models import LocalModels, ManyObservations, is_large, ranked
from raybo.methods.parts.next_point import solve_apart
from raybo.methods.parts.running_trials import predicted
from raybo.record.history import History
from raybo.record.states import State
from raybo.solvers import Solution, SolverName
from raybo.space import Array
from raybo.surrogate import Model, SignedLog, Tamed

WITH_MANY: dict[str, Any] = {"size": 500, "starts": 6}  # of the first look among many trials

N = TypeVar("N")


@dataclass(frozen=True)
class FitOptions:
    """The settings of the fit of each number.

    Attributes:
        model: what is assumed of it.
        estimate: how its hyperparameters are found, see `fitting.fitted`.
        transform: makes the transform of a metric from its values.
        models_curves: True to model the curves of trials that were ended early; else their final values are predicted.
    """

    model: Model
    estimate: Hyperparameters = "map"
    transform: Transform = Tamed.of
    models_curves: bool = False


def maximise_goals(
    history: History,
    options: FitOptions,
    rng: np.random.Generator,
    acquisition: Callable[[FittedGoals], Acquisition],
    solver: SolverName = "lbfgsb",
    **more: Any,
) -> tuple[FittedGoals, Solution]:
    """Return the point of the highest acquisition, and the model that says so.

    The best known points are also climbed from with their discrete coordinates held.

    Args:
        history: with at least one finished trial.
        options: how each number is fitted.
        rng: for fits that draw, and for the search.
        acquisition: makes that of a model.
        solver: maximises it.
        more: further settings of the solver.
    """
    if solver == "lbfgsb":
        more["hold"] = True
    if is_large(history, options.estimate):
        grid = min(more.pop("size", None) or GRID, GRID)
        return maximise(
            local_models_of_goals(history, options, rng), acquisition, rng, solver, grid=grid, **(more | WITH_MANY)
        )
    model = fitted_goals(history, options, rng)
    return model, solve_apart(solver, acquisition(model), history, rng, near=model.near, **more)


def fitted_goals(history: History, options: FitOptions, rng: np.random.Generator) -> FittedGoals:
    """Fit every metric and every constraint to all observations, of which there is at least one."""

    def fit(of_number: History, transform: Transform, tag: str) -> FittedNumber:
        values = transform(of_number.y)
        single = fitted(of_number, options.model, rng, outputs=values, estimate=options.estimate, tag=tag)
        ended_early = of_number.points(State.PRUNED)
        return replace(single, members=tuple(gp.believing(ended_early) for gp in single.members))

    return FittedGoals.of(history, _of_each_number(history, options, fit), best_points(history))


def local_models_of_goals(history: History, options: FitOptions, rng: np.random.Generator) -> LocalModels[FittedGoals]:
    """Fit the hyperparameters of every number, and choose the points around which the wide models know most."""

    def prepare(of_number: History, transform: Transform, tag: str) -> ManyObservations:
        ended_early = of_number.points(State.PRUNED)
        outputs = transform(ranked(of_number.y))
        return ManyObservations.of(of_number, options.model, outputs, options.estimate, tag, ended_early)

    numbers = _of_each_number(history, options, prepare)
    best = best_points_of_many(history, rng)

    def wide() -> FittedGoals:
        fits = [each.wide(best) if isinstance(each, ManyObservations) else each for each in numbers]
        values = [fit.outputs.apply(column) for fit, column in zip(fits, history.Y.T, strict=False)]
        return FittedGoals.of(history, fits, best, np.stack(values, axis=1)[history.feasible])

    def close(x: Array) -> FittedGoals:  # (d,)
        fits = [each.close(x) if isinstance(each, ManyObservations) else each for each in numbers]
        return models.wide.of_other_fits(fits)

    def distances(X: Array, x: Array) -> Array:  # (m, d), (d,) -> (m,), of the number in which points differ most
        of_numbers = [each.distances(X, x) for each in numbers if isinstance(each, ManyObservations)]
        return np.max(of_numbers, axis=0) if of_numbers else np.full(len(X), np.inf)

    models = LocalModels(history, wide, close, distances)
    return models


def _of_each_number(
    history: History, options: FitOptions, fit: Callable[[History, Transform, str], N]
) -> list[N | FittedNumber]:
    """Return the fits of each metric and then of each constraint, from the history of that number alone."""

    def made(of_number: History, transform: Transform, tag: str) -> N | FittedNumber:
        if not options.models_curves or of_number.steps is None:
            of_number = predicted(of_number)
        elif (curves := fitted_curves(of_number, transform, tag)) is not None:
            return curves
        return fit(of_number, transform, tag)

    goals = history.goals
    metrics = [made(history.of_number(j), options.transform, f"theta_{j}" if j else "theta") for j in range(goals.k)]
    constraints = range(len(goals.constraints))
    return metrics + [made(_with_early_ends(history, j), SignedLog.of, f"theta_limit_{j}") for j in constraints]


def _with_early_ends(history: History, j: int) -> History:
    """Return the history of the j-th constraint's margin, with the last reports of trials that were ended early."""
    margins = history.of_number(history.goals.k + j)
    for number in history.records.numbers(State.PRUNED, State.FAILED).tolist():
        record = margins.records[number]
        if record.state is State.FAILED and not record.lacked_memory:
            continue
        if record.early is not None and np.isfinite(record.early[j]):
            margins.records[number] = replace(record, state=State.FINISHED, y=float(record.early[j]))
    return margins


def require_one_estimate(hyperparameters: str) -> None:
    """MethodError if hyperparameters are sampled, which several metrics and constraints do not support."""
    if hyperparameters in ("mcmc", "slice"):
        raise MethodError(f"hyperparameters={hyperparameters} needs a single metric and no constraints; give map")
