"""Reads what one earlier study knows of this one, as an event that makes its journal dispensable.

Parameters are matched by their names (dotted if nested) and kinds, numbers or choices; values by what they are, not by
where they lie in their ranges. What only the earlier study varied is left out, and counts as noise; of what only this
one varies the earlier one knows nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri

from raybo.common.arguments import is_number
from raybo.common.errors import JournalError, NumericalError, SpaceError
from raybo.common.messages import counted
from raybo.common.threads import limit_threads
from raybo.methods.parts.prior_points import RULE
from raybo.methods.parts.running_trials import predicted
from raybo.record.description import Description, as_text
from raybo.record.events import EarlierStudy, Event, Told
from raybo.record.goals import Goals
from raybo.record.history import History
from raybo.record.ledger import Ledger
from raybo.record.origin import confirms
from raybo.record.states import FAILURES, State
from raybo.record.trial import Record
from raybo.searcher.wanted import Wanted, hash_of, identity_of
from raybo.space import Array, Categorical, Float, Integer, Parameter, Space, choice_names
from raybo.surrogate import GP, Observations, fit_map, structured_model

FEWEST = 3  # results of a study that can be a prior
MOST = 200  # observations taken from one: the best of them, and some of the rest
BEYOND = 0.5  # of a range: values farther outside of it say nothing of this study
OVER_CUBE = 1_024  # points by which what a study expects is centred and scaled
LEAST_SPREAD = 0.1  # of what a study expects over the cube: below it, that is nearly nothing


class Studied(Protocol):
    """The source of a prior: a `Study`."""

    @property
    def description(self) -> Description: ...
    @property
    def events(self) -> Sequence[Event]: ...
    @property
    def path(self) -> Path | None: ...


def what_it_knows(study: Studied, wanted: Wanted, name: str) -> EarlierStudy:
    """Return what a study knows, without a model of it.

    Raises:
        JournalError: it has too few results, or other contexts or metrics.
        SpaceError: it has no parameter in common.
    """
    theirs = study.description
    if (theirs.context is None) != (wanted.context is None) or (
        theirs.context is not None and wanted.context is not None and theirs.context.names != wanted.context.names
    ):
        raise JournalError(f"{name}: it does not observe the same contexts, so its values mean something else")
    ledger = Ledger(theirs.space, theirs.goals, theirs.context, theirs.steps, theirs.judged)
    for event in study.events:
        ledger.apply(event)
    axes = matched(theirs.space, wanted.space)
    if not axes:
        raise SpaceError(
            f"{name}: it has no parameter in common with this study, which has {', '.join(wanted.space.names)}"
        )
    if wanted.identity and identity_of(theirs, study.events) == wanted.identity:
        raise JournalError(
            f"{name}: it is this study's own journal or a copy of it, and knows nothing more; leave it out"
        )
    numbers, scores = _scores(ledger.history, wanted.goals, name)
    points, kept = _points(ledger, numbers, axes, wanted.space)
    if len(points) < FEWEST:
        raise JournalError(f"{name}: its values lie far outside of this study's ranges, so it says nothing about them")
    said = as_text(theirs.to_json())
    results = list[float]()
    if _may_be_the_same(theirs, wanted):
        # results are the values of the first points, so points whose values were predicted come after these
        values = [ledger.history.records[numbers[place]].y for place in kept]
        order = sorted(range(len(kept)), key=lambda i: values[i] is None)
        points, kept = points[order], [kept[i] for i in order]
        results = [value for value in values if value is not None]
    all_of_it = [said, *([event.number, event.kind.value, event.trial, event.data] for event in study.events)]
    observations = Observations(points, scores[kept], np.ones(len(kept)), np.zeros(len(kept)), ())
    if len(kept) > MOST:
        observations, results = observations.thinned(MOST), []
    history = ledger.history
    return EarlierStudy(
        study=name,
        identity=identity_of(theirs, study.events),
        content=hash_of(all_of_it),
        axes=list(axes),
        points=observations.X.tolist(),
        scores=np.round(observations.y, 4).tolist(),
        theta=[],
        centre=0.0,
        spread=1.0,
        counts={
            "trials": len(history),
            "finished": history.count(State.FINISHED),
            "failed": history.count(*FAILURES),
            "pruned": history.count(State.PRUNED),
            "taken": len(observations.X),
            "objective": theirs.objective,
            "metric": theirs.metric,
            "mode": theirs.mode,
            **({"turned": turned} if (turned := _turned(theirs.goals, wanted.goals)) else {}),
            "only_there": [each for each in theirs.space.names if each not in wanted.space.names],
        },
        results=results,
        first_points=RULE,
    )


def _turned(theirs: Goals, mine: Goals) -> list[str]:
    """Return the metrics that a study wanted the other way round than this one does; each counts as it wanted it."""
    modes = dict(zip(mine.names, mine.modes, strict=True))
    return [name for name, mode in zip(theirs.names, theirs.modes, strict=True) if modes.get(name, mode) != mode]


def _may_be_the_same(theirs: Description, wanted: Wanted) -> bool:
    """Return True if a study may have been of the very same job: results tell, see `prior_points.same_job`."""
    return (
        theirs.space == wanted.space
        and theirs.goals == wanted.goals
        and theirs.goals.is_plain
        and theirs.context is None
        and theirs.fidelity is None
        and theirs.scheduler is None
        and wanted.is_plain
    )


def matched(theirs: Space, mine: Space) -> list[int]:
    """Return the axes of a space whose parameters another one has too, by name and kind."""
    there = dict(zip(theirs.names, theirs.parameters.values(), strict=True))
    return [
        axis
        for axis, (name, parameter) in enumerate(zip(mine.names, mine.parameters.values(), strict=True))
        if name in there and parameter.count != 1 and _varied_alike(there[name], parameter)
    ]


def _varied_alike(theirs: Parameter, mine: Parameter) -> bool:
    """Return True if both are numbers, and theirs varied, or both are choices with one in common."""
    if isinstance(theirs, Categorical) and isinstance(mine, Categorical):
        return theirs.count != 1 and bool(set(choice_names(theirs.choices)) & set(choice_names(mine.choices)))
    return theirs.count != 1 and not isinstance(theirs, Categorical) and not isinstance(mine, Categorical)


def _scores(history: History, goals: Goals, name: str) -> tuple[list[int], Array]:  # n numbers, (n,)
    """Return the trials that say something and their normal scores, maximised: those that failed are the worst.

    With several metrics it is the mean of their scores, of those that both studies have; else of the first one.
    """
    from scipy.stats import rankdata  # slow to import

    theirs = history.goals
    common = [j for j, metric in enumerate(theirs.names) if metric in goals.names]
    if goals.k > 1 and not common:
        raise JournalError(f"{name}: it has none of this study's metrics ({', '.join(goals.names)})")
    rows = [predicted(history.of_number(j)) for j in (common or [0])]
    numbers = [
        number
        for number, record in enumerate(rows[0].records)
        if record.state is State.FINISHED and not record.is_open and not confirms(record.tags)
    ]
    numbers = [number for number in numbers if all(seen.records[number].y is not None for seen in rows)]
    results = sum(history.records[number].state is State.FINISHED for number in numbers)
    if results < FEWEST:
        raise JournalError(f"{name}: it has {counted(results, 'result')}, and a prior needs at least {FEWEST}")
    failed = history.records.numbers(*FAILURES).tolist()
    values = np.array([[seen.records[n].y for seen in rows] for n in numbers], dtype=np.float64)
    values = np.vstack([values, np.full((len(failed), len(rows)), -np.inf)])
    values[[i for i, n in enumerate(numbers) if _breaks(history.records[n], theirs, goals)]] = -np.inf
    feasible = values[np.isfinite(values).all(axis=1)]
    if not len(feasible):
        raise JournalError(f"{name}: all its results break a constraint of this study, so it knows of no good ones")
    if np.ptp(feasible, axis=0).max() == 0.0 and not failed:
        raise JournalError(f"{name}: all its results are equal, so it says nothing about where the best lies")
    scores = [ndtri((rankdata(column) - 0.5) / len(column)) for column in values.T]
    return [*numbers, *failed], np.asarray(np.mean(scores, axis=0))


def _breaks(record: Record, theirs: Goals, mine: Goals) -> bool:
    """Return True if what a trial returned breaks a constraint of this study."""
    if not isinstance(record.outcome, Told):
        return False
    numbers = {**(record.outcome.metrics or {}), **record.outcome.values(theirs)}
    worst = dict(numbers)
    if record.margins is not None:
        for constraint, margin in zip(theirs.constraints, record.margins.tolist(), strict=True):
            if margin < constraint.margin(numbers[constraint.name]):  # a report broke it
                worst[constraint.name] = constraint.value_of(margin)
    return any(
        constraint.margin((worst if constraint.at_every_step else numbers)[constraint.name]) < 0.0
        for constraint in mine.constraints
        if is_number(numbers.get(constraint.name))
    )


def _points(ledger: Ledger, numbers: Sequence[int], axes: Sequence[int], mine: Space) -> tuple[Array, list[int]]:
    """Return trials' coordinates on these axes, and the places of those trials that have all of them."""
    parameters, names = list(mine.parameters.values()), mine.names
    rows, kept = [], []
    for place, number in enumerate(numbers):
        values = dict(ledger.space.named_values(ledger.trials[number].config))
        packed: dict[int, float | int | None] = {}
        row = [_coordinate(axis, parameters[axis], names[axis], values, packed, mine) for axis in axes]
        if not any(math.isnan(u) for u in row):
            rows.append(row)
            kept.append(place)
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(axes)), kept


def _coordinate(
    axis: int,
    parameter: Parameter,
    name: str,
    values: Mapping[str, Any],
    positions: dict[int, float | int | None],
    mine: Space,
) -> float:
    """Return the coordinate of an earlier configuration on an axis; NaN if its value is not one of this study's.

    Args:
        positions: of the choices before it, by axis, to which that of this one is added.
    """
    condition = mine.cube.conditions[axis]
    is_open = condition is None or positions.get(condition[0], condition[1]) == condition[1]
    if not is_open:
        positions[axis] = None
        return float(mine.cube.rest[axis])
    if name not in values:
        return math.nan
    if isinstance(parameter, Categorical):
        try:
            position = Categorical(choice_names(parameter.choices)).position(values[name], name)
        except SpaceError:
            return math.nan
        positions[axis] = position
        return float(parameter.encode_packed([position])[0])
    return _place(parameter, float(values[name]))


def _place(parameter: Float | Integer, value: float) -> float:
    """Return the coordinate of a number, beyond 0 or 1 if it is out of range; NaN if it is far outside."""
    low, high = float(parameter.low), float(parameter.high)
    if low <= value <= high:
        if isinstance(parameter, Integer) and not parameter.log and (value - low) % parameter.step:  # between two
            return ((value - low) / parameter.step + 0.5) / parameter.count
        return float(parameter.encode([value])[0])
    edge = low if value < low else high
    scale = "log" if parameter.log else getattr(parameter, "scale", "linear")
    try:
        beyond = (_scaled(value, scale) - _scaled(edge, scale)) / (_scaled(high, scale) - _scaled(low, scale))
    except ValueError:  # it has no logarithm
        return math.nan
    return float(parameter.encode([edge])[0]) + beyond if abs(beyond) <= BEYOND else math.nan


def _scaled(value: float, scale: str) -> float:
    if scale == "log":
        return math.log(value)
    if scale == "logit":
        return math.log(value) - math.log(1.0 - value)
    return value


def modelled(prior: EarlierStudy, space: Space) -> EarlierStudy:
    """Return what a study knows with the model of it: the likeliest hyperparameters, and its mean over the cube.

    Raises:
        JournalError: it cannot be modelled.
    """
    flags = tuple(space.cube.categorical[axis] for axis in prior.axes)
    observations, model = Observations.of(prior.X, np.array(prior.scores), flags), structured_model(flags)
    cube = space.cube.uniform(np.random.default_rng(0), OVER_CUBE)[:, prior.axes]
    try:
        with limit_threads(1):
            theta = np.round(fit_map(observations, model), 4)
            over = GP.of(observations, model, theta).mean(cube)
    except NumericalError as error:
        raise JournalError(f"{prior.study}: its results cannot be modelled ({error})") from error
    spread = max(float(over.std()), LEAST_SPREAD)
    return replace(prior, theta=theta.tolist(), centre=round(float(over.mean()), 6), spread=round(spread, 6))
