"""Checks of a journal's JSON: the one place that checks all of it, before anything else sees it.

    reading   makes a `Description` and a list of `Event` of it, or raises `Nonsense` with what is wrong

Whoever has a `Description` and events from here may rely on them: a space that can be built, events that are about the
trials they may be about, numbers that are finite and points that lie in the cube. Tags are the method's own: of those
only what every trial may hold is checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from raybo.common.messages import in_words
from raybo.journal.clean import clean_json
from raybo.record.description import Description
from raybo.record.event_fields import is_count, is_finite, is_time, is_whole
from raybo.record.events import KINDS, Asked, EarlierStudy, Event, Kind, Reported, Told, TrialEvent
from raybo.record.goals import Goals
from raybo.record.history import GENERATION, ONE
from raybo.record.origin import Origin
from raybo.record.states import OPEN, State
from raybo.space import Categorical, Integer, Space, context_space

NESTED = 100  # levels of lists and objects that an event may hold


class Nonsense(ValueError):
    """Something in a journal is not what raybo writes."""


def parsed(text: str) -> Any:
    """The JSON in a text, clean; Nonsense where it is not JSON."""
    try:
        value = json.loads(text)
        if text.count("[") + text.count("{") > NESTED:
            _require(_depth_at_most(value, NESTED), "it is nested too deep")
    except Nonsense:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise Nonsense(in_words(error)) from error
    return clean_json(value) if "\\u" in text or not text.isascii() else value


def text_of(description: Description) -> str:
    """Return the JSON by which a journal begins."""
    return json.dumps(description.to_json())


def description_of(text: str) -> Description:
    """Read what a journal is about; Nonsense if the text is not a description that raybo writes."""
    said = parsed(text)
    _require(isinstance(said, dict), "the description is not an object")
    try:
        description = Description.from_json(said)
        context_space(description.context, description.space)
    except Exception as error:  # whatever a space that is none makes the parameters raise
        raise Nonsense(f"its description: {in_words(error)}") from error
    goals = description.goals
    for name in ("objective", "method"):
        _require(isinstance(getattr(description, name), str), f"{name} is not text")
    _require(description.context is None or goals.k == 1, "it has contexts and several metrics")
    _require(is_whole(description.seed) and description.seed >= 0, "seed is not a whole number from 0")
    _require(
        description.steps is None or (is_count(description.steps) and description.steps > 0), "steps is not a number"
    )
    _require(
        is_count(description.generation) and 1 <= description.generation <= GENERATION,
        "its methods are of a newer version",
    )
    _require(description.value in ("last", "best"), "value is neither last nor best")
    _require(description.scheduler is None or isinstance(description.scheduler, str), "scheduler is not text")
    for name in ("settings", "options", "scheduler_options"):
        _require(isinstance(getattr(description, name), dict), f"{name} is not an object")
    _require(description.judged in (None, *goals.names), "its scheduler looks at none of its metrics")
    return description


class Checker:
    """Reads a study's events one after another, each against those before it.

    Args:
        space, context: of the study; context is None where none is declared.
        goals: what every finished trial must have returned.
        judged: the metric that the scheduler looks at, which every report must have; None for the first.
    """

    def __init__(self, space: Space, context: Space | None, goals: Goals = ONE, judged: str | None = None) -> None:
        self.space = space
        self.context = context
        self.goals = goals
        self.judged = judged
        self.number = 0
        self.states: list[State] = []  # of the trials so far
        self.steps: list[int] = []  # the last one that each has reported

    def read(self, number: Any, kind: Any, trial: Any, at: Any, text: Any) -> Event:
        """The event in a row; Nonsense where it is not one, or cannot follow those before it."""
        if number != self.number + 1:
            raise Nonsense(f"event {self.number + 1} is missing")
        self.number += 1
        try:
            if kind not in list(Kind):
                raise Nonsense(f"there is no kind {kind!r}")
            _require(is_time(at), "its time is invalid")
            _require(isinstance(text, str), "its data is not text")
            data = parsed(text)
            _require(isinstance(data, dict), "its data is not an object")
            event = self._event(KINDS[Kind(kind)], trial, data, number, at)
        except ValueError as error:
            raise Nonsense(f"event {number}: {error}") from error
        return event

    def _event(self, kind: type[Event], trial: Any, data: Mapping[str, Any], number: int, at: str) -> Event:
        """The event, with its place among the others; ValueError if it is invalid."""
        kind.require(data)
        if not issubclass(kind, TrialEvent):
            _require(trial is None, "it must not name a trial")
            event = kind.of(None, data, number, at)
            if isinstance(event, EarlierStudy):
                self._take_earlier(event)
            return event
        if issubclass(kind, Asked):
            if not is_whole(trial) or trial != len(self.states):
                raise Nonsense(f"trial {trial!r} is not the next")
        elif not is_whole(trial) or not 0 <= trial < len(self.states):
            raise Nonsense(f"there is no trial {trial!r}")
        event = kind.of(trial, data, number, at)
        if isinstance(event, Asked):
            self._take_asked(event)
        else:
            self._take(event)
        _require((event.c is None) == (event.context is None), "it has half a context")
        if event.c is not None and self.context is not None:
            _require(len(event.c) == self.context.d, "c is not a point of the contexts")
            _require(fits(event.context, self.context), "its context is not a declared one")
        return event

    def _take_asked(self, event: Asked) -> None:
        self.states.append(State.PENDING)
        self.steps.append(0)
        _require(len(event.x) == self.space.d, "x is not a point of the space")
        _require(fits(event.values, self.space), "its values do not fit the space")
        _require(event.seen < event.number, "it refers to later events")
        _require("origin" not in event.tags or event.tags["origin"] in list(Origin), "its origin is unknown")
        if event.origin is Origin.ENQUEUED and "given" in event.tags:
            names = event.tags["given"]
            is_known = isinstance(names, list) and all(name in self.space.names for name in names)
            _require(is_known and bool(names), "what was given of it are not parameters of the space")

    def _take_earlier(self, event: EarlierStudy) -> None:
        axes, n = event.axes, len(event.points)
        _require(0 < len(axes) and max(axes) < self.space.d, "its axes are not of the space")
        _require(n > 0 and len(event.scores) == n and len(event.points[0]) == len(axes), "its points are not whole")
        _require(len(event.theta) == len(axes) + 2, "its theta is not of its axes")  # their scales, its own, the noise
        _require(event.spread > 0, "its spread is not positive")

    def _take(self, event: TrialEvent) -> None:
        trial, before = event.trial, self.states[event.trial]
        if before not in event.before:
            raise Nonsense(f"trial {trial} {'has ended before' if before not in OPEN else f'is {before}'}")
        self.states[trial] = event.state
        if isinstance(event, Reported) and not event.repeated:
            _require(event.step > self.steps[trial], f"trial {trial} has reported step {event.step} before")
            self.steps[trial] = event.step
            if self.judged not in (None, self.goals.names[0]):
                _require(is_finite((event.metrics or {}).get(self.judged)), f"it has no {self.judged}")
        if isinstance(event, Told):
            lacking = [name for name in self.goals.needed[1:] if not is_finite((event.metrics or {}).get(name))]
            _require(not lacking, f"it has no {', '.join(lacking)}")


def fits(row: Any, space: Space) -> bool:
    """True if a row of JSON values is a configuration of the space, as `Space.pack` makes it."""
    if not isinstance(row, list) or len(row) != space.d:
        return False
    is_open: list[bool] = []
    for value, parameter, condition in zip(row, space.parameters.values(), space.cube.conditions, strict=True):
        is_open.append(condition is None or (is_open[condition[0]] and row[condition[0]] == condition[1]))
        if not is_open[-1]:
            if value is not None:
                return False
        elif isinstance(parameter, Categorical):
            if not (is_whole(value) and 0 <= value < len(parameter.choices)):
                return False
        elif not (is_whole(value) if isinstance(parameter, Integer) else is_finite(value)):
            return False
        elif not parameter.low <= value <= parameter.high:
            return False
    return True


def _depth_at_most(value: Any, levels: int) -> bool:
    if not isinstance(value, (list, dict)):
        return True
    inside = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_depth_at_most(item, levels - 1) for item in inside)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Nonsense(otherwise)
