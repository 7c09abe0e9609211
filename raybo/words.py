"""What is told in words, and what is read from them: the cause of an error, the likely name, text as a value."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Sequence
from types import NoneType, UnionType
from typing import Any

_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def first_line(error: BaseException) -> str:
    """What an error says in its first line; its kind where it says nothing, or fails even to say it."""
    try:
        return next(line.strip() for line in str(error).splitlines() if line.strip())
    except Exception:  # noqa: BLE001  # a user's exception may raise when it is printed
        return type(error).__name__


def in_words(error: BaseException) -> str:
    """An error's kind, and what it says in its first line."""
    line, kind = first_line(error), type(error).__name__
    return kind if line == kind else f"{kind}: {line}"


def visible(text: str) -> str:
    """Text with all that would command a terminal rather than appear on it written as Python writes it, `\\x1b`.

    That is: control characters but for line ends and tabs, what turns the direction of writing, and what no encoding
    has (a lone surrogate).
    """
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


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
