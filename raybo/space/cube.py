"""The unit cube as a space fills it: what methods, surrogates and solvers know of the user's parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from raybo.space.allowed import Allowed
from raybo.space.levels import guess_at
from raybo.space.parameters import (
    Array,
    Categorical,
    Ordinal,
    Parameter,
)
from raybo.space.rules import Rule

TRIED = 1_000  # points that share the guesses, if these break a rule with the middle of the other axes
LISTED_POINTS = 20_000  # a wholly discrete space of so many points is counted under its rules


class Cube:
    """A space as the methods see it: the unit cube, one axis per parameter.

    Attributes:
        d: number of axes.
        categorical: per axis, True if only equality of coordinates has meaning.
        levels: per axis, the ascending coordinates that can be run, or None for a continuum (and for an axis of more
            than 1,000 values, which is searched like one).
        conditions: per axis, the axis and the position of the choice that opens it, or None if it is always open.
        rest: (d,), the coordinates, about the middle, that axes have while they are not open.
        rules: what a point must satisfy to be run. No point that `snap` or `uniform` returns breaks one.
        guess: (d,), where the user believes the best lies, and the middle on axes without a guess; None if there is no
            guess at all. guessed: per axis, whether there is one.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        conditions: Sequence[tuple[int, int] | None] = (),
        rules: Sequence[Rule] = (),
    ) -> None:
        self._parameters = tuple(parameters)
        self.d = len(self._parameters)
        self.categorical = tuple(
            isinstance(parameter, Categorical) and not isinstance(parameter, Ordinal) for parameter in self._parameters
        )
        self.levels = tuple(parameter.levels() for parameter in self._parameters)
        self._stepped = [i for i, parameter in enumerate(self._parameters) if parameter.count is not None]
        self.conditions = tuple(conditions) or (None,) * self.d
        self.rest: Array = self._snap_each(np.full((1, self.d), 0.5))[0]
        self.rules = tuple(rules)
        self.guessed = tuple(parameter.has_guess for parameter in self._parameters)

    @property
    def is_ruled(self) -> bool:
        """True if there are rules."""
        return bool(self.rules)

    @cached_property
    def is_conditional(self) -> bool:
        """True if a choice opens parameters of its own."""
        return any(condition is not None for condition in self.conditions)

    @cached_property
    def allowed(self) -> Allowed:
        """The part of the cube that the rules allow; raise SpaceError if it is empty."""
        return Allowed(self._parameters, self.conditions, self.rules, self.place, self.rest)

    def snap(self, X: Array) -> Array:  # (m, d) -> (m, d)
        """Return the runnable points nearest to the rows of X, which may lie anywhere; idempotent."""
        placed = self.place(X)
        return self.allowed.led_back(placed) if self.rules else placed

    def allows(self, X: Array) -> NDArray[np.bool_]:  # (m, d) -> (m,)
        """Return which rows, once snapped, break no rule."""
        return self.allowed.allows(self.place(X)) if self.rules else np.ones(len(X), dtype=bool)

    def uniform(self, rng: np.random.Generator, n: int) -> Array:  # (n, d)
        """Return independent points, uniform over the allowed part of the cube."""
        X = rng.random((n, self.d))
        return self.allowed.uniform(rng, X) if self.rules else X

    def within(self, X: Array, rng: np.random.Generator) -> Array:  # (m, d) -> (m, d)
        """Return the rows, with uniform points in place of those that break a rule."""
        return self.allowed.uniform(rng, np.array(X, dtype=np.float64)) if self.rules else X

    def led_back(self, x: Array) -> Array:  # (d,) -> (d,)
        """Return the point, or a runnable point near it if it breaks a rule."""
        return x if self.allows(x[None, :])[0] else self.snap(x[None, :])[0]

    def guesses(self, turn: int = 0) -> Array:  # (d,)
        """Return the coordinates of all guesses, or of a turn of the next ones; the middle on other axes.

        Axes that are never open together have theirs too.
        """
        x = self.rest.copy()
        for i in np.flatnonzero(self.guessed):
            x[i] = self._parameters[i].encode([guess_at(self._parameters[i], turn)])[0]
        return x

    @cached_property
    def guess(self) -> Array | None:  # (d,)
        """The snapped point at the guesses; None if there are none.

        A guess opens its branch, unless the choice has a guess of its own or an earlier guess has opened another.
        """
        return self._at(self.guesses()) if any(self.guessed) else None

    @cached_property
    def next_guesses(self) -> list[Array]:  # of (d,)
        """The snapped points at the next guesses, one after the other; axes that have no more are at their guess.

        Those that break a rule are moved to a point near them that keeps it.
        """
        return [self._at(self.guesses(turn)) for turn in range(1, self.turns)]

    @property
    def turns(self) -> int:
        """Return the number of points that are guessed."""
        return int(any(self.guessed)) + max((len(each.next_guesses) for each in self._parameters), default=0)

    @property
    def open_guesses(self) -> NDArray[np.bool_]:  # (d,)
        """Return which axes are open at the guesses, and have one."""
        found: NDArray[np.bool_] = self.opened(self._opening(self.guesses())[0][None, :])[0] & np.array(self.guessed)
        return found

    def _at(self, x: Array) -> Array:  # (d,) -> (d,)
        """Return the snapped point at coordinates of the guesses, whose branches it opens.

        If it breaks a rule, what has no guess gives way, and the guesses only where that does not do.
        """
        x, chosen = self._opening(x)
        if not self.allows(x[None, :])[0]:
            free = sorted(self.allowed.broken_axes(self.place(x[None, :])[0]) - chosen)
            X = np.tile(x, (TRIED, 1))
            X[:, free] = np.random.default_rng(0).random((TRIED, len(free)))
            if len(allowed := X[self.allows(X)]):
                nearest = allowed[int(np.argmin(np.square(allowed - x).sum(axis=1)))]
                between = x + np.linspace(0.0, 1.0, TRIED)[:, None] * (nearest - x)
                x = between[self.allows(between)][0]
        guess: Array = self.snap(x[None, :])[0]
        return guess

    def _opening(self, x: Array) -> tuple[Array, set[int]]:  # (d,) -> (d,)
        """Return the point with the branches of the guesses open, and the axes that these decide."""
        x, chosen = x.copy(), set(np.flatnonzero(self.guessed).tolist())
        for i in np.flatnonzero(self.guessed):
            condition = self.conditions[i]
            while condition is not None and condition[0] not in chosen:
                axis, position = condition
                chosen.add(axis)
                x[axis] = (position + 0.5) / len(cast(Categorical, self._parameters[axis]).choices)
                condition = self.conditions[axis]
        return x, chosen

    def opened(self, X: Array) -> NDArray[np.bool_]:  # (m, d) -> (m, d)
        """Return which axes are open at the rows of X."""
        opened = np.ones(X.shape, dtype=bool)
        for i, condition in enumerate(self.conditions):  # a choice comes before what it opens
            if condition is not None:
                axis, position = condition
                opened[:, i] = opened[:, axis] & (self._parameters[axis].level_index(X[:, axis]) == position)
        return opened

    def place(self, X: Array) -> Array:  # (m, d) -> (m, d)
        """Return the points nearest to the rows of X that could be run if there were no rules."""
        snapped = self._snap_each(X)
        return np.where(self.opened(snapped), snapped, self.rest) if self.is_conditional else snapped

    def _snap_each(self, X: Array) -> Array:  # (m, d) -> (m, d), axis by axis
        snapped = np.clip(np.asarray(X, dtype=np.float64), 0.0, 1.0)
        for i in self._stepped:
            parameter, levels = self._parameters[i], self.levels[i]
            if levels is None:
                snapped[:, i] = parameter.encode(parameter.decode(snapped[:, i]))
            else:
                snapped[:, i] = levels[parameter.level_index(snapped[:, i])]
        return snapped

    @cached_property
    def size(self) -> float:
        """The number of runnable points; infinite with a continuous axis. Rules are ignored if there are many."""
        size = self._count(None)
        if not self.rules or math.prod(math.inf if each is None else len(each) for each in self.levels) > LISTED_POINTS:
            return size
        grids = np.meshgrid(*[each for each in self.levels if each is not None], indexing="ij")
        points = np.unique(self.place(np.stack([grid.ravel() for grid in grids], axis=1)), axis=0)
        return float(self.allowed.allows(points).sum())

    def _count(self, opened_by: tuple[int, int] | None) -> float:
        """Return the number of ways to set the axes that a choice opens."""
        axes = [i for i, condition in enumerate(self.conditions) if condition == opened_by]
        return math.prod(self._count_axis(i) for i in axes)

    def _count_axis(self, i: int) -> float:
        count = self._parameters[i].count
        if count is None:
            return math.inf
        if not any(condition is not None and condition[0] == i for condition in self.conditions):
            return count
        return sum(self._count((i, k)) for k in range(count))
