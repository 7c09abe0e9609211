"""Reads what a job returned: the required numbers, and as much of the rest as can be kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from raybo.common.arguments import not_finite, number_in
from raybo.common.messages import shown
from raybo.record.results import EXTRAS, extras

NAME_CHARACTERS = 200  # the journal keeps so many characters of a dropped metric's name


def read_results(result: Any, needed: Sequence[str]) -> tuple[float | None, str, dict[str, Any]]:
    """Read several required numbers: as `read_result` for the first name, with the others among the metrics.

    There is no value if any of them is not a number.

    Args:
        needed: names of the numbers that the result must hold, at least one.
    """
    value, reason, others = read_result(result, needed[0])
    if value is None or len(needed) == 1:
        return value, reason, others
    if not isinstance(result, Mapping):
        names = ", ".join(map(repr, needed))
        return None, f"it returned a single number; return a dict with {names}", others
    numbers: dict[str, Any] = {}
    for name in needed[1:]:
        number, reason, _ = read_result(result, name)
        if number is None:
            return None, reason, {needed[0]: value, **others}
        numbers[name] = number
    return value, "", {**numbers, **{name: other for name, other in others.items() if name not in numbers}}


def read_result(result: Any, metric: str) -> tuple[float | None, str, dict[str, Any]]:
    """Return the value in what an objective returned, or the reason why there is none, and its other metrics."""
    others: dict[str, Any] = {}
    if isinstance(result, Mapping):
        others = extras(result, metric)
        if metric not in result:
            keys = ", ".join(repr(key) for key in list(result)[:10]) or "nothing"
            return None, f"it returned no {metric!r} but {keys}", others
        result = result[metric]
    elif result is None:
        return None, f"it returned None; return the number, or a dict with {metric!r}", others
    number = number_in(result)
    if number is None:
        return None, f"its {metric} is not a number but {' '.join(shown(result).split())}", others
    if not math.isfinite(number):
        return None, f"its {metric} is {not_finite(result, number)}", others
    return number, "", others


def left_out(result: Any, known: set[str]) -> list[str]:
    """Return the names of the metrics that a trial returned and that are not kept."""
    names = [str(name)[:NAME_CHARACTERS] for name in result] if isinstance(result, Mapping) else []
    return [name for name in names if name not in known][:EXTRAS]
