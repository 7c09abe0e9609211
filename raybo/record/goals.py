"""Goals: metrics with their directions, and constraints. The one place that knows which of two values is better.

    Goal         the direction of one metric
    Constraint   a bound that a number has to keep
    Goals        a study's metrics and constraints

Below the searcher values are maximised, y = sign * value, and a constraint is a margin that must not be negative.
Whoever shows, compares or collects values in the user's sign asks here, and neither turns signs nor looks at the mode.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from raybo.common.arguments import a_name, by_name, is_number, one_of
from raybo.common.messages import shown

Array: TypeAlias = NDArray[np.float64]
Mode: TypeAlias = Literal["max", "min"]  # what is wanted of the value
Value = TypeVar("Value", float, Array)

MODES: Sequence[Mode] = ("max", "min")

MOST = 4  # metrics of a study
LOSSES = {"loss", "error", "rmse", "mse", "mae", "perplexity", "regret"}  # in a metric's name: smaller is better
NEGATED = {"neg", "negative", "minus"}
REACH = 1e150  # values further from 0 are as good or as bad as this for every model: squares and sums stay finite


def _number(value: object) -> float | None:
    """Return a reported number, which a journal keeps as text if it is infinite; None if the value is not a number."""
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, float) and math.isinf(value):
        return value
    return float(value) if is_number(value) else None


def within_reach(values: Value) -> Value:
    """Return values, or margins, as models take them: none further from 0 than 1e150; NaN stays."""
    if isinstance(values, float):
        return max(min(values, REACH), -REACH)  # in this order NaN stays
    return np.clip(values, -REACH, REACH)


@dataclass(frozen=True)
class Goal:
    """The direction of one metric.

    Attributes:
        mode: "max" or "min".
    """

    mode: Mode

    @property
    def larger_is_better(self) -> bool:
        """True if the metric is maximised."""
        return self.mode == "max"

    @property
    def sign(self) -> float:
        """+1 or -1: what turns a value into one that is maximised, and back."""
        return 1.0 if self.larger_is_better else -1.0

    def maximised(self, values: Value) -> Value:
        """Values as methods see them."""
        return self.sign * values

    def value_of(self, y: Value) -> Value:
        """Values in the user's sign, of those that methods see."""
        return self.sign * y

    def is_better(self, value: float, than: float) -> bool:
        """True if a value is strictly better than another."""
        return self.maximised(value) > self.maximised(than)

    def gap(self, value: Value, best: Value | float) -> Value:
        """By how much a value, or each of many, is worse than the best: a regret, never the zero with a sign."""
        return self.maximised(best - value) + 0.0

    def best_of(self, values: Array | Sequence[float]) -> float:
        """The best value."""
        return float(np.max(values) if self.larger_is_better else np.min(values))

    def worst_of(self, values: Array | Sequence[float]) -> float:
        """The worst value; those that are NaN do not count, and there must be one that is not."""
        return float(np.nanmin(values) if self.larger_is_better else np.nanmax(values))

    def best_so_far(self, values: Array) -> Array:  # (n,) -> (n,)
        """The best of the first 1, 2, ... values; NaN from the first NaN on."""
        return np.asarray((np.maximum if self.larger_is_better else np.minimum).accumulate(values))

    def best_first(self, values: Array | Sequence[float]) -> NDArray[np.intp]:  # (n,) -> (n,)
        """The order of the values, the earliest of equals first."""
        return np.argsort(-self.maximised(np.asarray(values, dtype=np.float64)), kind="stable")


@dataclass(frozen=True)
class Constraint:
    """A bound that a returned number has to keep.

    Attributes:
        name: of the number.
        is_upper: whether the number must not be above the bound; else not below it.
        bound: finite, in the user's units.
        at_every_step: whether it must hold in each report too, so that a trial ends with the first that breaks it.
    """

    name: str
    is_upper: bool
    bound: float
    at_every_step: bool = False

    @classmethod
    def read(cls, name: str, text: object) -> Constraint:
        """A constraint from "<= number" or ">= number", perhaps "at every step"; ValueError where it is neither."""
        match = _BOUND.fullmatch(text) if isinstance(text, str) else None
        try:
            bound = float(match[2]) if match else math.nan
        except ValueError:
            bound = math.nan
        if match is None or not math.isfinite(bound):
            more = " (with 'at every step' after it, if each report has to keep it)" if _speaks_of_steps(text) else ""
            raise ValueError(f"constraints: {name} must be '<= number' or '>= number'{more}, got {shown(text)}")
        return cls(name, match[1] == "<=", bound, match[3] is not None)

    @property
    def rule(self) -> str:
        """The bound as `read` takes it, exactly."""
        return f"{'<=' if self.is_upper else '>='} {self.bound!r}{self._when}"

    def margin(self, value: float) -> float:
        """Return the distance of a number from the bound, within reach; negative if it breaks it, NaN if it is NaN."""
        return within_reach(self.bound - value if self.is_upper else value - self.bound)

    def value_of(self, margin: Value) -> Value:
        """The number that has this margin."""
        return self.bound - margin if self.is_upper else margin + self.bound

    def broken_by(self, value: float) -> str:
        """In words, that a number breaks it, and by how much; empty where it keeps it."""
        margin = self.margin(value)
        by = f" by {-margin:.3g}" if math.isfinite(value) else ""
        return f"{self.name} {value:.6g} breaks {self}{by}" if is_broken(margin) else ""

    @property
    def _when(self) -> str:
        return " at every step" if self.at_every_step else ""

    def __str__(self) -> str:
        return f"{self.name} {'<=' if self.is_upper else '>='} {self.bound:g}{self._when}"


_BOUND = re.compile(r"\s*(<=|>=)\s*(\S+)(\s+at every step)?\s*")


def _speaks_of_steps(text: object) -> bool:
    return isinstance(text, str) and re.search(r"\b(step|report)", text) is not None


def is_broken(margin: float) -> bool:
    """True if a constraint with this margin is broken; a margin that is not known (NaN) breaks nothing."""
    return margin < 0.0


def are_kept(margins: Array) -> NDArray[np.bool_]:  # (n, c) -> (n,)
    """Return True for each row of margins that breaks no constraint."""
    return np.asarray((margins >= 0.0).all(axis=1), dtype=np.bool_)


@dataclass(frozen=True)
class Goals:
    """The goals of a study: one metric or several, and the constraints.

    Attributes:
        names: of the metrics, the first of which is a trial's `value`.
        modes: of each, "max" or "min".
        constraints: what else has to hold.
    """

    names: tuple[str, ...] = ("value",)
    modes: tuple[Mode, ...] = ("max",)
    constraints: tuple[Constraint, ...] = ()

    @classmethod
    def of(
        cls,
        metrics: Mapping[str, str] | None = None,
        constraints: Mapping[str, str] | None = None,
        *,
        metric: str | None = None,
        mode: Mode | None = None,
    ) -> Goals:
        """The goals that a user declares: `metrics`, of which one is as good as metric and mode, or metric and mode.

        With `metrics`, metric and mode may only repeat the first of them, or be "value" and "max", as None is.

        Raises:
            ValueError: there are no metrics or more than four, a name, a mode or a constraint is not one, or both ways
                are used; names it.
        """
        rules = {} if constraints is None else by_name(constraints, "constraints", "bounds by name", ValueError)
        bounds = tuple(Constraint.read(name, text) for name, text in rules.items())
        metric = "value" if metric is None else a_name(metric, "metric", ValueError)
        mode = "max" if mode is None else one_of(mode, "mode", MODES, ValueError)
        wanted = {metric: mode} if metrics is None else by_name(metrics, "metrics", "modes by name", ValueError)
        if not 1 <= len(wanted) <= MOST:
            raise ValueError(f"metrics must be 1 to {MOST} names with 'max' or 'min', got {len(wanted)}")
        modes = tuple(one_of(direction, f"metrics: {name}", MODES, ValueError) for name, direction in wanted.items())
        names = tuple(wanted)
        if metric not in ("value", names[0]) or mode not in ("max", modes[0]):
            raise ValueError("give metric and mode for one metric, or metrics for several, not both")
        return cls(names, modes, bounds)

    @property
    def doubtful(self) -> str:
        """Return the first metric that is maximised although its name says loss or error; empty if there is none."""
        for name, mode in zip(self.names, self.modes, strict=True):
            words = set(re.split(r"[^a-z]+", name.lower()))
            if mode == "max" and words & LOSSES and not words & NEGATED:
                return name
        return ""

    @property
    def k(self) -> int:
        """The number of metrics."""
        return len(self.names)

    @property
    def is_plain(self) -> bool:
        """True if it is one metric without constraints."""
        return self.k == 1 and not self.constraints

    @property
    def first(self) -> Goal:
        """The goal of the first metric."""
        return Goal(self.modes[0])

    @property
    def each(self) -> tuple[Goal, ...]:
        """The goals of the metrics, in order."""
        return tuple(Goal(mode) for mode in self.modes)

    @property
    def needed(self) -> tuple[str, ...]:
        """Names of the numbers that a trial must return: the metrics, then what is constrained."""
        return tuple(dict.fromkeys([*self.names, *(constraint.name for constraint in self.constraints)]))

    @property
    def metrics(self) -> dict[str, str] | None:
        """The metrics as `of` takes them; None where there is one."""
        return None if self.k == 1 else dict(zip(self.names, self.modes, strict=True))

    @property
    def rules(self) -> dict[str, str] | None:
        """The constraints as `of` takes them; None where there are none."""
        return {constraint.name: constraint.rule for constraint in self.constraints} or None

    def maximised(self, values: Mapping[str, float]) -> Array:  # (k,)
        """The metrics as methods see them."""
        return np.array([goal.maximised(values[name]) for name, goal in zip(self.names, self.each, strict=True)])

    def values_of(self, y: Array) -> dict[str, float]:  # (k,)
        """The metrics in the user's signs, of those that methods see."""
        return {name: float(goal.value_of(v)) for name, goal, v in zip(self.names, self.each, y, strict=True)}

    def margins(self, values: Mapping[str, float]) -> Array:  # (c,)
        """Return the distance of each constrained number from its bound; negative if it breaks it."""
        margins = [constraint.margin(values[constraint.name]) for constraint in self.constraints]
        return np.array(margins, dtype=np.float64)

    def known(self, reported: Mapping[str, object]) -> Array:  # (k + c,)
        """The metrics of a report as methods see them, and then the margins; NaN of what it does not tell."""
        told = {name: number for name, value in reported.items() if (number := _number(value)) is not None}
        finite = {name: number for name, number in told.items() if math.isfinite(number)}
        metrics = [goal.maximised(finite.get(name, np.nan)) for name, goal in zip(self.names, self.each, strict=True)]
        margins = [constraint.margin(told.get(constraint.name, np.nan)) for constraint in self.constraints]
        return np.array([*metrics, *margins], dtype=np.float64)

    def known_margins(self, reported: Mapping[str, object]) -> Array | None:  # (c,)
        """The margins of a report, NaN of what it does not tell or need not keep yet; None where that is all."""
        found = np.full(len(self.constraints), np.nan)
        for j, constraint in enumerate(self.constraints):
            if constraint.at_every_step and (number := _number(reported.get(constraint.name))) is not None:
                found[j] = constraint.margin(number)
        return None if np.isnan(found).all() else found

    def broken_by(self, reported: Mapping[str, object]) -> str:
        """In words, which constraints a report breaks that must hold at every step; empty where it breaks none."""
        return ", ".join(
            words
            for constraint in self.constraints
            if constraint.at_every_step
            and (number := _number(reported.get(constraint.name))) is not None
            and (words := constraint.broken_by(number))
        )

    def worst_margins(self, curves: Sequence[Sequence[tuple[int, float]]]) -> Array:  # (k + c) -> (c,)
        """By how much reports break constraints that must hold at every step, as margins; infinite if they do not.

        Args:
            curves: of each metric and then of each margin, as `Record.curves`.
        """
        worst = np.full(len(self.constraints), np.inf)
        for j, constraint in enumerate(self.constraints):
            if constraint.at_every_step and curves:
                margin = min((margin for _, margin in curves[self.k + j]), default=0.0)
                worst[j] = margin if is_broken(margin) else np.inf
        return worst

    def violations(self, margins: Array) -> dict[str, float]:  # (c,)
        """By how much constraints with these margins are broken, by name; only those that are."""
        names = (constraint.name for constraint in self.constraints)
        return {name: -margin for name, margin in zip(names, margins.tolist(), strict=True) if is_broken(margin)}

    def __str__(self) -> str:
        wanted = ", ".join(f"{mode} {name}" for name, mode in zip(self.names, self.modes, strict=True))
        return f"{wanted}{' with ' if self.constraints else ''}{', '.join(map(str, self.constraints))}"
