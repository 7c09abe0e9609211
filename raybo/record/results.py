"""Reads the result of a trial: its value or a number for each metric and constraint, and what is kept beside them."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

import numpy as np

from raybo.common.arguments import is_number, number_in, whole_number
from raybo.common.errors import TrialError
from raybo.common.messages import shown
from raybo.record.goals import Goals
from raybo.record.history import ONE, History

EXTRAS = 50  # a result's further numbers, texts and lists that are kept, at most
TEXT_CHARACTERS = 1_000  # longer texts are cut
JSON_CHARACTERS = 10_000  # longer lists and dicts are left out
NESTED = 20  # deeper lists and dicts are left out


class _Value(TypedDict):
    value: float


class Numbers(_Value, total=False):
    """The fields of an event with a result: its value, and what else came with it."""

    metrics: dict[str, Any]


def told(value: Any, number: int, goals: Goals = ONE, whose: str = "", cost: str | None = None) -> Numbers:
    """Return the fields of a result's event; TrialError if a number that is needed is missing or not finite.

    Args:
        value: the result.
        number: of its trial.
        goals: what is needed.
        whose: begins the error where the result is not that of a trial, which could be told to have failed.
        cost: name of the number that a trial costs, which is needed too, and is above 0; None if there is none.
    """
    is_plain = goals.is_plain and cost is None
    if is_plain and not isinstance(value, Mapping):
        return {"value": finite(value, number, whose=whose)}
    who = whose or f"trial {number}"
    needed = goals.needed if cost is None or cost in goals.needed else (*goals.needed, cost)
    if not isinstance(value, Mapping):
        raise TrialError(f"{who}: a dict with {', '.join(needed)} is needed, got {shown(value)}")
    if lacking := [name for name in needed if name not in value]:
        remedy = "" if whose else ", or use fail()"
        raise TrialError(
            f"{who}: its result has no {lacking[0]}; give a number for each of {', '.join(needed)}{remedy}"
        )
    if cost is not None and (costs := finite(value[cost], number, cost, whose)) <= 0.0:
        raise TrialError(f"{who}: {cost} is what it costs, and must be above 0, got {costs:g}")
    return _numbers(value, number, goals, needed, whose)


def reported(
    value: Any, number: int, goals: Goals = ONE, judged: str | None = None, cost: str | None = None
) -> Numbers:
    """Return the fields of a report's event beside its step; TrialError if a number is missing or not finite.

    Args:
        judged: the metric that the scheduler looks at, where that is not the first.
        cost: name of the number that a trial costs, with which its result is a dict; None if there is none.
    """
    needed = (goals.names[0],) if judged is None else (goals.names[0], judged)
    if isinstance(value, Mapping):
        if lacking := [name for name in needed if name not in value]:
            why = ", which the scheduler looks at" if lacking[0] == judged else ""
            raise TrialError(f"trial {number}: the report has no {lacking[0]}{why}")
        told = [name for name in goals.needed if name in needed or is_number(number_in(value.get(name)))]
        return _numbers(value, number, goals, told)
    if judged is not None:
        raise TrialError(
            f"trial {number}: a dict with {' and '.join(needed)} is needed, as the scheduler looks at {judged}, got "
            f"{shown(value)}"
        )
    return {"value": finite(value, number)}


def step_of(step: int | None, number: int, history: History) -> int:
    """Return the step of a trial's next report, by default the one after the last; of one that starts again, the first.

    Raises:
        TrialError: it is not a whole number, not above those before, or beyond the last step of a run.
    """
    record = history.records[number]
    last = record.step
    if record.attempt > 1:
        last = record.last_run[-1][0] if record.last_run and record.resumed_after is None else 0
    following = record.step + 1 if record.was_promoted and record.resumed_after is not None else last + 1
    at = following if step is None else whole_number(step, f"trial {number}: step", error=TrialError)
    if at <= last:
        raise TrialError(f"trial {number}: steps must increase, but step {at} comes after step {last}")
    if history.steps is not None and at > history.steps:
        raise TrialError(f"trial {number}: step {at} is beyond the last step; a whole run has {history.steps}")
    return at


def _numbers(value: Mapping[str, Any], number: int, goals: Goals, needed: Sequence[str], whose: str = "") -> Numbers:
    """Return the fields of an event from a dict that holds every needed number."""
    numbers = {name: finite(value[name], number, name, whose) for name in needed}
    first = goals.names[0]
    rest = {name: v for name, v in numbers.items() if name != first}
    others = {name: other for name, other in extras(value, first).items() if name not in numbers}
    return {"value": numbers[first], "metrics": {**rest, **others}}


def finite(value: Any, number: int, name: str = "", whose: str = "") -> float:
    """Return a value as a float, from anything that converts; TrialError, with its name, if it is not finite."""
    needed = f" is needed for {name}," if name else " is needed,"
    who = whose or f"trial {number}"
    converted = number_in(value)
    if converted is None:
        remedy = "" if whose else "; use fail() for a trial without one"
        raise TrialError(f"{who}: a number{needed} got {shown(value)}{remedy}")
    if not math.isfinite(converted):
        remedy = "" if whose else "; use fail() for such a trial"
        raise TrialError(f"{who}: a finite number{needed} got {shown(value)}{remedy}")
    return converted


def extras(result: Mapping[Any, Any], metric: str) -> dict[str, Any]:
    """Return a result's items beside its metric, as plain JSON: the first 50 that JSON can hold.

    Numbers, bools, None and text of up to 1,000 characters; lists, dicts and arrays of up to 10 kB. What is infinite or
    NaN becomes text; whatever else JSON cannot hold is left out.
    """
    others: dict[str, Any] = {}
    for key, other in result.items():
        if key != metric and len(others) < EXTRAS:
            with contextlib.suppress(Exception):  # a user's object may raise at anything
                others[str(key)] = _extra(other)
    return others


def _extra(value: Any) -> Any:
    """Return a further metric as plain values, and lists and dicts of them. Raises for anything else."""
    if _is_plain(value):
        return _plain(value)
    if not isinstance(value, np.ndarray) and (number := number_in(value)) is not None:  # a tensor of one number, say
        return _plain(number)
    plain = _as_json(value)
    if len(json.dumps(plain)) > JSON_CHARACTERS:
        raise ValueError("too long")
    return plain


def _as_json(value: Any, depth: int = 0) -> Any:
    if isinstance(value, np.ndarray) and value.size <= JSON_CHARACTERS:
        value = value.tolist()
    if _is_plain(value):
        return _plain(value)
    if depth == NESTED or len(value) > JSON_CHARACTERS:
        raise ValueError("too much")
    if isinstance(value, Mapping):
        return {
            str(key if type(key) is int else _plain(key)): _as_json(item, depth + 1)
            for key, item in value.items()
            if _is_plain(key)
        }
    if isinstance(value, (list, tuple)):
        return [_as_json(item, depth + 1) for item in value]
    raise TypeError("no JSON")


def _is_plain(value: Any) -> bool:
    if isinstance(value, np.timedelta64):  # a numpy integer that is not a number
        return False
    return value is None or isinstance(value, (bool, int, float, str, np.integer, np.floating, np.bool_))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return str(value[:TEXT_CHARACTERS])
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    if isinstance(value, (int, np.integer)):
        if abs(int(value)) < 2**63:
            return int(value)
        number = cast(float, number_in(value))  # read as required numbers are, which may be among a report's metrics
        return number if math.isfinite(number) else shown(value)
    return float(value) if math.isfinite(value) else repr(float(value))
