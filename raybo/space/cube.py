"""The unit cube as a space fills it: what methods, surrogates and solvers know of the user's parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from raybo.space.parameters import Array, Categorical, Parameter, level_index, levels_of


class Cube:
    """A space as the methods see it: the unit cube, one axis a parameter.

    Attributes:
        d: number of axes.
        categorical: per axis, whether only equality of coordinates has meaning.
        levels: per axis, the ascending coordinates that can be run, or None for a continuum (and for an axis of more
            than 1,000 values, which is searched like one).
        conditions: per axis, the axis and the position of the choice that opens it, or None where it is always open.
        rest: (d,), the coordinates, about the middle, that stand for the axes that are not open.
    """

    def __init__(self, parameters: Sequence[Parameter], conditions: Sequence[tuple[int, int] | None] = ()) -> None:
        self._parameters = tuple(parameters)
        self.d = len(self._parameters)
        self.categorical = tuple(isinstance(parameter, Categorical) for parameter in self._parameters)
        self.levels = tuple(levels_of(parameter) for parameter in self._parameters)
        self._stepped = [i for i, parameter in enumerate(self._parameters) if parameter.count is not None]
        self.conditions = tuple(conditions) or (None,) * self.d
        self.rest: Array = self._snap_each(np.full((1, self.d), 0.5))[0]

    def snap(self, X: Array) -> Array:  # (m, d) -> (m, d)
        """The runnable points nearest to the rows of X, which may lie anywhere; a fixed point of itself."""
        snapped = self._snap_each(X)
        opened: dict[int, NDArray[np.bool_]] = {}
        for i, condition in enumerate(self.conditions):  # a choice comes before what it opens
            if condition is None:
                continue
            axis, position = condition
            chosen = level_index(self._parameters[axis], snapped[:, axis]) == position
            opened[i] = chosen & opened[axis] if axis in opened else chosen
            snapped[~opened[i], i] = self.rest[i]
        return snapped

    def _snap_each(self, X: Array) -> Array:  # (m, d) -> (m, d), axis by axis
        snapped = np.clip(np.asarray(X, dtype=np.float64), 0.0, 1.0)
        for i in self._stepped:
            parameter, levels = self._parameters[i], self.levels[i]
            if levels is None:
                snapped[:, i] = parameter.encode(parameter.decode(snapped[:, i]))
            else:
                snapped[:, i] = levels[level_index(parameter, snapped[:, i])]
        return snapped

    @cached_property
    def size(self) -> float:
        """How many different points can be run; infinite with a continuous axis."""
        return self._count(None)

    def _count(self, opened_by: tuple[int, int] | None) -> float:
        """How many ways there are to set the axes that a choice opens."""
        axes = [i for i, condition in enumerate(self.conditions) if condition == opened_by]
        return math.prod(self._count_axis(i) for i in axes)

    def _count_axis(self, i: int) -> float:
        count = self._parameters[i].count
        if count is None:
            return math.inf
        if not any(condition is not None and condition[0] == i for condition in self.conditions):
            return count
        return sum(self._count((i, k)) for k in range(count))
