"""Cheap versions of a job: what makes it cheap, and at which values trials run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from raybo.common.arguments import by_name, whole_number
from raybo.common.errors import RayboError, SpaceError
from raybo.common.messages import shown
from raybo.space import Space

Fidelities: TypeAlias = "Mapping[str, Fidelity]"  # by name; currently exactly one

EXAMPLE = '{"rows": raybo.Fidelity(1_000, 100_000)}'
RATIO = 3.0  # between one level and the next, about: what ASHA takes


@dataclass(frozen=True)
class Fidelity:
    """What makes a job cheap: a number of rows, folds or trees, say, that a whole run has all of.

    Args:
        low: the cheapest, from 1; it should take a small part of a whole run, and still tell good from bad.
        high: that of a whole run.
    Raises:
        SpaceError: they are not whole numbers from 1, or `low` is not below `high`.
    Example:
        >>> raybo.Fidelity(1_000, 100_000).levels
        (1000, 3162, 10000, 31623, 100000)
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, whole_number(getattr(self, name), f"Fidelity: {name}", error=SpaceError))
        if self.low >= self.high:
            raise SpaceError(f"Fidelity: low must be below high, got {self.low} and {self.high}")

    @property
    def levels(self) -> tuple[int, ...]:
        """The values at which trials run, ascending: each about three times the one before, the last is a whole run."""
        ratio = self.high / self.low
        count = max(1, round(math.log(ratio) / math.log(RATIO)))
        return tuple(sorted({round(self.low * ratio ** (i / count)) for i in range(count)} | {self.high}))

    def place(self, value: int) -> float:
        """Return where a value is between low (0) and high (1), on a logarithmic axis."""
        return math.log(value / self.low) / math.log(self.high / self.low)

    def __str__(self) -> str:
        """Return both ends, as the command line takes them."""
        return f"{self.low}:{self.high}"


def fidelities_of(declared: Any, space: Space, error: type[RayboError]) -> Fidelities | None:
    """Return a user's fidelity, a dict of one or a text as the command line takes it; None for none.

    Raises:
        RayboError: it is neither, or names a parameter; of the type given.
    """
    if declared is None:
        return None
    if isinstance(declared, str):
        declared = _read(declared, error)
    given = by_name(declared, "fidelity", f"one range by name, such as {EXAMPLE}", error)
    if len(given) != 1:
        raise error(f"fidelity takes one name, got {len(given)}; have the job compute the others from it")
    ((name, value),) = given.items()
    if not isinstance(value, Fidelity):
        raise error(f"fidelity: {name} must be a raybo.Fidelity(low, high), got {shown(value)}")
    if name in space.template:
        raise error(f"fidelity: {name!r} is a parameter of the space too; rename one of them")
    return {name: value}


def _read(text: str, error: type[RayboError]) -> Fidelities:
    name, equals, ends = (part.strip() for part in text.partition("="))
    low, colon, high = ends.partition(":")
    try:
        numbers = int(low), int(high)
    except ValueError:
        numbers = None
    if not (name and equals and colon) or numbers is None:
        raise error(f"fidelity takes NAME=LOW:HIGH, such as rows=1000:100000, got {text!r}")
    try:
        return {name: Fidelity(*numbers)}
    except SpaceError as wrong:
        raise error(str(wrong)) from None


def fidelities_to_json(fidelities: Fidelities | None) -> dict[str, list[int]] | None:
    """Return a fidelity as a journal's description keeps it."""
    return None if fidelities is None else {name: [each.low, each.high] for name, each in fidelities.items()}


def fidelities_from_json(said: Mapping[str, Any] | None) -> Fidelities | None:
    """Return the fidelity that `fidelities_to_json` wrote.

    Raises:
        SpaceError, ValueError, TypeError, AttributeError: it is not one.
    """
    return None if said is None else {name: Fidelity(*ends) for name, ends in said.items()}


def ran_at(fidelities: Fidelities, at: int, metric: str, value: float | None) -> str:
    """Return in words how a trial ended that was no whole run."""
    ((name, fidelity),) = fidelities.items()
    return f"{metric} {value:.6g} at {at:,} of {fidelity.high:,} {name}"
