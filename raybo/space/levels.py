"""Shared by all kinds of parameter: arrays of coordinates, listed levels, and the check of a guess."""

from __future__ import annotations

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
    def next_guess(self) -> Any: ...
    def accept(self, value: object, name: str) -> Any: ...


def check_guess(parameter: Guessed, name: str) -> None:
    """Raise SpaceError if a guess is not one of the parameter's values, or the next one is the only one."""
    given = {"guess": parameter.guess} if parameter.has_guess else {}
    if parameter.next_guess is not None:
        given["next_guess"] = parameter.next_guess
    for which, guess in given.items():
        try:
            parameter.accept(guess, name)
        except SpaceError as error:
            raise SpaceError(f"{error}; a {which} must be one of its values") from None
    if given and not parameter.has_guess:
        raise SpaceError(f"{name}: next_guess={shown(parameter.next_guess)} without a guess; call it guess")
