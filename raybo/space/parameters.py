"""The kinds of parameter: their values, and the axis of [0, 1] that each fills.

A float's axis is its range, linear or logarithmic. A value of an integer, a stepped float or a categorical parameter
owns an interval of its axis and is represented by its own coordinate inside that interval, so uniform coordinates give
uniform values. The only value of a parameter with one value owns the whole axis, and is represented by the middle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from raybo.common.arguments import finite_number, is_number, one_of
from raybo.common.errors import SpaceError
from raybo.common.messages import shown
from raybo.space.objects import equal, identical, object_to_json, same

Array: TypeAlias = NDArray[np.float64]
Scale: TypeAlias = Literal["linear", "log", "logit"]

LISTED_LEVELS = 1_000  # an axis with more runnable points than this is searched as if it were continuous, then snapped
LEAST_WIDTH = 16 * float(np.finfo(np.float64).eps)  # of a value on a logarithmic axis of a narrow range
MIDDLE = 0.5  # of its axis: where the only value of a parameter lies


class _Unsaid(Enum):
    """Stands for a guess that nobody made, as None may be a choice."""

    UNSAID = "unsaid"


UNSAID = _Unsaid.UNSAID


@dataclass(frozen=True, repr=False)
class Float:
    """A real number in [low, high]; `log` for a logarithmic scale, `step` for the values low, low + step, ..., high.

    If low equals high, it is a constant.

    Attributes:
        scale: "linear"; "log", the same as `log=True`; or "logit", log(v / (1 - v)), for a share or a discount, where
            0.99 and 0.999 differ as much as 0.9 and 0.99 do: `Float(0.5, 0.9999, scale="logit")`.
        guess: where you believe the best value lies: `Float(1e-5, 1, log=True, guess=1e-3)`. The first trial is at the
            guesses of all parameters, and `auto`, `ei` and `gp-ucb` favour their neighbourhood until results say
            otherwise.
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

    def __post_init__(self) -> None:
        _plain_numbers(self, float)
        if isinstance(self.scale, str) and self.scale == "log":
            object.__setattr__(self, "log", True)
        elif self.log is True and isinstance(self.scale, str) and self.scale == "linear":
            object.__setattr__(self, "scale", "log")

    def __repr__(self) -> str:
        return _told(self, logit=self.scale == "logit")

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
            is_whole = math.isfinite(steps) and abs(steps - round(steps)) <= 1e-6 * max(1.0, steps)
            if not is_whole or (self.low < self.high and round(steps) < 1):
                last = float(f"{self.low + math.floor(steps) * self.step:.12g}") if math.isfinite(steps) else self.low
                remedy = f"use high={last} or {float(f'{last + self.step:.12g}')}"
                raise SpaceError(
                    f"{name}: high must be low plus a whole number of steps, got low={self.low}, high={self.high}, "
                    f"step={self.step}; {remedy}"
                )
            _check_edges(self, name)
        _check_guess(self, name)

    @property
    def count(self) -> int | None:
        """How many values it has; None for a continuum."""
        if self.low == self.high:
            return 1
        return None if self.step is None else round((self.high - self.low) / self.step) + 1

    def accept(self, value: object, name: str) -> float:
        """The value as it will be run; SpaceError where it is not one of this parameter's."""
        if not is_number(value):
            raise SpaceError(f"{name}: a number is needed, got {shown(value)}")
        number = float(value)
        below, above = 1e-9 * (self.low if self.log else self.high - self.low), 1e-9 * (self.high - self.low)
        if not self.low - below <= number <= self.high + above:
            raise SpaceError(f"{name}: {number} lies outside [{self.low}, {self.high}]")
        number = min(max(number, self.low), self.high)
        if self.step is not None and self.low < self.high:
            index = round((number - self.low) / self.step)
            nearest = float(_grid(self, np.array([index]))[0])
            if abs(nearest - number) > 1e-6 * self.step:
                raise SpaceError(f"{name}: {number} is not a whole number of steps of {self.step} from {self.low}")
            return nearest
        return number

    def encode(self, values: Sequence[Any]) -> Array:  # (n,)
        """Coordinates of values in [0, 1]."""
        if self.low == self.high:
            return np.full(len(values), MIDDLE)
        numbers = np.asarray(values, dtype=np.float64)
        if self.scale == "logit":
            low, high = _logit(np.array([self.low, self.high]))
            return np.asarray(np.clip((_logit(numbers) - low) / (high - low), 0.0, 1.0))
        return _to_unit(numbers, *_edges(self), log=self.log)

    def decode(self, u: Array) -> list[float]:  # (n,)
        """The values that the coordinates stand for."""
        return cast("list[float]", self.numbers(u).tolist())

    def numbers(self, u: Array) -> Array:  # (n,) -> (n,)
        """The same as `decode`, as an array."""
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
        """A plain description, read back by `Space.from_json`."""
        told = {"type": "float", "low": self.low, "high": self.high, "log": self.log, "step": self.step}
        return told | ({"scale": "logit"} if self.scale == "logit" else {}) | _guess_to_json(self.guess)


@dataclass(frozen=True, repr=False)
class Integer:
    """A whole number in [low, high], both included; `log` for a logarithmic scale, `step` for every step-th number.

    If low equals high, it is a constant.

    Attributes:
        guess: where you believe the best value lies, as in `Float`: `Integer(1, 12, guess=3)`.
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

    def __post_init__(self) -> None:
        _plain_numbers(self, int)

    def __repr__(self) -> str:
        return _told(self)

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
        _check_guess(self, name)

    @property
    def count(self) -> int:
        """How many values it has."""
        return (self.high - self.low) // self.step + 1

    def accept(self, value: object, name: str) -> int:
        """The value as it will be run; SpaceError where it is not one of this parameter's."""
        if not is_number(value) or value != int(value):
            raise SpaceError(f"{name}: a whole number is needed, got {shown(value)}")
        number = int(value)
        if not self.low <= number <= self.high:
            raise SpaceError(f"{name}: {number} lies outside [{self.low}, {self.high}]")
        if (number - self.low) % self.step:
            raise SpaceError(f"{name}: {number} is not a whole number of steps of {self.step} from {self.low}")
        return number

    def encode(self, values: Sequence[Any]) -> Array:  # (n,)
        """Coordinates of values in [0, 1]."""
        if self.log and self.count > 1:
            return _to_unit(np.asarray(values, dtype=np.float64), *_edges(self), log=True)
        index = np.array([(int(value) - self.low) // self.step for value in values], dtype=np.float64)
        return (index + 0.5) / self.count

    def decode(self, u: Array) -> list[int]:  # (n,)
        """The values that the coordinates stand for."""
        # the float nearest to a huge count may lie above it
        return [self.low + self.step * min(int(i), self.count - 1) for i in self.index(u).tolist()]

    def index(self, u: Array) -> Array:  # (n,)
        """Which of the values the coordinates stand for, counted from 0; whole numbers, however large."""
        if self.log:
            numbers = _from_unit(u, *_edges(self), log=True)
            return np.clip(np.round((numbers - self.low) / self.step), 0.0, self.count - 1.0)
        return np.clip(np.floor(u * self.count), 0.0, self.count - 1.0)

    def to_json(self) -> dict[str, Any]:
        """A plain description, read back by `Space.from_json`."""
        told = {"type": "integer", "low": self.low, "high": self.high, "log": self.log, "step": self.step}
        return told | _guess_to_json(self.guess)


@dataclass(frozen=True, repr=False)
class Categorical:
    """One of the given choices, which may be any objects and have no order.

    Attributes:
        choices: the values.
        guess: the one that you believe to be best, as in `Float`: `Categorical(["rbf", "linear"], guess="rbf")`.
    Example:
        >>> searcher = raybo.Searcher({"loss": raybo.Categorical(["l1", "l2"])}, "random", seed=0)
        >>> sorted({trial.config["loss"] for trial in searcher.ask(20)})
        ['l1', 'l2']
    """

    choices: Sequence[Any]
    guess: Any = field(default=UNSAID, kw_only=True)

    def __repr__(self) -> str:
        return _told(self)

    def check(self, name: str) -> None:
        """Raise SpaceError, naming the parameter, if the choices are not a sequence of different objects."""
        if isinstance(self.choices, (str, bytes)) or not isinstance(self.choices, Sequence):
            raise SpaceError(f"{name}: choices must be a list, got {shown(self.choices)}")
        if len(self.choices) == 0:
            raise SpaceError(f"{name}: a choice needs at least one value, got an empty list")
        for i, choice in enumerate(self.choices):
            if any(same(choice, earlier) for earlier in self.choices[:i]):
                raise SpaceError(f"{name}: each choice may be given once, got {shown(choice)} twice")
        _check_guess(self, name)

    @property
    def count(self) -> int:
        """How many choices there are."""
        return len(self.choices)

    def position(self, value: object, name: str) -> int:
        """The value's position among the choices; SpaceError if it is not one of them."""
        for agree in (identical, same, equal):
            for i, choice in enumerate(self.choices):
                if agree(choice, value):
                    return i
        raise SpaceError(f"{name}: {shown(value)} is not one of {shown(list(self.choices))}")

    def accept(self, value: object, name: str) -> Any:
        """The choice as it was declared; SpaceError if the value is not one."""
        return self.choices[self.position(value, name)]

    def encode(self, values: Sequence[Any]) -> Array:  # (n,)
        """Coordinates of values in [0, 1]: the middle of the interval that each choice owns."""
        positions = np.array([self.position(value, "choice") for value in values], dtype=np.float64)
        return (positions + 0.5) / len(self.choices)

    def positions(self, u: Array) -> list[int]:  # (n,)
        """The positions that the coordinates stand for."""
        k = len(self.choices)
        return cast("list[int]", np.clip(np.floor(u * k), 0, k - 1).astype(np.int64).tolist())

    def decode(self, u: Array) -> list[Any]:  # (n,)
        """The choices that the coordinates stand for."""
        return [self.choices[i] for i in self.positions(u)]

    def to_json(self) -> dict[str, Any]:
        """A plain description; a choice that JSON cannot hold is described by its `repr` alone."""
        told = {"type": "categorical", "choices": [object_to_json(choice) for choice in self.choices]}
        return told | self.guess_to_json()

    def guess_to_json(self) -> dict[str, Any]:
        """The guess as a choice's position; empty if there is no guess."""
        return _guess_to_json(None if self.guess is UNSAID else self.position(self.guess, "guess"))


@dataclass(frozen=True, repr=False)
class Ordinal(Categorical):
    """One of the given values, which are in order: neighbours are taken to be alike, whatever the values are.

    `Ordinal([8, 16, 32, 64])`, `Ordinal(["small", "medium", "large"], guess="small")`. Each value takes up the same
    share of one axis; a rule may compare values with `<`.

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
        """A plain description, as a choice's."""
        return {**super().to_json(), "type": "ordinal"}


Parameter: TypeAlias = Float | Integer | Categorical


def levels_of(parameter: Parameter) -> Array | None:
    """Ascending coordinates of its values; None for a continuum, and for more than LISTED_LEVELS of them."""
    count = parameter.count
    if count is None or count > LISTED_LEVELS:
        return None
    if count == 1:
        return np.array([MIDDLE])
    if isinstance(parameter, Categorical):
        return (np.arange(count) + 0.5) / count
    if isinstance(parameter, Integer):
        return parameter.encode([parameter.low + parameter.step * i for i in range(count)])
    return parameter.encode(_grid(parameter, np.arange(count, dtype=np.float64)).tolist())


def level_index(parameter: Parameter, u: Array) -> NDArray[np.int64]:
    """Which of the listed levels the coordinates stand for; agrees with `decode`."""
    if isinstance(parameter, Categorical):
        k = len(parameter.choices)
        return np.clip(np.floor(u * k), 0, k - 1).astype(np.int64)
    if isinstance(parameter, Integer):
        return parameter.index(u).astype(np.int64)
    if parameter.count == 1:
        return np.zeros(len(u), dtype=np.int64)
    numbers = np.clip(_from_unit(u, *_edges(parameter), log=parameter.log), parameter.low, parameter.high)
    return np.round((numbers - parameter.low) / cast(float, parameter.step)).astype(np.int64)


# ---- numbers and their axes


def _logit(values: Array) -> Array:
    return np.asarray(np.log(values) - np.log1p(-values))


def _told(parameter: Parameter, *, logit: bool = False) -> str:
    """A parameter as its user would write it: what was added after 0.1 only where it is given."""
    names = ("choices",) if isinstance(parameter, Categorical) else ("low", "high", "log", "step")
    told = [f"{name}={getattr(parameter, name)!r}" for name in names] + ["scale='logit'"] * logit
    if has_guess(parameter):
        told.append(f"guess={parameter.guess!r}")
    kind = type(parameter).__name__
    return f"{kind}({', '.join(told)})"


def has_guess(parameter: Parameter) -> bool:
    """Whether its user has said where the best may lie."""
    return parameter.guess is not (UNSAID if isinstance(parameter, Categorical) else None)


def _check_guess(parameter: Parameter, name: str) -> None:
    if has_guess(parameter):
        try:
            parameter.accept(parameter.guess, name)
        except SpaceError as error:
            raise SpaceError(f"{error}; a guess must be one of its values") from None


def _guess_to_json(guess: Any) -> dict[str, Any]:
    return {} if guess is None else {"guess": guess}


def _plain_numbers(parameter: Float | Integer, kind: type) -> None:
    """Turn what the range was given in (numpy's numbers, 1.0 for 1) into plain numbers, where nothing is lost."""
    for name in ("low", "high", "step", "guess"):
        value = getattr(parameter, name)
        if is_number(value) and kind(value) == value:
            object.__setattr__(parameter, name, kind(value))
    if isinstance(parameter.log, np.bool_):
        object.__setattr__(parameter, "log", bool(parameter.log))


def _check_log(name: str, log: object) -> None:
    """SpaceError where `log` is no truth value, as a step in its place would be, and silently change the scale."""
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
    """Half a step beyond the range there must be numbers, too."""
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
    """The ends of the axis: the range itself, or half a step beyond it so that every value owns an interval."""
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
    """The index-th values of a stepped float, rounded to the decimals in which it was declared (0.3, not 0.30...04)."""
    places = max(0, *(-int(Decimal(str(v)).as_tuple().exponent) for v in (parameter.low, cast(float, parameter.step))))
    values = parameter.low + index * cast(float, parameter.step)
    if places + math.log10(max(abs(parameter.low), abs(parameter.high))) <= 15:  # as many digits as a float can keep
        values = np.round(values, places)
    return np.clip(values, parameter.low, parameter.high)
