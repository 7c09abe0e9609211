"""Defines a solver's function and solution, and the account it keeps while searching.

Every solver maximises. A value that is not a finite number counts as the worst of all. A point is judged where it will
really be run: at its snapped coordinates.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, cast

import numpy as np

from raybo.solvers.domain import Array, Domain, all_points, climbable, count_points, one_axis_moves

Gradient: TypeAlias = Literal["analytic", "fd"]

ROWS_AT_ONCE = (
    256  # keeps a surrogate's (rows, n) temporaries in the processor's cache; larger calls are slower per row
)
SAME = 1e-6  # points closer than this, in Euclidean distance, are one point
ASIDE = 1e-3  # least distance at which other points are tried beside one to avoid
DIFFERENCE = 6e-6  # step of central differences: the cube root of the rounding unit is most accurate


class Function(Protocol):
    """A function of points of the unit cube, batched over rows; each value depends on its own row alone.

    If the values of one call depend on each other instead (a joint draw), its attribute `is_joint` is true, and its
    calls are not divided.
    """

    def value(self, X: Array) -> Array:
        """Return its values (m,) at the rows of X, (m, d)."""
        ...


class Differentiable(Function, Protocol):
    """A function with its gradient."""

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return its values (m,) and gradients (m, d) at the rows of X, (m, d)."""
        ...


@dataclass(frozen=True)
class Solution:
    """The best point that a solver found.

    Attributes:
        x: (d,), a point that can be run.
        value: the function at x; -inf if no value was finite.
        evaluations: rows at which the function was evaluated, with or without gradient.
        seconds: wall time of the search.
        climbs: number of local searches.
        converged: number of those that reached their own stopping rule.
        is_apart: True if x keeps its distance from the points to avoid; False only if no such point was left.
    """

    x: Array
    value: float
    evaluations: int
    seconds: float
    climbs: int = 0
    converged: int = 0
    is_apart: bool = True


class Search:
    """One solver's account: evaluations counted, and the best point so far that may be returned.

    Args:
        function: maximised.
        domain: searched.
        avoid: (a, d), points that must not be returned.
        apart: the least distance from the points to avoid, one for all or (a,); with 0 the point must just differ.
        gradient: "analytic", the function's own, or "fd", differences of its values, each row of which is counted.
    """

    def __init__(
        self,
        function: Function,
        domain: Domain,
        avoid: Array | None = None,
        apart: float | Array = 0.0,
        gradient: Gradient = "analytic",
    ) -> None:
        self.function = function
        self.domain = domain
        self.evaluations = 0
        self._gradient = gradient
        self._is_joint = bool(getattr(function, "is_joint", False))
        self._avoid = np.empty((0, domain.d)) if avoid is None else np.asarray(avoid, dtype=np.float64)
        self._apart = np.maximum(np.broadcast_to(np.asarray(apart, dtype=np.float64), (len(self._avoid),)), SAME)
        self._best: tuple[float, Array] | None = None  # among the points that may be returned
        self._peak: tuple[float, Array] | None = None  # among all
        self._started = time.perf_counter()

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the function at the rows of X as they are, -inf if it is not finite."""
        self.evaluations += len(X)
        values = self.function.value(X)
        return np.where(np.isfinite(values), values, -np.inf)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return the function and its gradient at the rows of X as they are; not finite: -inf, with a gradient of 0."""
        if self._gradient == "fd":
            return self._by_differences(X)
        self.evaluations += len(X)
        values, gradient = cast(Differentiable, self.function).value_and_gradient(X)
        sound = np.isfinite(values) & np.isfinite(gradient).all(axis=1)
        if sound.all():
            return values, gradient
        return np.where(np.isfinite(values), values, -np.inf), np.where(sound[:, None], gradient, 0.0)

    def _by_differences(self, X: Array) -> tuple[Array, Array]:
        """Return the gradient by central differences inside the cube, all in one call; 0 along axes without order."""
        m, d = X.shape
        axes = climbable(self.domain)
        steps = DIFFERENCE * np.eye(d)[axes]
        above, below = np.minimum(X[:, None, :] + steps, 1.0), np.maximum(X[:, None, :] - steps, 0.0)
        values = self.value(np.concatenate([X, above.reshape(-1, d), below.reshape(-1, d)]))
        sides = values[m:].reshape(2, m, len(steps))
        sound = np.isfinite(sides).all(axis=0)
        rise = np.subtract(sides[0], sides[1], out=np.zeros(sound.shape), where=sound)
        gradient = np.zeros((m, d))
        gradient[:, axes] = rise / (above - below).sum(axis=2)
        return values[:m], gradient

    def try_points(self, X: Array, chunk: int | None = None) -> tuple[Array, Array]:  # (m, d), (m,)
        """Return the rows of X snapped, and their values; the best is kept. `chunk` limits the rows of one call."""
        snapped = self.domain.snap(X)
        step = len(snapped) if chunk is None or self._is_joint else chunk
        parts = [self.value(snapped[i : i + step]) for i in range(0, len(snapped), step)]
        values = np.concatenate(parts) if parts else np.empty(0)
        self.keep(snapped, values)
        return snapped, values

    def settle(self, X: Array, values: Array) -> tuple[Array, Array]:  # (m, d), (m,)
        """Return relaxed points with their known values, snapped, kept, and evaluated anew if that moved any."""
        snapped = self.domain.snap(X)
        if not np.array_equal(snapped, X):
            return self.try_points(snapped)
        self.keep(snapped, values)
        return snapped, values

    def keep(self, X: Array, values: Array) -> None:  # (m, d), (m,)
        """Take note of points that can be run and of their known values. Earlier points win ties."""
        if len(values) == 0:
            return
        if self.domain.is_ruled:  # a box may be left no point near its own
            values = np.where(self.domain.allows(X), values, -np.inf)
        top = int(np.argmax(values))
        if self._peak is None or values[top] > self._peak[0]:
            self._peak = (float(values[top]), X[top])
        if len(self._avoid) > 0:
            allowed = self._first_allowed(X, values)
            if allowed is None:
                return
            top = allowed
        if self._best is None or values[top] > self._best[0]:
            self._best = (float(values[top]), X[top])

    def solution(
        self, rng: np.random.Generator, *, climbs: int = 0, converged: int = 0, aside: bool = True
    ) -> Solution:
        """Return the best point kept.

        Args:
            rng: for further points, if the highest of all must be avoided.
            climbs, converged: for the record.
            aside: True to try points around one that must be avoided even if another was kept.
        """
        assert self._peak is not None, "a solver tries at least one point"
        if self._best is None or (aside and self._best[0] < self._peak[0]):
            self._step_aside(rng)
        value, x = self._best or self._peak
        return Solution(
            x=x.copy(),
            value=value,
            evaluations=self.evaluations,
            seconds=time.perf_counter() - self._started,
            climbs=climbs,
            converged=converged,
            is_apart=self._best is not None,
        )

    def _first_allowed(self, X: Array, values: Array) -> int | None:
        """Return the row of the highest value that is far enough from the points to avoid, if it would be the best."""
        floor = -np.inf if self._best is None else self._best[0]
        contenders = np.flatnonzero(values > floor) if self._best is not None else np.arange(len(values))
        order = contenders[np.argsort(-values[contenders], kind="stable")]
        start, size = 0, 8
        while start < len(order):
            rows = order[start : start + size]
            squared = ((X[rows, None, :] - self._avoid) ** 2).sum(axis=2)
            allowed = (squared >= self._apart**2).all(axis=1)
            if allowed.any():
                return int(rows[np.argmax(allowed)])
            start, size = start + size, min(2 * size, 64)  # bounds the memory of (size, a, d)
        return None

    def _step_aside(self, rng: np.random.Generator) -> None:
        """Try points around the peak at the distance asked for; then, if nothing may yet be returned, anywhere."""
        assert self._peak is not None
        peak, domain = self._peak[1], self.domain
        reach = float(self._apart.max(initial=ASIDE))
        directions = rng.standard_normal((16 + 4 * domain.d, domain.d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lengths = reach * rng.uniform(1.0, 3.0, (len(directions), 1))
        self.try_points(np.concatenate([peak + lengths * directions, *one_axis_moves(domain, peak[None], rng)]))
        if self._best is None:
            self.try_points(domain.uniform(rng, 256))
        if self._best is None and count_points(domain) <= 2 * len(self._avoid) + 256:  # else the draws would have hit
            everything = all_points(domain)
            for i in range(0, len(everything), 1024):  # even a joint draw is divided, rather than be too large
                self.try_points(everything[i : i + 1024])
