"""Kinds of values that fields of events hold in a journal's JSON, each with the check of it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from raybo.common.arguments import MOST

Holds: TypeAlias = Mapping[str, Callable[[Any], bool]]  # a dataclass field's metadata, see `events`

# a job's fingerprint, see `raybo.job.code_fingerprint`: "sources", a hash of each of its files; "packages", the version
# of each
Code: TypeAlias = Mapping[str, Mapping[str, str]]

CHECKPOINT = re.compile(r"[0-9]+-[0-9]+")  # attempt and number, which make a directory's name


def is_whole(value: Any) -> bool:
    """True if it is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """True if it is a number that a float can hold."""
    if type(value) is float:
        return math.isfinite(value)
    try:
        return is_whole(value) and math.isfinite(value)
    except OverflowError:
        return False


def is_time(value: Any) -> bool:
    """True if it is empty, or a time in ISO 8601 with its zone."""
    try:
        return isinstance(value, str) and (not value or datetime.fromisoformat(value).tzinfo is not None)
    except ValueError:
        return False


def is_count(value: Any) -> bool:
    """True if it is a whole number from 0, as far as raybo counts."""
    return is_whole(value) and 0 <= value <= MOST


def is_point(value: Any) -> bool:
    """True if it is a list of numbers from 0 to 1."""
    return isinstance(value, list) and all((type(u) is float or is_whole(u)) and 0.0 <= u <= 1.0 for u in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_number_from_0(value: Any) -> bool:
    return is_finite(value) and value >= 0


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_finite, value))


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and all(map(_are_numbers, value)) and len(set(map(len, value))) <= 1


def _are_places(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_count, value)) and len(set(value)) == len(value)


def _is_metric(value: Any) -> bool:
    if isinstance(value, (list, dict)):
        return all(map(_is_metric, value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, (str, bool)) or is_finite(value)


def _is_code(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else [None]
    return all(isinstance(part, dict) and all(map(_is_text, part.values())) for part in parts)


ANY: Holds = {"check": lambda value: True}
TEXT: Holds = {"check": _is_text}
TEXTS: Holds = {"check": _are_texts}
FLAG: Holds = {"check": lambda value: isinstance(value, bool)}
NUMBER: Holds = {"check": is_finite}
COUNT: Holds = {"check": is_count}  # from 0
NUMBERED: Holds = {"check": lambda value: is_count(value) and value > 0}  # from 1
POSITIVE: Holds = {"check": lambda value: is_finite(value) and value > 0}
SECONDS: Holds = {"check": _is_number_from_0}
SECONDS_IF_KNOWN: Holds = {"check": lambda value: value is None or _is_number_from_0(value)}
TIME: Holds = {"check": is_time}
POINT: Holds = {"check": is_point}
NUMBERS: Holds = {"check": _are_numbers}
ROWS: Holds = {"check": _are_rows}  # of equally many numbers
PLACES: Holds = {"check": _are_places}  # each once
TAGS: Holds = {"check": lambda value: isinstance(value, dict)}
METRICS: Holds = {"check": lambda value: isinstance(value, dict) and _is_metric(value)}
SAVED: Holds = {"check": lambda value: _is_text(value) and CHECKPOINT.fullmatch(value) is not None}
CODE: Holds = {"check": _is_code}
PLACE: Holds = {"check": lambda value: _is_text(value) and ("://" in value or os.path.isabs(value))}
