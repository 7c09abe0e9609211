"""A method's options: dataclass fields that say what they mean, read from text where they come from a command line."""

from __future__ import annotations

import dataclasses
import difflib
import math
import typing
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any

from raybo.errors import MethodError


def option(default: Any, meaning: str) -> Any:
    """A field of a method's dataclass: its default, and what it means (units, range, source)."""
    return dataclasses.field(default=default, metadata={"meaning": meaning})


def require_positive(options: object, *names: str) -> None:
    """MethodError where one of these options, if it is given, is not above 0 and finite."""
    for name, value in _given(options, names):
        if not 0.0 < value < math.inf:
            raise MethodError(f"{name} must be above 0, got {value}")


def require_not_negative(options: object, *names: str) -> None:
    """MethodError where one of these options, if it is given, is not a finite number from 0."""
    for name, value in _given(options, names):
        if not 0.0 <= value < math.inf:
            raise MethodError(f"{name} must be a number from 0, got {value}")


def require_counts(options: object, *names: str) -> None:
    """MethodError where one of these options, if it is given, is below 1."""
    for name, value in _given(options, names):
        if value < 1:
            raise MethodError(f"{name} must be at least 1, got {value}")


def require_probabilities(options: object, *names: str) -> None:
    """MethodError where one of these options does not lie between 0 and 1, ends excluded."""
    for name, value in _given(options, names):
        if not 0.0 < value < 1.0:
            raise MethodError(f"{name} must lie in (0, 1), got {value}")


def _given(options: object, names: Sequence[str]) -> list[tuple[str, Any]]:
    return [(name, getattr(options, name)) for name in names if getattr(options, name) is not None]


def read(method: str, cls: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with their values in the declared types; text is converted, as the command line gives it.

    Raises:
        MethodError: an option that the method does not have (with the nearest name), or a value of another type.
    """
    hints = typing.get_type_hints(cls)
    known = [field.name for field in dataclasses.fields(cls)]
    values = {}
    for name, value in options.items():
        if name not in known:
            raise MethodError(f"{method} has no option {name!r}{nearest(name, known)}")
        try:
            values[name] = convert(value, hints[name])
        except ValueError as error:
            raise MethodError(f"{method}: option {name} must be {error}, got {value!r}") from None
    return values


def nearest(name: str, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the likely one, or all that there are."""
    matches = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if matches:
        return f"; did you mean {matches[0]!r}?"
    return f"; there are: {', '.join(known)}" if known else "; it has none"


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
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(wanted)
    try:
        number = float(value)
    except ValueError:
        raise ValueError(wanted) from None
    if kind is int:
        if number != number // 1:
            raise ValueError(wanted)
        return int(number)
    return number
