"""Values at early steps in the units of the last: what curves came to that were there and went on.

Curves rise, and lie closer together the further they are, so that values at different steps cannot be compared as they
are. For every step a line takes the values there to the ends. The last step's comes first, and each is fitted by least
squares to the curves that were seen further: their value at that step, and their end, or what the line of their own
last step says of it. Where few went on, a line is drawn to the one of the next step with curves beyond it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from raybo.space import Array

PULL = 0.4  # squared deviations of values, in standard units, that a line's slope is drawn to the next one's with
LEAST_SLOPE = 0.05  # that of a line, so that none turns the order round


@dataclass(frozen=True)
class Line:
    """level + slope * value."""

    level: float = 0.0
    slope: float = 1.0

    def at(self, y: Array) -> Array:  # (n,) -> (n,)
        """What values come to."""
        return self.level + self.slope * y

    def fitted(self, y: Array, ends: Array) -> Line:  # (n,), (n,)
        """The one through such pairs, n >= 1, with a slope near this one's as far as they leave it open."""
        centred = y - y.mean()
        slope = self.slope + float(centred @ (ends - self.slope * y)) / (float(centred @ centred) + PULL)
        slope = max(slope, LEAST_SLOPE)
        return Line(float(np.mean(ends - slope * y)), slope)


@dataclass(frozen=True, eq=False)
class Seen:
    """What has been seen of a curve.

    Attributes:
        steps: going up. values: (n,), at each of them, in standard units. end: the value of the whole; None while it
            is not known.
    """

    steps: Sequence[int]
    values: Array
    end: float | None


def lines(curves: Sequence[Seen], steps: Iterable[int]) -> dict[int, Line]:
    """A line for each of these steps, which must hold the last one of every curve that has no end.

    Args:
        curves: in any order.
        steps: some of theirs.
    """
    ends = np.array([np.nan if curve.end is None else curve.end for curve in curves])
    last = np.array([0 if curve.end is not None or not curve.steps else curve.steps[-1] for curve in curves])
    found, line = dict[int, Line](), Line()
    for step in sorted(set(steps), reverse=True):
        pairs = [
            (curves[i].values[place - 1], ends[i])
            for i in np.flatnonzero((last == 0) | (last > step)).tolist()
            if (place := bisect_right(curves[i].steps, step)) > 0
        ]
        if pairs:
            y, known = np.array(pairs).T
            line = line.fitted(y, known)
        found[step] = line
        for i in np.flatnonzero(last == step).tolist():
            ends[i] = line.at(curves[i].values[-1:])[0]
    return found
