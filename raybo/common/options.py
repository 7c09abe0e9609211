"""A method's options: dataclass fields that say what they mean, read from text if they come from a command line."""

from __future__ import annotations

import contextlib
import dataclasses
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from raybo.common.arguments import is_number
from raybo.common.errors import MethodError
from raybo.common.messages import ELSEWHERE, nearest, shown
from raybo.common.parsing import convert


@dataclass(frozen=True)
class Range:
    """The numbers that an option may be; its words, and None if that is a choice, are allowed besides."""

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None

    def holds(self, value: float) -> bool:
        """Return True if a number is finite and within the bounds."""
        return (
            is_number(value)
            and (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.below is None or value < self.below)
            and (self.at_most is None or value <= self.at_most)
        )

    def __str__(self) -> str:
        """Return the bounds as an error states them after "must be"."""
        low = self.above if self.at_least is None else self.at_least
        high = self.below if self.at_most is None else self.at_most
        if low is not None and high is not None:
            ends = "[" if self.above is None else "(", "]" if self.below is None else ")"
            return f"in {ends[0]}{low:g}, {high:g}{ends[1]}"
        if low is not None:
            return f"above {low:g}" if self.above is not None else f"at least {low:g}"
        if high is not None:
            return f"below {high:g}" if self.below is not None else f"at most {high:g}"
        return "a finite number"


def option(
    default: Any,
    meaning: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> Any:
    """Declare a field of a method's or a scheduler's dataclass: an option, with its meaning and its bounds.

    Every number must be finite and within the bounds, each one of a tuple too; None, words and bools are exempt. The
    method is refused with a MethodError if one is not.

    Args:
        default: its value unless it is given.
        meaning: what it is, in a few words: its units, its source.
        above: what it must exceed; None for no such bound.
        at_least: the least that it may be.
        below: what it must not reach.
        at_most: the most that it may be.
    Example:
        >>> import dataclasses
        >>> from raybo.methods import Method, Proposal, option
        >>> @dataclasses.dataclass(frozen=True, kw_only=True)
        ... class Uniform(Method):
        ...     ends: tuple[float, ...] = option((0.0, 1.0), "of the axes that are searched", at_least=0, at_most=1)
        ...     def propose(self, history, rng):
        ...         return Proposal(rng.uniform(*self.ends, history.d))
        ...     def explain(self, tags):
        ...         return "at random"
        >>> Uniform(ends=(0.5, 2.0))
        Traceback (most recent call last):
            ...
        raybo.common.errors.MethodError: ends must be in [0, 1], got (0.5, 2.0)
    """
    metadata = {"meaning": meaning, "range": Range(above, at_least, below, at_most)}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of every method with options: numbers outside their bounds are refused."""

    def __post_init__(self) -> None:
        """Raise MethodError, naming the option and its bounds, if a number is outside them or not finite."""
        for field in dataclasses.fields(self):
            given, bounds = getattr(self, field.name), field.metadata.get("range", Range())
            for value in given if isinstance(given, tuple) else (given,):
                if value is None or isinstance(value, (str, bool)) or bounds.holds(value):
                    continue
                words = ", ".join(_words(typing.get_type_hints(type(self))[field.name]))
                number = bounds if is_number(value) or value != value else "a finite number"
                raise MethodError(f"{field.name} must be {words + ' or ' if words else ''}{number}, got {shown(given)}")


def _words(hint: Any) -> list[str]:
    """Return the words that an option of that type may be."""
    if typing.get_origin(hint) is typing.Literal:
        return [word for word in typing.get_args(hint) if isinstance(word, str)]
    return [word for each in typing.get_args(hint) for word in _words(each)]


@contextlib.contextmanager
def pointing_elsewhere(options: Mapping[str, Any], places: Mapping[str, str]) -> Iterator[None]:
    """Where a method refuses its options, point to the place of one that the library of a front has elsewhere.

    Args:
        options: by name, as the front was given them.
        places: by name, where it belongs.
    """
    try:
        yield
    except MethodError as error:
        for name in options:
            if name in places and repr(name) in str(error):
                raise MethodError(f"there is no option {name!r}: {places[name]}") from error
        raise


def read(method: str, cls: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options converted to their declared types; text is parsed, as the command line gives it.

    Raises:
        MethodError: an option that the method does not have (with the nearest name), or a value of another type.
    """
    hints = typing.get_type_hints(cls)
    known = [field.name for field in dataclasses.fields(cls)]
    values = {}
    for name, value in options.items():
        if name not in known and name in ELSEWHERE:
            raise MethodError(f"there is no option {name!r}: {ELSEWHERE[name]}")
        if name not in known:
            raise MethodError(f"{method} has no option {name!r}{nearest(name, known)}")
        try:
            values[name] = convert(value, hints[name])
        except ValueError as error:
            raise MethodError(f"{method}: option {name} must be {error}, got {shown(value)}") from None
    return values
