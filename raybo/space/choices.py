"""Choices: `Categorical` and `Ordinal`. Each owns an equal interval of the axis [0, 1], represented by its middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from raybo.common.errors import SpaceError
from raybo.common.messages import shortened, shown
from raybo.common.refusals import refusing
from raybo.space.levels import LISTED_LEVELS, MIDDLE, Array, check_guesses, plain_guesses
from raybo.space.numeric import Float, Integer
from raybo.space.objects import equal, identical, object_to_json, same


class _Unset(Enum):
    """Stands for a missing guess, as None may be a choice."""

    UNSET = "unset"


UNSET = _Unset.UNSET


@dataclass(frozen=True, repr=False)
class Categorical:
    """One of the given choices, which may be any objects and have no order.

    Choices are different if their types are: 1, 1.0 and True are three.

    Attributes:
        choices: the values, at least one.
        guess: the one that you believe to be best, as in `Float`: `Categorical(["rbf", "linear"], guess="rbf")`.
        next_guesses: which others may be, as in `Float`.
    Raises:
        SpaceError: the choices are not a list of different values, a guess is not one of them, or there are next
            guesses without a guess.
    Example:
        >>> searcher = raybo.Searcher({"loss": raybo.Categorical(["l1", "l2"])}, "random", seed=0)
        >>> sorted({trial.config["loss"] for trial in searcher.ask(20)})
        ['l1', 'l2']
    """

    choices: Sequence[Any]
    guess: Any = field(default=UNSET, kw_only=True)
    next_guesses: Sequence[Any] = field(default=(), kw_only=True)

    @refusing(SpaceError, "the choices are a list of different objects, and a guess is one of them")
    def __post_init__(self) -> None:
        plain_guesses(self)
        self.check(type(self).__name__)

    def __repr__(self) -> str:
        guess = [f"guess={self.guess!r}"] if self.has_guess else []
        following = [f"next_guesses={list(self.next_guesses)!r}"] if self.next_guesses else []
        return f"{type(self).__name__}({', '.join([f'choices={self.choices!r}', *guess, *following])})"

    @property
    def has_guess(self) -> bool:
        """True if the user declared a guess, which may be None."""
        return self.guess is not UNSET

    def check(self, name: str) -> None:
        """Raise SpaceError, naming the parameter, if the choices are not a sequence of different objects."""
        if isinstance(self.choices, (str, bytes)) or not isinstance(self.choices, Sequence):
            raise SpaceError(f"{name}: choices must be a list, got {shown(self.choices)}")
        if len(self.choices) == 0:
            raise SpaceError(f"{name}: a choice needs at least one value, got an empty list")
        for i, choice in enumerate(self.choices):
            if any(same(choice, earlier) for earlier in self.choices[:i]):
                raise SpaceError(f"{name}: each choice may be given once, got {shown(choice)} twice")
        check_guesses(self, name)

    @property
    def count(self) -> int:
        """Return the number of choices."""
        return len(self.choices)

    def position(self, value: object, name: str) -> int:
        """Return the value's position among the choices; raise SpaceError if it is not one of them."""
        for agree in (identical, same, equal):
            for i, choice in enumerate(self.choices):
                if agree(choice, value):
                    return i
        raise SpaceError(f"{shortened(name, 300)}: {shown(value)} is not one of {shown(list(self.choices))}")

    @refusing(SpaceError, "accept takes a value and the parameter's name")
    def accept(self, value: object, name: str) -> Any:
        """Return the choice as it was declared; raise SpaceError if the value is not one."""
        return self.choices[self.position(value, name)]

    def encode(self, values: Sequence[Any]) -> Array:  # (n,)
        """Return the coordinates of values in [0, 1]: the middle of the interval that each choice owns."""
        return self.encode_packed([self.position(value, "choice") for value in values])

    def positions(self, u: Array) -> list[int]:  # (n,)
        """Return the positions of the choices at the coordinates."""
        return cast("list[int]", self.level_index(u).tolist())

    def decode(self, u: Array) -> list[Any]:  # (n,)
        """Return the choices at the coordinates."""
        return [self.choices[i] for i in self.positions(u)]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON description; a choice that JSON cannot hold is described by its `repr` alone."""
        description = {"type": "categorical", "choices": [object_to_json(choice) for choice in self.choices]}
        return description | self.guesses_to_json()

    def guesses_to_json(self) -> dict[str, Any]:
        """Return the guesses by name, as the choices' positions; empty if there is none."""
        following = [self.position(guess, "next guess") for guess in self.next_guesses]
        given = {"guess": self.position(self.guess, "guess")} if self.has_guess else {}
        return given | ({"next_guesses": following} if following else {})

    def level_index(self, u: Array) -> NDArray[np.int64]:  # (n,)
        """Return the positions of the choices at the coordinates."""
        k = len(self.choices)
        return np.clip(np.floor(u * k), 0, k - 1).astype(np.int64)

    def levels(self) -> Array | None:
        """Return the ascending coordinates of the choices; None if there are too many to list."""
        if self.count > LISTED_LEVELS:
            return None
        return np.array([MIDDLE]) if self.count == 1 else (np.arange(self.count) + 0.5) / self.count

    def pack(self, value: object, name: str) -> int:
        """Return a value as a journal's row holds it: its position; raise SpaceError if it is not a choice."""
        return self.position(value, name)

    def unpack(self, packed: Any) -> Any:
        """Return the choice that a row holds."""
        return self.choices[packed]

    def encode_packed(self, packed: Sequence[float | int]) -> Array:  # (n,)
        """Return the coordinates of choices as rows hold them."""
        return (np.array(packed, dtype=np.float64) + 0.5) / len(self.choices)

    def decode_packed(self, u: Array) -> list[int]:  # (n,)
        """Return the choices at the coordinates as rows hold them."""
        return self.positions(u)

    def numbers(self, u: Array) -> Array:  # (n,) -> (n,)
        """Return the positions at the coordinates as an array."""
        return self.level_index(u).astype(np.float64)


@dataclass(frozen=True, repr=False)
class Ordinal(Categorical):
    """One of the given values, which are in order: neighbours are assumed to behave alike, whatever the values are.

    `Ordinal([8, 16, 32, 64])`, `Ordinal(["small", "medium", "large"], guess="small")`. Each value takes up the same
    share of one axis; a rule may compare values with `<`.

    Attributes:
        choices: the values, from first to last, at least one.
        guess, next_guesses: as in `Categorical`.
    Raises:
        SpaceError: the choices are not a list of different values, one of them is a parameter or a dict, a guess is not
            one of them, or there are next guesses without a guess.
    Example:
        >>> searcher = raybo.Searcher({"batch": raybo.Ordinal([8, 16, 32, 64], guess=16)}, seed=0)
        >>> searcher.ask().config
        {'batch': 16}
    """

    def check(self, name: str) -> None:
        """Raise SpaceError, naming the parameter, if the values are not a sequence of different objects."""
        super().check(name)
        for value in self.choices:
            if isinstance(value, (Float, Integer, Categorical, dict)):
                raise SpaceError(f"{name}: a value of an Ordinal cannot contain parameters; use Categorical")

    def to_json(self) -> dict[str, Any]:
        """Return a JSON description, which `Space.from_json` reads."""
        return {**super().to_json(), "type": "ordinal"}
