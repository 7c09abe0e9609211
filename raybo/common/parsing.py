"""Values parsed from text, or checked, by a type annotation."""

from __future__ import annotations

import typing
from collections import abc
from collections.abc import Hashable, Sequence
from contextlib import suppress
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Any

import numpy as np

from raybo.common.arguments import is_real

LISTS = (list, abc.Sequence, abc.Iterable, abc.Collection)  # with the type of their items, they are read from text
ITEMS = {list: "list[int], say", tuple: "tuple[int, ...], say"}


def convert(value: Any, hint: Any) -> Any:
    """Return the value as the annotation wants it; text is parsed. ValueError says what it must be."""
    if isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union:
        return _convert_union(value, typing.get_args(hint))
    if typing.get_origin(hint) is typing.Literal:
        return _convert_literal(value, typing.get_args(hint))
    if hint in (bool, np.bool_):
        if isinstance(value, str) and value.lower() in ("true", "yes", "1", "false", "no", "0"):
            return value.lower() in ("true", "yes", "1")
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError("true or false")
        return bool(value)
    if hint in (int, float) or (isinstance(hint, type) and issubclass(hint, (np.integer, np.floating))):
        return _convert_number(value, int if issubclass(hint, (int, np.integer)) else float)
    if isinstance(hint, type) and issubclass(hint, PurePath):
        if not isinstance(value, (str, PurePath)):
            raise ValueError("a path")
        return hint(value)
    if typing.get_origin(hint) is tuple:
        return _convert_tuple(value, typing.get_args(hint))
    if isinstance(value, str) and typing.get_origin(hint) in LISTS:
        return list(_convert_tuple(value, (*typing.get_args(hint), ...)))
    if hint is str and not isinstance(value, str):
        raise ValueError("text")
    if isinstance(value, str):
        _require_text(value, hint)
    return value


def _require_text(text: str, hint: Any) -> None:
    """Raise ValueError if the annotation is of a type that text is not, rather than pass the text on."""
    kind = typing.get_origin(hint) or hint
    try:
        is_text = not isinstance(kind, type) or isinstance(text, kind) or issubclass(kind, str)
    except TypeError:  # of a type that has no instances, such as Any
        return
    if not is_text:
        remedy = f" (annotated as {ITEMS[kind]}, it would be read as one)" if kind in ITEMS else ""
        raise ValueError(f"of type {kind.__name__}, which text is not{remedy}")


def _convert_literal(value: Any, allowed: Sequence[Any]) -> Any:
    if isinstance(value, Hashable) and value in allowed:  # an array is compared item by item
        return value
    for each in allowed:
        if isinstance(value, str) and value == str(each):
            return each
    raise ValueError("one of " + ", ".join(map(str, allowed)))


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


def _convert_tuple(value: Any, kinds: Sequence[Any]) -> tuple[Any, ...]:
    """Convert a list, as a journal has it, or text with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)):
        raise ValueError("a list")
    if kinds[-1:] == (...,):
        kinds = [kinds[0]] * len(parts)
    if len(kinds) != len(parts):
        raise ValueError(f"a list of {len(kinds)}")
    return tuple(convert(part, kind) for part, kind in zip(parts, kinds, strict=True))


def _convert_number(value: Any, kind: type) -> Any:
    wanted = "a whole number" if kind is int else "a number"
    if not isinstance(value, str) and not is_real(value):
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
