"""The frame of a figure's values: an axis that a few far worse ones do not stretch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybo.common.messages import counted
from raybo.record.goals import Goal
from raybo.space import Array

FAR = 6.0  # interquartile ranges below the middle half: values beyond are left outside the frame
DECADES = 2.0  # of positive, minimised values, above which their axis is logarithmic
MARKED = " Triangles at the edge are values far worse than the frame."  # of a caption
INSIDE = 0.02  # of the axis, by which marks of values outside are within the frame


@dataclass(frozen=True, eq=False)
class Frame:
    """The axis of a metric's values.

    Attributes:
        low, high: its ends, log10 if it is logarithmic.
        is_log: true if equal ratios are equally far apart.
        is_outside: (n,), which values are far worse than the frame.
        larger_is_better: true if the metric is maximised.
    """

    low: float
    high: float
    is_log: bool
    is_outside: NDArray[np.bool_]
    larger_is_better: bool

    @classmethod
    def of(cls, goal: Goal, values: Array, *, inside: Array | None = None) -> Frame:
        """Return the frame of the values (n,), all of which may be equal or none known.

        Args:
            goal: the metric's.
            values: of the trials.
            inside: values among them, such as those of a front, that are outside only if they are far worse than the
                others of these, too.
        """
        if len(values) == 0:
            return cls(0.0, 1.0, False, np.zeros(0, dtype=bool), goal.larger_is_better)
        is_log = is_logarithmic(goal, values)
        frame = cls._of(goal, values, inside, is_log)
        if is_log and not is_logarithmic(goal, values[~frame.is_outside]):  # but for what the frame leaves out
            return cls._of(goal, values, inside, False)
        return frame

    @classmethod
    def _of(cls, goal: Goal, values: Array, inside: Array | None, is_log: bool) -> Frame:
        at = np.log10(values) if is_log else values
        low, high = _ends(goal, at)
        if inside is not None and len(inside):
            ends = _ends(goal, np.log10(inside) if is_log else inside)
            low, high = min(low, ends[0]), max(high, ends[1])
        margin = 0.06 * (high - low) or 0.05 * max(abs(high), 1e-12)
        return cls(low - 1.5 * margin, high + margin, is_log, (at < low) | (at > high), goal.larger_is_better)

    @property
    def ends(self) -> tuple[float, float]:
        """The ends in the metric's units."""
        return (10.0**self.low, 10.0**self.high) if self.is_log else (self.low, self.high)

    @property
    def foot(self) -> float:
        """A place just above the lower end, in the metric's units: for trials without a value."""
        return self._at(INSIDE)

    @property
    def worst(self) -> float:
        """A place just within the worse end, in the metric's units: for values outside."""
        return self._at(2.5 * INSIDE if self.larger_is_better else 1.0 - INSIDE)

    @property
    def symbol(self) -> str:
        """Return plotly's mark that points to where values outside are, if the axis is vertical."""
        return "triangle-down" if self.larger_is_better else "triangle-up"

    @property
    def symbol_across(self) -> str:
        """Return plotly's mark that points to where values outside are, if the axis is horizontal."""
        return "triangle-left" if self.larger_is_better else "triangle-right"

    @property
    def layout(self) -> dict[str, Any]:
        """plotly's settings of the axis."""
        decades = {"dtick": 1, "exponentformat": "power"} if self.high - self.low > 1.5 else {}
        kind = {"type": "log", **decades} if self.is_log else {"type": "linear"}
        return {"range": [self.low, self.high], **kind}

    @property
    def note(self) -> str:
        """A sentence of a caption about the values outside; empty if there are none."""
        count = int(self.is_outside.sum())
        if not count:
            return ""
        return f" {counted(count, 'far worse value')} {'is' if count == 1 else 'are'} outside the frame."

    def _at(self, share: float) -> float:
        at = self.low + share * (self.high - self.low)
        return 10.0**at if self.is_log else at


def _ends(goal: Goal, at: Array) -> tuple[float, float]:
    """Return the least and the greatest of some values but for those that are far worse than the others."""
    first, third = np.quantile(at, [0.25, 0.75])
    reach = FAR * (third - first)
    low, high = float(at.min()), float(at.max())
    if reach > 0.0 and math.isfinite(reach):
        if goal.larger_is_better:
            low = float(at[at >= first - reach].min())
        else:
            high = float(at[at <= third + reach].max())
    return low, high


def is_logarithmic(goal: Goal, values: Array) -> bool:
    """True if the axis of a metric is logarithmic: positive values are minimised over more than two decades."""
    return not goal.larger_is_better and bool(values.min() > 0.0) and values.max() / values.min() > 10.0**DECADES


def colour_range(goal: Goal, values: Array) -> tuple[float, float]:
    """Return the ends of a scale of colours for a map of values, NaN ignored: a far worse corner does not take it all.

    The worse end is at most 2.5 times as far from the best value as the median is; beyond it the colour stays the same.
    """
    y = goal.maximised(values[~np.isnan(values)])
    best, middle, worst = float(y.max()), float(np.median(y)), float(y.min())
    if middle < best:
        worst = max(worst, best - 2.5 * (best - middle))
    ends = goal.value_of(worst), goal.value_of(best)
    return min(ends), max(ends)
