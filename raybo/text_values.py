"""A value read from text, or checked, by the annotation of what takes it."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Any

import numpy as np


def convert(value: Any, hint: Any) -> Any:
    """The value as the annotation wants it; text is parsed. ValueError says what it must be."""
    if isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union:
        return _convert_union(value, typing.get_args(hint))
    if typing.get_origin(hint) is typing.Literal:
        if value not in typing.get_args(hint):
            raise ValueError("one of " + ", ".join(map(str, typing.get_args(hint))))
        return value
    if hint is bool:
        if isinstance(value, str) and value.lower() in ("true", "yes", "1", "false", "no", "0"):
            return value.lower() in ("true", "yes", "1")
        if not isinstance(value, bool):
            raise ValueError("true or false")
        return value
    if hint in (int, float):
        return _convert_number(value, hint)
    if isinstance(hint, type) and issubclass(hint, PurePath):
        if not isinstance(value, (str, PurePath)):
            raise ValueError("a path")
        return hint(value)
    if typing.get_origin(hint) is tuple:
        return _convert_tuple(value, typing.get_args(hint)[0])
    if hint is str and not isinstance(value, str):
        raise ValueError("text")
    return value


def _convert_union(value: Any, hints: Sequence[Any]) -> Any:
    if NoneType in hints and (value is None or (isinstance(value, str) and value.lower() == "none")):
        return None
    wanted = []
    for hint in hints:
        if hint is not NoneType:
            try:
                return convert(value, hint)
            except ValueError as error:
                wanted.append(str(error))
    raise ValueError(" or ".join(wanted + ["none"] * (NoneType in hints)))


def _convert_tuple(value: Any, kind: Any) -> tuple[Any, ...]:
    """From a list, as a journal has it, or from text with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)):
        raise ValueError("a list")
    return tuple(convert(part, kind) for part in parts)


def _convert_number(value: Any, kind: type) -> Any:
    wanted = "a whole number" if kind is int else "a number"
    if isinstance(value, bool) or not isinstance(value, (str, int, float, np.integer, np.floating)):
        raise ValueError(wanted)
    if kind is int and isinstance(value, (str, int, np.integer)):
        with suppress(ValueError):  # 1e3, say
            return int(value)  # not by way of a float, which has but 53 bits
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError(wanted) from None
    if kind is int:
        if number != number // 1:
            raise ValueError(wanted)
        return int(number)
    return number
