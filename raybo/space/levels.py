"""Shared by all kinds of parameter: arrays of coordinates, listed levels, and the check of a guess."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybo.common.errors import SpaceError
from raybo.common.messages import shown

Array: TypeAlias = NDArray[np.float64]

LISTED_LEVELS = 1_000  # an axis with more runnable points than this is searched as if it were continuous, then snapped
MIDDLE = 0.5  # of its axis: where the only value of a parameter lies


class Guessed(Protocol):
    """A parameter that may have a guess."""

    @property
    def guess(self) -> Any: ...
    @property
    def has_guess(self) -> bool: ...
    @property
    def next_guesses(self) -> Sequence[Any]: ...
    def accept(self, value: object, name: str) -> Any: ...


def check_guesses(parameter: Guessed, name: str) -> None:
    """Raise SpaceError if a guess is not one of the parameter's values, or there are only next ones."""
    following = parameter.next_guesses
    if not isinstance(following, tuple):
        raise SpaceError(f"{name}: next_guesses must be a list of values of the parameter, got {shown(following)}")
    if following and not parameter.has_guess:
        raise SpaceError(f"{name}: next_guesses={shown(list(following))} without a guess; give the first as guess")
    given = [(parameter.guess, "a guess must be a value of the parameter")] if parameter.has_guess else []
    for guess, rule in [*given, *((each, "next guesses must be values of the parameter") for each in following)]:
        try:
            parameter.accept(guess, name)
        except SpaceError as error:
            raise SpaceError(f"{error}; {rule}") from None


def plain_guesses(parameter: Guessed) -> None:
    """Turn a frozen parameter's list of next guesses into a tuple; `check_guesses` refuses anything else."""
    following = parameter.next_guesses
    if isinstance(following, Sequence) and not isinstance(following, (str, bytes)):
        object.__setattr__(parameter, "next_guesses", tuple(following))


def guess_at(parameter: Guessed, turn: int) -> Any:
    """Return the guess at turn 0, and afterwards the next ones; the guess again after the last of them."""
    return parameter.next_guesses[turn - 1] if 0 < turn <= len(parameter.next_guesses) else parameter.guess
