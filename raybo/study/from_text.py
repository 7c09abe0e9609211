"""Configurations and values that a user types, by the parameters' names as tables show them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from raybo.common.errors import SpaceError
from raybo.common.messages import nearest
from raybo.space import Categorical, Parameter, Row, Space, choice_names, position_of_text, written
from raybo.space.partial import checked


def read_row(space: Space, texts: Mapping[str, str]) -> Row:
    """Return the row of a configuration from text, which may leave parameters out.

    Raises:
        SpaceError: a parameter is unknown or not open, or its text cannot be read.
    """
    for name in texts:
        if name not in space.names:
            raise SpaceError(f"{name}: not a parameter of the space{_meant(name, space.names)}")
    parameters = zip(space.names, space.parameters.values(), strict=True)
    return checked(space, [read_value(p, name, texts[name]) if name in texts else None for name, p in parameters])


def read_value(parameter: Parameter, name: str, text: str) -> float | int:
    """Return a value as rows hold it: a number, or the position of a choice; SpaceError if it is not one."""
    if isinstance(parameter, Categorical):
        names = choice_names(parameter.choices)
        if (position := position_of_text(names, text)) is None:
            raise SpaceError(f"{name}: {text!r} is not one of {', '.join(written(names))}")
        return position
    try:
        number = _number(text)
    except ValueError:
        raise SpaceError(f"{name}: a number is needed, got {text!r}") from None
    return parameter.accept(number, name)


def _meant(name: str, known: Sequence[str]) -> str:
    """Return a hint at the one parameter with the same last part, which tables call by that alone; else the nearest."""
    last = name.rpartition(".")[2]
    ends = [each for each in known if each.rpartition(".")[2] == last]
    return f"; did you mean {ends[0]!r}?" if len(ends) == 1 else nearest(name, known)


def _number(text: str) -> float:
    """Return the number in a text; a whole one exactly, beyond the 53 bits of a float too. ValueError if it is none."""
    with contextlib.suppress(ValueError):
        return int(text)
    return float(text)
