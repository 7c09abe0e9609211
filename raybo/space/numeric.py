"""Numeric parameters: `Float` and `Integer`, and the axis of [0, 1] that each fills.

A float's axis is its range, linear, logarithmic or logit. Each value of an integer or a stepped float owns an interval
of its axis and is represented by its own coordinate inside that interval, so uniform coordinates give uniform values. A
constant owns the whole axis and is represented by the middle.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from raybo.common.arguments import finite_number, is_number, one_of
from raybo.common.errors import SpaceError
from raybo.common.messages import shortened, shown
from raybo.common.refusals import refusing
from raybo.space.levels import LISTED_LEVELS, MIDDLE, Array, check_guesses, plain_guesses

Scale: TypeAlias = Literal["linear", "log", "logit"]

LEAST_WIDTH = 16 * float(np.finfo(np.float64).eps)  # of a value on a logarithmic axis of a narrow range


class _Number:
    """Shared by both kinds: rows of a journal hold the numbers themselves."""

    guess: Any
    next_guesses: Sequence[Any]

    @abstractmethod
    def accept(self, value: object, name: str) -> Any: ...

    @abstractmethod
    def encode(self, values: Sequence[Any]) -> Array: ...

    @abstractmethod
    def decode(self, u: Array) -> list[Any]: ...

    @property
    def has_guess(self) -> bool:
        """True if the user declared a guess."""
        return self.guess is not None

    def pack(self, value: object, name: str) -> Any:
        """Return a value as a journal's row holds it; raise SpaceError if it is not one of this parameter's."""
        return self.accept(value, name)

    def unpack(self, packed: Any) -> Any:
        """Return the value that a row holds."""
        return packed

    def encode_packed(self, packed: Sequence[float | int]) -> Array:  # (n,)
        """Return the coordinates of values as rows hold them."""
        return self.encode(packed)

    def decode_packed(self, u: Array) -> list[Any]:  # (n,)
        """Return the values at the coordinates as rows hold them."""
        return self.decode(u)

    def guesses_to_json(self) -> dict[str, Any]:
        """Return the guesses by name; empty if there is none."""
        following = {"next_guesses": list(self.next_guesses)} if self.next_guesses else {}
        return {"guess": self.guess, **following} if self.has_guess else {}


@dataclass(frozen=True, repr=False)
class Float(_Number):
    """A real number in [low, high]; `log` for a logarithmic scale, `step` for the values low, low + step, ..., high.

    If low equals high, it is a constant.

    Attributes:
        low: the lowest value, finite.
        high: the highest, finite, from `low`.
        log: True for a logarithmic scale, which needs `low` above 0.
        step: above 0; `high` must be `low` plus a whole number of steps. None for every value between.
        scale: "linear"; "log", the same as `log=True`; or "logit", log(v / (1 - v)), for a share or a discount, where
            0.99 and 0.999 differ as much as 0.9 and 0.99 do: `Float(0.5, 0.9999, scale="logit")`.
        guess: where you believe the best value lies: `Float(1e-5, 1, log=True, guess=1e-3)`. The first trial is at the
            guesses of all parameters, and `auto`, `ei` and `gp-ucb` favour their neighbourhood until results say
            otherwise (not `auto` with a fidelity, or once a trial was pruned).
        next_guesses: where else it may lie, best first. The second trial is at the first of each parameter's next
            guesses, and so on; a parameter that has no more of them stays at its guess. What is favoured is the
            neighbourhood of the best of these trials.
    Raises:
        SpaceError: the range is not valid or too wide for a float, a logit scale has an end outside of (0, 1) or a
            step, a guess is not in the range, or there are next guesses without a guess.
    Example:
        >>> space = raybo.Space({"rate": raybo.Float(1e-5, 1, log=True, guess=1e-3)})
        >>> raybo.Searcher(space, seed=0).ask().config
        {'rate': 0.001}
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    scale: Scale = field(default="linear", kw_only=True)
    guess: float | None = field(default=None, kw_only=True)
    next_guesses: Sequence[float] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        _plain_numbers(self, float)
        if isinstance(self.scale, str) and self.scale == "log":
            object.__setattr__(self, "log", True)
        elif self.log is True and isinstance(self.scale, str) and self.scale == "linear":
            object.__setattr__(self, "scale", "log")
        self.check("Float")

    def __repr__(self) -> str:
        return _repr(self, ["scale='logit'"] * (self.scale == "logit"))

    def check(self, name: str) -> None:
        """Raise SpaceError, naming the parameter, if the range is not valid or the guess is not in it."""
        _check_log(name, self.log)
        one_of(self.scale, f"{name}: scale", get_args(Scale), SpaceError)
        if self.scale == "logit" and self.log:
            raise SpaceError(f"{name}: log=True and scale='logit' are two scales; give one")
        _check_range(name, self.low, self.high, self.log)
        if self.scale == "logit":
            if not (0.0 < self.low and self.high < 1.0):
                raise SpaceError(
                    f"{name}: a logit scale needs low above 0 and high below 1, got low={self.low}, high={self.high}"
                )
            if self.step is not None:
                raise SpaceError(f"{name}: a logit scale has no steps; use raybo.Ordinal for a list of values")
        if self.step is not None:
            finite_number(self.step, f"{name}: step", above=0, error=SpaceError)
            steps = (self.high - self.low) / self.step
            is_whole = math.isfinite(steps) and abs(steps - round(steps)) <= min(1e-6 * max(1.0, steps), 1e-3)
            if not is_whole or (self.low < self.high and round(steps) < 1):
                last = float(f"{self.low + math.floor(steps) * self.step:.12g}") if math.isfinite(steps) else self.low
                remedy = f"use high={last} or {float(f'{last + self.step:.12g}')}"
                raise SpaceError(
                    f"{name}: high must be low plus a whole number of steps, got low={self.low}, high={self.high}, "
                    f"step={self.step}; {remedy}"
                )
            _check_edges(self, name)
        check_guesses(self, name)

    @property
    def count(self) -> int | None:
        """Return the number of values; None if the parameter is continuous."""
        if self.low == self.high:
            return 1
        return None if self.step is None else round((self.high - self.low) / self.step) + 1

    @refusing(SpaceError, "accept takes a value and the parameter's name")
    def accept(self, value: object, name: str) -> float:
        """Return the value as it will be run; raise SpaceError if it is not one of this parameter's."""
        if not is_number(value):
            raise SpaceError(f"{shortened(name, 300)}: a number is needed, got {shown(value)}")
        number = float(value)
        below, above = 1e-9 * (self.low if self.log else self.high - self.low), 1e-9 * (self.high - self.low)
        if not self.low - below <= number <= self.high + above:
            raise SpaceError(f"{shortened(name, 300)}: {number} lies outside [{self.low}, {self.high}]")
        number = min(max(number, self.low), self.high)
        if self.step is not None and self.low < self.high:
            index = round((number - self.low) / self.step)
            nearest = float(_grid(self, np.array([index]))[0])
            if abs(nearest - number) > 1e-6 * self.step:
                steps = f"steps of {self.step} from {self.low}"
                raise SpaceError(f"{shortened(name, 300)}: {number} is not a whole number of {steps}")
            return nearest
        return number

    def encode(self, values: Sequence[Any]) -> Array:  # (n,)
        """Return the coordinates of values in [0, 1]."""
        if self.low == self.high:
            return np.full(len(values), MIDDLE)
        numbers = np.asarray(values, dtype=np.float64)
        if self.scale == "logit":
            low, high = _logit(np.array([self.low, self.high]))
            return np.asarray(np.clip((_logit(numbers) - low) / (high - low), 0.0, 1.0))
        return _to_unit(numbers, *_edges(self), log=self.log)

    def decode(self, u: Array) -> list[float]:  # (n,)
        """Return the values at the coordinates."""
        return cast("list[float]", self.numbers(u).tolist())

    def numbers(self, u: Array) -> Array:  # (n,) -> (n,)
        """Return the values at the coordinates as an array."""
        if self.low == self.high:
            return np.full(len(u), float(self.low))
        if self.scale == "logit":
            low, high = _logit(np.array([self.low, self.high]))
            numbers = 1.0 / (1.0 + np.exp(-(low + u * (high - low))))
        else:
            numbers = _from_unit(u, *_edges(self), log=self.log)
        if self.step is not None:
            numbers = _grid(self, np.round((np.clip(numbers, self.low, self.high) - self.low) / self.step))
        return np.asarray(np.clip(numbers, self.low, self.high))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON description, which `Space.from_json` reads."""
        description = {"type": "float", "low": self.low, "high": self.high, "log": self.log, "step": self.step}
        return description | ({"scale": "logit"} if self.scale == "logit" else {}) | self.guesses_to_json()

    def level_index(self, u: Array) -> NDArray[np.int64]:  # (n,)
        """Return the indices of the values at the coordinates; for stepped and constant parameters only."""
        if self.count == 1:
            return np.zeros(len(u), dtype=np.int64)
        numbers = np.clip(_from_unit(u, *_edges(self), log=self.log), self.low, self.high)
        return np.round((numbers - self.low) / cast(float, self.step)).astype(np.int64)

    def levels(self) -> Array | None:
        """Return the ascending coordinates of the values; None if there are too many to list."""
        count = self.count
        if count is None or count > LISTED_LEVELS:
            return None
        if count == 1:
            return np.array([MIDDLE])
        return self.encode(_grid(self, np.arange(count, dtype=np.float64)).tolist())


@dataclass(frozen=True, repr=False)
class Integer(_Number):
    """A whole number in [low, high], both included; `log` for a logarithmic scale, `step` for every step-th number.

    If low equals high, it is a constant.

    Attributes:
        low: the lowest value, a whole number.
        high: the highest, a whole number from `low`.
        log: True for a logarithmic scale, which needs `low` above 0.
        step: a whole number from 1; `high` must be `low` plus a whole number of steps.
        guess, next_guesses: where you believe the best value lies, as in `Float`: `Integer(1, 12, guess=3)`.
    Raises:
        SpaceError: the range is not valid or too wide for a float, a guess is not in it, or there are next guesses
            without a guess.
    Example:
        >>> searcher = raybo.Searcher({"depth": raybo.Integer(1, 9, step=4)}, "random", seed=0)
        >>> sorted({trial.config["depth"] for trial in searcher.ask(30)})
        [1, 5, 9]
    """

    low: int
    high: int
    log: bool = False
    step: int = 1
    guess: int | None = field(default=None, kw_only=True)
    next_guesses: Sequence[int] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        _plain_numbers(self, int)
        self.check("Integer")

    def __repr__(self) -> str:
        return _repr(self)

    def check(self, name: str) -> None:
        """Raise SpaceError, naming the parameter, if the range is not valid."""
        _check_log(name, self.log)
        for which, value in (("low", self.low), ("high", self.high), ("step", self.step)):
            if not is_number(value) or value != int(value):
                raise SpaceError(f"{name}: {which} must be a whole number, got {which}={shown(value)}")
        _check_range(name, self.low, self.high, self.log)
        if self.step < 1:
            raise SpaceError(f"{name}: step must be a positive number, got step={shown(self.step)}")
        _check_edges(self, name)
        if beyond := (self.high - self.low) % self.step:
            raise SpaceError(
                f"{name}: high must be low plus a whole number of steps, got low={self.low}, high={self.high}, "
                f"step={self.step}; use high={self.high - beyond} or {self.high - beyond + self.step}"
            )
        check_guesses(self, name)

    @property
    def count(self) -> int:
        """Return the number of values."""
        return (self.high - self.low) // self.step + 1

    @refusing(SpaceError, "accept takes a value and the parameter's name")
    def accept(self, value: object, name: str) -> int:
        """Return the value as it will be run; raise SpaceError if it is not one of this parameter's."""
        if not is_number(value) or value != int(value):
            raise SpaceError(f"{shortened(name, 300)}: a whole number is needed, got {shown(value)}")
        number = int(value)
        if not self.low <= number <= self.high:
            raise SpaceError(f"{shortened(name, 300)}: {number} lies outside [{self.low}, {self.high}]")
        if (number - self.low) % self.step:
            steps = f"steps of {self.step} from {self.low}"
            raise SpaceError(f"{shortened(name, 300)}: {number} is not a whole number of {steps}")
        return number

    def encode(self, values: Sequence[Any]) -> Array:  # (n,)
        """Return the coordinates of values in [0, 1]."""
        if self.log and self.count > 1:
            return _to_unit(np.asarray(values, dtype=np.float64), *_edges(self), log=True)
        index = np.array([(int(value) - self.low) // self.step for value in values], dtype=np.float64)
        return (index + 0.5) / self.count

    def decode(self, u: Array) -> list[int]:  # (n,)
        """Return the values at the coordinates."""
        # the float nearest to a huge count may lie above it
        return [self.low + self.step * min(int(i), self.count - 1) for i in self.index(u).tolist()]

    def index(self, u: Array) -> Array:  # (n,)
        """Return the indices, from 0, of the values at the coordinates, as floats."""
        if self.log:
            numbers = _from_unit(u, *_edges(self), log=True)
            return np.clip(np.round((numbers - self.low) / self.step), 0.0, self.count - 1.0)
        return np.clip(np.floor(u * self.count), 0.0, self.count - 1.0)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON description, which `Space.from_json` reads."""
        description = {"type": "integer", "low": self.low, "high": self.high, "log": self.log, "step": self.step}
        return description | self.guesses_to_json()

    def numbers(self, u: Array) -> Array:  # (n,) -> (n,)
        """Return the values at the coordinates as an array."""
        return self.low + self.step * self.index(u)

    def level_index(self, u: Array) -> NDArray[np.int64]:  # (n,)
        """Return the indices of the values at the coordinates, of at most LISTED_LEVELS."""
        return self.index(u).astype(np.int64)

    def levels(self) -> Array | None:
        """Return the ascending coordinates of the values; None if there are too many to list."""
        if self.count > LISTED_LEVELS:
            return None
        return np.array([MIDDLE]) if self.count == 1 else self.encode(range(self.low, self.high + 1, self.step))


def named(error: SpaceError, name: str) -> SpaceError:
    """Return the refusal of a parameter with its name in place of its class."""
    kind, _, why = str(error).partition(": ")
    return SpaceError(f"{name}: {why}") if kind in ("Float", "Integer", "Categorical", "Ordinal") else error


# ---- numbers and their axes


def _logit(values: Array) -> Array:
    return np.asarray(np.log(values) - np.log1p(-values))


def _repr(parameter: Float | Integer, more: Sequence[str] = ()) -> str:
    """Return a parameter as its user would write it; fields newer than 0.1 only if they are given."""
    fields = [f"{name}={getattr(parameter, name)!r}" for name in ("low", "high", "log", "step")]
    guesses = [f"{name}={value!r}" for name, value in parameter.guesses_to_json().items()]
    return f"{type(parameter).__name__}({', '.join([*fields, *more, *guesses])})"


def _plain_numbers(parameter: Float | Integer, kind: type) -> None:
    """Turn numpy's numbers, and 1.0 for 1, into plain numbers if nothing is lost."""
    for name in ("low", "high", "step", "guess"):
        object.__setattr__(parameter, name, _plain(getattr(parameter, name), kind))
    plain_guesses(parameter)
    if isinstance(parameter.next_guesses, tuple):
        object.__setattr__(parameter, "next_guesses", tuple(_plain(guess, kind) for guess in parameter.next_guesses))
    if isinstance(parameter.log, np.bool_):
        object.__setattr__(parameter, "log", bool(parameter.log))


def _plain(value: Any, kind: type) -> Any:
    return kind(value) if is_number(value) and kind(value) == value else value


def _check_log(name: str, log: object) -> None:
    """Refuse a `log` that is not a bool: a step passed in its place would silently change the scale."""
    if not isinstance(log, bool):
        raise SpaceError(f"{name}: log must be True or False, got log={shown(log)}; a step is given as step=...")


def _check_range(name: str, low: float, high: float, log: bool) -> None:
    for which, value in (("low", low), ("high", high)):
        finite_number(value, f"{name}: {which}", error=SpaceError)
    if low > high:
        raise SpaceError(f"{name}: low must be below high, got low={low}, high={high}")
    if not math.isfinite(float(high) - float(low)):
        raise SpaceError(f"{name}: the range is too wide for a 64-bit float, got low={low}, high={high}")
    if log and low <= 0:
        raise SpaceError(f"{name}: a logarithmic scale needs low above 0, got low={low}")
    if log and not float(high) / float(low) < math.inf:
        raise SpaceError(f"{name}: the range is too wide for a 64-bit float, got low={low}, high={high} on a log scale")


def _check_edges(parameter: Float | Integer, name: str) -> None:
    """Check that half a step beyond either end is still a float."""
    half = float(cast(float, parameter.step)) / 2
    low, high = float(parameter.low) - half, float(parameter.high) + half
    if not math.isfinite(high - low) or (parameter.log and not high / max(low, float(parameter.low) / 2) < math.inf):
        raise SpaceError(
            f"{name}: the range is too wide for a 64-bit float, got low={shown(parameter.low)}, "
            f"high={shown(parameter.high)}, step={shown(parameter.step)}"
        )
    is_narrow = parameter.log and parameter.low < parameter.high and high < 2.0 * low
    if is_narrow and math.log(high / low) < LEAST_WIDTH * cast(int, parameter.count):
        raise SpaceError(
            f"{name}: a logarithmic scale cannot tell its values apart, got low={shown(parameter.low)}, "
            f"high={shown(parameter.high)}; use log=False"
        )


def _edges(parameter: Float | Integer) -> tuple[float, float]:
    """Return the ends of the axis: the range, extended by half a step so that every value owns an interval."""
    step = parameter.step
    if step is None:
        return parameter.low, parameter.high
    low = parameter.low - step / 2
    return (max(low, parameter.low / 2) if parameter.log else low), parameter.high + step / 2


def _to_unit(values: Array, low: float, high: float, *, log: bool) -> Array:
    u = np.log(values / low) / math.log(high / low) if log else (values - low) / (high - low)
    return np.clip(u, 0.0, 1.0)


def _from_unit(u: Array, low: float, high: float, *, log: bool) -> Array:
    return low * np.exp(u * math.log(high / low)) if log else low + u * (high - low)


def _grid(parameter: Float, index: Array) -> Array:
    """Return the index-th values of a stepped float, rounded to its declared decimals (0.3, not 0.30...04)."""
    places = max(0, *(-int(Decimal(str(v)).as_tuple().exponent) for v in (parameter.low, cast(float, parameter.step))))
    values = parameter.low + index * cast(float, parameter.step)
    if places + math.log10(max(abs(parameter.low), abs(parameter.high))) <= 15:  # as many digits as a float can keep
        values = np.round(values, places)
    return np.clip(values, parameter.low, parameter.high)
