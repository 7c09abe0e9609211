"""The values that the options of a method or a scheduler are tried with."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any


def words_of(cls: type[Any]) -> Iterator[dict[str, str]]:
    """Yield each value, beside the default, of every option that is a choice of words."""
    hints = typing.get_type_hints(cls)
    for option in dataclasses.fields(cls):
        for hint in (hints[option.name], *typing.get_args(hints[option.name])):
            for word in typing.get_args(hint):
                if isinstance(word, str) and word != option.default:
                    yield {option.name: word}


def numbers_of(cls: type[Any], value: float) -> Iterator[dict[str, Any]]:
    """Yield each option that is a number, or several numbers, with that value."""
    hints = typing.get_type_hints(cls)
    for option in dataclasses.fields(cls):
        kinds = {hints[option.name], *typing.get_args(hints[option.name])}
        values: list[Any] = [value] if kinds & {int, float} else []
        if any(typing.get_origin(kind) is tuple for kind in kinds):
            values += [(value, 1.0), (1.0, value)]
        yield from ({option.name: each} for each in values)
