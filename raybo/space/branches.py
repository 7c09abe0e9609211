"""The choices that hold parameters of their own: which they are, and what they are called.

A branch is named after what is fixed in it, or as much of that as tells it from the others:
`{"kind": "svm", "C": Float(0, 1)}` is called svm. If nothing is fixed, its keys say enough, and the paths of its
parameters leave its name out, as `{"svm": {"C": ...}}` does; but if another branch shares a key, it is named after its
keys.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

from raybo.common.arguments import is_real
from raybo.space.parameters import Categorical, Float, Integer, Parameter


class Branch(int):
    """The position of a branch among the choices, which people read as its name: `model.svm.C`, not `model.0.C`."""

    choices: Sequence[Any]

    def __new__(cls, position: int, choices: Sequence[Any]) -> Branch:
        """Make the branch at a position of the choices."""
        branch = super().__new__(cls, position)
        branch.choices = choices
        return branch

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle it with the choices that its name is made of."""
        return Branch, (int(self), self.choices)

    def __str__(self) -> str:
        """Return its name in a path; empty if its keys are unambiguous."""
        others = [set(c) for k, c in enumerate(self.choices) if k != self and isinstance(c, dict) and _is_open(c)]
        mine = self.choices[self]
        if isinstance(mine, dict) and not _fixed(mine) and not any(set(mine) & keys for keys in others):
            return ""
        return str(choice_names(self.choices)[self])


def branches_of(parameter: Parameter) -> list[tuple[Branch, Any]]:
    """Return the choices that hold parameters of their own, with their positions."""
    if not isinstance(parameter, Categorical) or not isinstance(parameter.choices, Sequence):
        return []
    return [(Branch(k, parameter.choices), choice) for k, choice in enumerate(parameter.choices) if _is_open(choice)]


def written(choices: Sequence[Any], write: Callable[[Any], str] = str) -> list[str]:
    """Return the choices as text, and by their `repr` where several would read alike."""
    texts = [write(choice) for choice in choices]
    times = Counter(texts)
    return [text if times[text] == 1 else repr(choice) for text, choice in zip(texts, choices, strict=True)]


def position_of_text(names: Sequence[Any], text: str) -> int | None:
    """Return the position of the choice that a text means; None if it means none, or several.

    It is the choice as it is shown, or the same number, true, false or none in another spelling.

    Args:
        names: the choices, as `choice_names` returns them.
        text: what was typed.
    """
    shown = written(names)
    if text in shown:
        return shown.index(text)
    number = math.nan
    with contextlib.suppress(ValueError):
        number = float(text)
    word = text.strip().lower()
    meant = [
        k
        for k, choice in enumerate(names)
        if (is_real(choice) and choice == number)
        or (isinstance(choice, (bool, NoneType)) and str(choice).lower() == word)
    ]
    return meant[0] if len(meant) == 1 else None


def choice_names(choices: Sequence[Any]) -> list[Any]:
    """Return the choices as they are shown: those that hold parameters by unique names, others as they are."""
    words = {k: _words(choice) for k, choice in enumerate(choices) if _is_open(choice)}
    plain = {choice for k, choice in enumerate(choices) if k not in words and isinstance(choice, str)}
    names: dict[int, str] = {}
    for most in range(1, max(map(len, words.values()), default=0) + 1):
        names = {k: "-".join(texts[:most]) for k, texts in words.items()}
        if len({*names.values(), *plain}) == len(names) + len(plain):
            break
    taken = [*plain, *names.values()]
    return [
        choice if k not in names else names[k] if taken.count(names[k]) == 1 else f"{names[k]}-{k + 1}"
        for k, choice in enumerate(choices)
    ]


def _is_open(choice: Any) -> bool:
    """Return True if there is a parameter anywhere in it."""
    if isinstance(choice, (Float, Integer, Categorical)):
        return True
    inside = choice.values() if isinstance(choice, dict) else choice if isinstance(choice, (list, tuple)) else ()
    return any(_is_open(each) for each in inside)


def _words(choice: Any) -> list[str]:
    """Return candidate names for a branch, the most specific first."""
    if isinstance(choice, (Float, Integer, Categorical)):
        return [type(choice).__name__.lower()]
    keys = [str(key) for key in choice] if isinstance(choice, dict) else []
    return _fixed(choice) or keys or [type(choice).__name__]


def _fixed(choice: Any) -> list[str]:
    """Return the constants of a branch: its texts, and other constants with their keys."""
    items = choice.items() if isinstance(choice, dict) else enumerate(choice)
    plain = [(key, value) for key, value in items if isinstance(value, (str, int, float)) or value is None]
    texts = [value for _, value in plain if isinstance(value, str)]
    return texts + [f"{key}={value}" for key, value in plain if not isinstance(value, str)]
