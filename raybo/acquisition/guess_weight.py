"""A user's belief about where the best lies, as a weight on the acquisition that fades as results come in.

    log alpha(x) + (beta / n) log pi(x)

with n results so far. Hvarfner, Stoll, Souza, Lindauer, Hutter, Nardi (2022), "piBO: Augmenting Acquisition Functions
with User Beliefs for Bayesian Optimization", ICLR, eq. (6): pi is a density over the space, and beta a tenth of the
planned trials. If an acquisition is not a logarithm (a confidence bound), the same term is added to it unchanged, in
standard deviations of the values.

A user names a point, not a density, so pi is made from the point: on each axis with a guess, a mixture of a normal
density about the guess and a uniform one, which limits what a wrong guess can cost; on the others, uniform. The axes
are independent: a guess may be right for one and wrong for another. Where an axis is not open, pi has the mean of its
density, so that a guess in one branch speaks neither for the others nor against them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raybo.acquisition.protocols import Acquisition
from raybo.space import Array, Cube

WIDTH = 0.15  # standard deviation of the belief about a guess, in sides of the cube
DOUBT = 0.2  # share of the uniform density
GRID = 513  # places at which the distribution along an axis is kept


@dataclass(frozen=True, eq=False)
class Belief:
    """A density over the cube about a guess.

    Attributes:
        guess: (d,). said: (d,), on which axes something is guessed. unordered: per axis, whether it is a choice, and
            how many values it has; 0 if it has no levels. cube: says which axes are open.
    """

    guess: Array
    said: Array
    unordered: Sequence[int]
    cube: Cube

    @classmethod
    def of(cls, cube: Cube, turn: int = 0) -> Belief | None:
        """Return the belief in a space's guesses, or in a turn of its next ones; None if it has none."""
        if not any(cube.guessed):
            return None
        sizes = [
            len(levels) if categorical and levels is not None else 0
            for levels, categorical in zip(cube.levels, cube.categorical, strict=True)
        ]
        return cls(cube.guesses(turn), np.array(cube.guessed, dtype=np.float64), sizes, cube)

    def log_density(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, d)
        """Return log pi, which is at most 0, and 0 at the guess, and its gradient."""
        z = (X - self.guess) / WIDTH
        near = (1.0 - DOUBT) * np.exp(-0.5 * np.square(z))
        value, slope = np.log(near + DOUBT), -near / (near + DOUBT) * z / WIDTH
        for axis in self._choices:
            is_other = np.abs(X[:, axis] - self.guess[axis]) > 0.5 / self.unordered[axis]
            value[:, axis], slope[:, axis] = np.where(is_other, np.log(DOUBT), 0.0), 0.0
        if self.cube.is_conditional:
            is_open = self.cube.opened(X)
            value, slope = np.where(is_open, value, self._means), slope * is_open
        return value @ self.said, slope * self.said

    def drawn(self, x: Array) -> Array:  # (d,) -> (d,)
        """Return a uniform point as one that is distributed by the belief: coordinates that are spread stay spread."""
        x = x.copy()
        for axis in np.flatnonzero(self.said):
            if axis in self._choices:
                share = (x[axis] - DOUBT) / (1.0 - DOUBT)
                x[axis] = x[axis] / DOUBT if share < 0.0 else self.guess[axis]
            else:
                x[axis] = float(np.interp(x[axis], self._distribution(int(axis)), np.linspace(0.0, 1.0, GRID)))
        return x

    def _distribution(self, axis: int) -> Array:  # (GRID,)
        u = np.linspace(0.0, 1.0, GRID)
        normal = np.cumsum(np.exp(-0.5 * np.square((u - self.guess[axis]) / WIDTH)))
        normal = (normal - normal[0]) / (normal[-1] - normal[0])
        return np.asarray((1.0 - DOUBT) * normal + DOUBT * u)

    @cached_property
    def _means(self) -> Array:  # (d,)
        """Per axis, the logarithm of the mean density."""
        means = np.ones(len(self.guess))
        for axis in np.flatnonzero(self.said).tolist():
            if size := self.unordered[axis]:
                means[axis] = (1.0 + (size - 1) * DOUBT) / size
            else:
                z = (np.linspace(0.0, 1.0, GRID) - self.guess[axis]) / WIDTH
                means[axis] = DOUBT + (1.0 - DOUBT) * np.exp(-0.5 * np.square(z)).mean()
        return np.log(means)

    @cached_property
    def _choices(self) -> list[int]:
        return [axis for axis, size in enumerate(self.unordered) if size]


@dataclass(frozen=True, eq=False)
class Believing:
    """An acquisition under a belief.

    Attributes:
        acquisition: what is weighted. belief: the user's. weight: beta / n.
    """

    acquisition: Acquisition
    belief: Belief
    weight: float

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the acquisition with the belief added."""
        return np.asarray(self.acquisition.value(X) + self.weight * self.belief.log_density(X)[0])

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, d)
        """Return the acquisition with the belief added, and its gradient."""
        value, gradient = self.acquisition.value_and_gradient(X)
        believed, slope = self.belief.log_density(X)
        return value + self.weight * believed, gradient + self.weight * slope
