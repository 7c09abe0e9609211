"""The unit cube as a space fills it: what methods, surrogates and solvers know of the user's parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from raybo.space.parameters import Array, Categorical, Parameter, level_index, levels_of


class Cube:
    """A space as the methods see it: the unit cube, one axis a parameter.

    Attributes:
        d: number of axes.
        categorical: per axis, whether only equality of coordinates has meaning.
        levels: per axis, the ascending coordinates that can be run, or None for a continuum (and for an axis of more
            than 1,000 values, which is searched like one).
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._parameters = tuple(parameters)
        self.d = len(self._parameters)
        self.categorical = tuple(isinstance(parameter, Categorical) for parameter in self._parameters)
        self.levels = tuple(levels_of(parameter) for parameter in self._parameters)
        self._stepped = [i for i, parameter in enumerate(self._parameters) if parameter.count is not None]

    def snap(self, X: Array) -> Array:  # (m, d) -> (m, d)
        """The runnable points nearest to the rows of X, which may lie anywhere; a fixed point of itself."""
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
        return math.prod(math.inf if p.count is None else p.count for p in self._parameters)
