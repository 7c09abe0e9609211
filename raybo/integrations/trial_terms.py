"""A trial in other programs' terms: its parameters as plain values, and names that a program takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from raybo.space import Categorical, Parameter, Space, choice_names

Plain: TypeAlias = "bool | int | float | str | None"  # a value that every program can hold; floats are finite


def parameters(space: Space, config: Mapping[str, Any]) -> list[tuple[str, Plain]]:
    """Return name and value of each parameter that is open in a configuration; choices are those of `choices`."""
    kinds = dict(zip(space.names, space.parameters.values(), strict=True))
    return [(name, _plain(kinds[name], value, name)) for name, value in space.open_values(config)]


def choices(parameter: Categorical) -> list[Plain]:
    """Return its choices, all different: those with parameters of their own by their names, other objects as texts."""
    plain: list[Plain] = []
    named = choice_names(parameter.choices)
    taken = {choice for choice in named if isinstance(choice, str)}
    for k, choice in enumerate(named):
        if not _is_plain(choice):
            text = repr(choice)
            choice = f"{text} ({k + 1})" if text in taken else text
            taken.add(choice)
        plain.append(choice)
    return plain


def _plain(parameter: Parameter, value: Any, name: str) -> Plain:
    return choices(parameter)[parameter.position(value, name)] if isinstance(parameter, Categorical) else value


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))


class Names:
    """A program's names for a user's, all different: if a@1 is a_1 there, a#1 is a_1_2.

    A name is given when it is first asked for, and stays.

    Args:
        allowed: makes a text of characters that the program takes.
        taken: names that are the program's own, which a user's may take over only by being just that.
        longest: characters of a name at most; None for no limit.
    """

    def __init__(self, allowed: Callable[[str], str], taken: Iterable[str] = (), longest: int | None = None) -> None:
        self._allowed = allowed
        self._longest = longest
        self._names = {name: name for name in taken}
        self._taken = set(self._names)

    def __getitem__(self, name: str) -> str:
        """Return the program's name for it."""
        if name not in self._names:
            self._names[name] = self.another(name)
        return self._names[name]

    def give(self, names: Iterable[str]) -> None:
        """Give each its name, in this order."""
        for name in names:
            self[name]

    def another(self, name: str) -> str:
        """Return a name for another thing of that name."""
        text = self._allowed(name)[: self._longest]
        count, free = 1, text
        while free in self._taken:
            count += 1
            end = f"_{count}"
            free = text[: self._longest and self._longest - len(end)] + end
        self._taken.add(free)
        return free
