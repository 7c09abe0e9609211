"""What a journal's JSON must be: the one place where all of it is checked, before anything else sees it.

    reading   makes a `Description` and a list of `Event` of it, or raises `Nonsense` with what is wrong

Whoever has a `Description` and events from here may rely on them: a space that can be built, events that are about the
trials they may be about, numbers that are finite and points that lie in the cube. Tags are the method's own: of those
only what every trial may hold is checked.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from raybo.common.arguments import MOST
from raybo.common.messages import in_words
from raybo.journal.beside import is_uri
from raybo.journal.clean import clean_json
from raybo.record.description import Description
from raybo.record.events import OPEN, Event, Kind, Origin, State, states_before
from raybo.record.goals import Goals
from raybo.record.history import GENERATION, ONE
from raybo.space import Categorical, Integer, Space, context_space

CHECKPOINT = re.compile(r"[0-9]+-[0-9]+")  # attempt and number, which make a directory's name
KINDS = frozenset(kind.value for kind in Kind)
NESTED = 100  # levels of lists and objects that an event may hold


class Nonsense(ValueError):
    """Something in a journal is not what raybo writes."""


def parsed(text: str) -> Any:
    """The JSON in a text, clean; Nonsense where it is none."""
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
    """Read what a journal is about; Nonsense if the text is no description that raybo writes."""
    said = parsed(text)
    _require(isinstance(said, dict), "the description is not an object")
    try:
        description = Description.from_json(said)
        context_space(description.context, description.space)
    except Exception as error:  # whatever a space that is none makes the parameters raise
        raise Nonsense(f"its description: {in_words(error)}") from error
    goals = description.goals
    for name in ("objective", "method"):
        _require(isinstance(getattr(description, name), str), f"{name} is no text")
    _require(description.context is None or goals.is_plain, "it has contexts beside several metrics or constraints")
    _require(_is_whole(description.seed) and description.seed >= 0, "seed is not a whole number from 0")
    _require(
        description.steps is None or (_is_count(description.steps) and description.steps > 0), "steps is not a number"
    )
    _require(
        _is_count(description.generation) and 1 <= description.generation <= GENERATION,
        "its methods are of a newer version",
    )
    _require(description.value in ("last", "best"), "value is neither last nor best")
    _require(description.scheduler is None or isinstance(description.scheduler, str), "scheduler is not text")
    for name in ("settings", "options", "scheduler_options"):
        _require(isinstance(getattr(description, name), dict), f"{name} is no object")
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
        """The event in a row; Nonsense where it is none, or cannot follow those before it."""
        if number != self.number + 1:
            raise Nonsense(f"event {self.number + 1} is missing")
        self.number += 1
        try:
            if not isinstance(kind, str) or kind not in KINDS:
                raise Nonsense(f"there is no kind {kind!r}")
            _require(isinstance(at, str) and _is_time(at), "its time is invalid")
            _require(isinstance(text, str), "its data is not text")
            data = parsed(text)
            _require(isinstance(data, dict), "its data is not an object")
            event = Event(Kind(kind), trial, data, number, at)
            self._check(event)
        except Nonsense as error:
            raise Nonsense(f"event {number}: {error}") from error
        return event

    def _check(self, event: Event) -> None:
        trial, data = event.trial, cast("dict[str, Any]", event.data)
        for key, value in data.items():
            if key in ANY and not ANY[key](value):
                raise Nonsense(f"its {key} is none")
        for key in NEEDED[event.kind]:
            if key not in data:
                raise Nonsense(f"it has no {key}")
        if event.kind in (Kind.PLANNED, Kind.ENDED):
            _require(trial is None, "it must not name a trial")
            return
        if event.kind is Kind.ASKED:
            if not _is_whole(trial) or trial != len(self.states):
                raise Nonsense(f"trial {trial!r} is not the next")
            self.states.append(State.PENDING)
            self.steps.append(0)
            _require(_is_point(data["x"], self.space), "x is not a point of the space")
            _require(fits(data["values"], self.space), "its values do not fit the space")
            _require(0 <= data["seen"] < event.number, "it refers to later events")
            _require("origin" not in data["tags"] or data["tags"]["origin"] in list(Origin), "its origin is unknown")
        else:
            if trial is None or not _is_whole(trial) or not 0 <= trial < len(self.states):
                raise Nonsense(f"there is no trial {trial!r}")
            before = self.states[trial]
            if before not in states_before(event.kind):
                is_over = before not in OPEN
                raise Nonsense(f"trial {trial} {'has ended before' if is_over else f'is {before}'}")
            self.states[trial] = event.state
            if event.report is not None:
                _require(data["step"] > self.steps[trial], f"trial {trial} has reported step {data['step']} before")
                self.steps[trial] = data["step"]
                is_told = self.judged in (None, self.goals.names[0]) or _is_finite(
                    data.get("metrics", {}).get(self.judged)
                )
                _require(is_told, f"it has no {self.judged}")
            if event.kind is Kind.TOLD:
                lacking = [n for n in self.goals.needed[1:] if not _is_finite(data.get("metrics", {}).get(n))]
                _require(not lacking, f"it has no {', '.join(lacking)}")
        _require(("c" in data) == ("context" in data), "it has half a context")
        if "c" in data and self.context is not None:
            _require(_is_point(data["c"], self.context), "c is not a point of the contexts")
            _require(fits(data["context"], self.context), "its context is not a declared one")


def fits(row: Any, space: Space) -> bool:
    """Whether a row of JSON values is a configuration of the space, as `Space.pack` makes it."""
    if not isinstance(row, list) or len(row) != space.d:
        return False
    is_open: list[bool] = []
    for value, parameter, condition in zip(row, space.parameters.values(), space.cube.conditions, strict=True):
        is_open.append(condition is None or (is_open[condition[0]] and row[condition[0]] == condition[1]))
        if not is_open[-1]:
            if value is not None:
                return False
        elif isinstance(parameter, Categorical):
            if not (_is_whole(value) and 0 <= value < len(parameter.choices)):
                return False
        elif not (_is_whole(value) if isinstance(parameter, Integer) else _is_finite(value)):
            return False
        elif not parameter.low <= value <= parameter.high:
            return False
    return True


def _is_point(x: Any, space: Space) -> bool:
    return isinstance(x, list) and len(x) == space.d and all(_is_number(u) and 0.0 <= u <= 1.0 for u in x)


def _is_number(value: Any) -> bool:
    return type(value) is float or _is_whole(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    if type(value) is float:
        return math.isfinite(value)
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _is_time(text: str) -> bool:
    try:
        return not text or datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _depth_at_most(value: Any, levels: int) -> bool:
    if not isinstance(value, (list, dict)):
        return True
    inside = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_depth_at_most(item, levels - 1) for item in inside)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return _is_whole(value) and 0 <= value <= MOST


def _is_duration(value: Any) -> bool:
    return value is None or (_is_finite(value) and value >= 0)


def _are_metrics(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_metric, value.values()))


def _is_metric(value: Any) -> bool:
    if isinstance(value, (list, dict)):
        return all(map(_is_metric, value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, (str, bool)) or _is_finite(value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Nonsense(otherwise)


ANY: Mapping[str, Callable[[Any], bool]] = {  # what each key holds, in whatever event it stands
    "trials": lambda value: _is_count(value) and value > 0,
    "artifacts": lambda value: _is_text(value) and (is_uri(value) or os.path.isabs(value)),
    "seen": _is_count,
    "gain": _is_finite,
    "tags": lambda value: isinstance(value, dict),
    "suggest_processor_seconds": lambda value: value is not None and _is_duration(value),
    "suggest_seconds": lambda value: value is not None and _is_duration(value),
    "value": _is_finite,
    "seconds": _is_duration,
    "started": lambda value: _is_text(value) and _is_time(value),
    "host": _is_text,
    "attempt": lambda value: _is_count(value) and value > 0,
    "losses": _is_count,
    "metrics": _are_metrics,
    "metrics_left": _are_texts,
    "reason": _is_text,
    "kind": _is_text,
    "traceback": _is_text,
    "step": lambda value: _is_count(value) and value > 0,
    "repeated": lambda value: isinstance(value, bool),
    "checkpoint": lambda value: _is_text(value) and CHECKPOINT.fullmatch(value) is not None,
    "rule": _is_text,
    "numbers": _are_metrics,
    "context_note": _is_text,
    "context_missing": _are_texts,
}
NEEDED: Mapping[Kind, Sequence[str]] = {
    Kind.PLANNED: ("trials",),
    Kind.ASKED: ("x", "values", "tags", "seen"),
    Kind.BEGUN: (),
    Kind.TOLD: ("value",),
    Kind.FAILED: (),
    Kind.RETRIED: ("reason", "attempt"),
    Kind.STOPPED: (),
    Kind.ENDED: ("reason",),
    Kind.CONTEXT_OBSERVED: ("context", "c"),
    Kind.REPORTED: ("step", "value"),
    Kind.PRUNED: ("reason", "rule"),
    Kind.PAUSED: ("reason", "rule", "step"),
    Kind.RESUMED: ("attempt",),
}
