"""A method's options: dataclass fields that say what they mean, read from text where they come from a command line."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from raybo.error_text import nearest
from raybo.errors import MethodError
from raybo.text_values import convert


def option(default: Any, meaning: str) -> Any:
    """A field of a method's dataclass: its default, and what it means (units, range, source)."""
    return dataclasses.field(default=default, metadata={"meaning": meaning})


def require_finite(options: object, *names: str) -> None:
    """MethodError where one of these options, if it is given, is not a finite number."""
    for name, value in _given(options, names):
        if not math.isfinite(value):
            raise MethodError(f"{name} must be a finite number, got {value}")


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
