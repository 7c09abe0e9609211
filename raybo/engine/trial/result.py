"""Reads what a job returned: the required numbers, and as much of the rest as can be kept."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from raybo.common.arguments import number_in

METRICS_KEPT = 50
NAME_CHARACTERS = 200
JSON_CHARACTERS = 10_000  # longer lists and dicts are left out
NESTED = 20  # deeper lists and dicts are left out


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
        for key, other in result.items():
            if key != metric and len(others) < METRICS_KEPT:
                with contextlib.suppress(Exception):  # a user's object may raise at anything
                    others[str(key)] = _kept(other)
        if metric not in result:
            keys = ", ".join(repr(key) for key in list(result)[:10]) or "nothing"
            return None, f"it returned no {metric!r} but {keys}", others
        result = result[metric]
    elif result is None:
        return None, f"it returned None; return the number, or a dict with {metric!r}", others
    number = number_in(result)
    if number is None:
        return None, f"its {metric} is not a number but {' '.join(_short(result).split())}", others
    if not math.isfinite(number):
        return None, f"its {metric} is {number}, not a finite number", others
    return number, "", others


def left_out(result: Any, known: set[str]) -> list[str]:
    """Return the names of the metrics that a trial returned and that are not kept."""
    names = [str(name)[:NAME_CHARACTERS] for name in result] if isinstance(result, Mapping) else []
    return [name for name in names if name not in known][:METRICS_KEPT]


def _kept(value: Any) -> Any:
    """Return a further metric as plain values, and lists and dicts of them. Raises for anything else."""
    if _is_plain(value):
        return _plain(value)
    if not isinstance(value, np.ndarray) and (number := number_in(value)) is not None:  # a tensor of one number, say
        return _plain(number)
    kept = _as_json(value)
    if len(json.dumps(kept)) > JSON_CHARACTERS:
        raise ValueError("too long")
    return kept


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
        return str(value[:1_000])
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    if isinstance(value, (int, np.integer)):
        if abs(int(value)) < 2**63:
            return int(value)
        number = cast(float, number_in(value))  # read as required numbers are, which may be among a report's metrics
        return number if math.isfinite(number) else _short(value)
    return float(value) if math.isfinite(value) else repr(float(value))


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # a user's object may fail even to print itself
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 200 else text[:197] + "..."
