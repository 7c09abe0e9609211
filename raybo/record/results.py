"""What a user tells of a trial, read: its value, or a number for each metric and constraint."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from raybo.common.arguments import is_number, number_in
from raybo.common.errors import TrialError
from raybo.common.messages import shown
from raybo.record.goals import Goals
from raybo.record.history import ONE


class _Value(TypedDict):
    value: float


class Numbers(_Value, total=False):
    """The fields of an event with a result: its value, and what else came with it."""

    metrics: dict[str, Any]


def told(value: Any, number: int, goals: Goals = ONE, whose: str = "") -> Numbers:
    """Return what the event of a result holds; TrialError where a number that is needed is missing or not finite.

    Args:
        value: the result.
        number: of its trial.
        goals: what is needed.
        whose: begins the error where the result is not that of a trial, which could be told to have failed.
    """
    if goals.is_plain:
        return {"value": finite(value, number, whose=whose)}
    who = whose or f"trial {number}"
    if not isinstance(value, Mapping):
        needed = ", ".join(goals.needed)
        raise TrialError(f"{who}: a dict with {needed} is needed, got {shown(value)}")
    if lacking := [name for name in goals.needed if name not in value]:
        remedy = "" if whose else ", or use fail()"
        raise TrialError(
            f"{who}: its result has no {lacking[0]}; give a number for each of {', '.join(goals.needed)}{remedy}"
        )
    return _numbers(value, number, goals, goals.needed, whose)


def reported(value: Any, number: int, goals: Goals = ONE, judged: str | None = None) -> Numbers:
    """Return what the event of a report holds beside its step; TrialError where a number is missing or not finite.

    Args:
        judged: the metric that the scheduler looks at, where that is not the first.
    """
    needed = (goals.names[0],) if judged is None else (goals.names[0], judged)
    if isinstance(value, Mapping) and not goals.is_plain:
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


def _numbers(value: Mapping[str, Any], number: int, goals: Goals, needed: Sequence[str], whose: str = "") -> Numbers:
    """Return what an event holds of a dict that has what is needed."""
    numbers = {name: finite(value[name], number, name, whose) for name in needed}
    first = goals.names[0]
    rest = {name: v for name, v in numbers.items() if name != first}
    kept = {str(name): _kept(v) for name, v in value.items() if name not in numbers}
    return {"value": numbers[first], "metrics": {**rest, **{name: v for name, v in kept.items() if v is not None}}}


def _kept(value: Any) -> Any:
    """Return what is kept of a number or a text that is not needed; None of anything else."""
    if isinstance(value, (bool, str)):
        return value
    number = number_in(value)
    if number is None or not math.isfinite(number):
        return None
    return value if isinstance(value, int) else number


def finite(value: Any, number: int, name: str = "", whose: str = "") -> float:
    """The value, whatever can be made a float, as one; TrialError, with its name, where it is no finite number."""
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
