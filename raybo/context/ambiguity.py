"""Values of a point over contexts, from a finite set of them: an expectation, or a worst case.

A reduction maps u (m, a), the values of m points at a atoms, to one number per point, and gives the weights
d(result)/du. The worst cases are minima over laws q near an estimate p, so by Danskin's theorem the weights are the
worst law itself.

    Expectation          sum p_i u_i
    Lowest               min u_i                                                   StableOpt, robust optimisation
    WorstShare           min {q u : q <= p / share}, the mean of the worst share   expected shortfall
    TotalVariation       min {q u : sum |q - p| <= radius}                          DRBO-KDE
    MinimaxApproximation the middle of two bounds of the worst case in an MMD ball  Tay et al. (2022)

The worst case in an MMD ball itself is in `mmd`. Huang et al. (2024), "Stochastic Bayesian Optimization with Unknown
Continuous Context Distribution via Kernel Density Estimation", AAAI, Proposition 2 and section 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from raybo.space import Array

RIDGE = 1e-9  # added to a kernel's unit diagonal before it is inverted: a fine grid's is singular to rounding


class Reduction(Protocol):
    """From the values at the atoms to one number."""

    def value(self, u: Array) -> Array:  # (m, a) -> (m,)
        """Return the number for each row of u."""
        ...

    def value_and_weights(self, u: Array) -> tuple[Array, Array]:  # (m,), (m, a)
        """Return the number for each row of u, and its gradient in that row."""
        ...


@dataclass(frozen=True, eq=False)
class Expectation:
    """The mean under known weights.

    Attributes:
        p: (a,), summing to 1.
    """

    p: Array

    def value(self, u: Array) -> Array:
        """Return the means."""
        return np.asarray(u @ self.p)

    def value_and_weights(self, u: Array) -> tuple[Array, Array]:
        """Return the means; the weights are p."""
        return self.value(u), np.broadcast_to(self.p, u.shape)


@dataclass(frozen=True)
class Lowest:
    """The worst atom's value."""

    def value(self, u: Array) -> Array:
        """Return the minima."""
        return np.asarray(u.min(axis=1))

    def value_and_weights(self, u: Array) -> tuple[Array, Array]:
        """Return the minima; all the weight is on the first atom that attains it."""
        weights = np.zeros(u.shape)
        weights[np.arange(len(u)), u.argmin(axis=1)] = 1.0
        return self.value(u), weights


@dataclass(frozen=True, eq=False)
class WorstShare:
    """The mean over the worst share of the contexts, known as expected shortfall or conditional value at risk.

    Attributes:
        p: (a,), not negative, summing to 1. share: above 0, at most 1.

    Source: Rockafellar, Uryasev (2002), "Conditional value-at-risk for general loss distributions", Journal of Banking
    & Finance 26(7).
    """

    p: Array
    share: float

    def value(self, u: Array) -> Array:
        """Return the means of the worst values."""
        return self.value_and_weights(u)[0]

    def value_and_weights(self, u: Array) -> tuple[Array, Array]:
        """Return the means of the worst values; the weights are those of the atoms that they are taken over."""
        order = np.argsort(u, axis=1, kind="stable")
        there = self.p[order]
        before = np.cumsum(there, axis=1) - there
        weights = np.empty(u.shape)
        np.put_along_axis(weights, order, np.clip(self.share - before, 0.0, there) / self.share, axis=1)
        return np.asarray(np.einsum("ma,ma->m", u, weights)), weights


@dataclass(frozen=True, eq=False)
class TotalVariation:
    """The worst mean over all laws q on the atoms with sum |q - p| <= radius (the full L1 distance, at most 2).

    Half the radius of mass is taken from the best atoms, best first, and put on the worst: v = max over T of
    sum p_i min(u_i, T) - (radius / 2) (T - min u), solved by sorting. An atom of weight p_i = 0 can only receive: such
    atoms spread over all contexts let the law move to where no context was sampled.

    Attributes:
        p: (a,), not negative, summing to 1. radius: at least 0.
    """

    p: Array
    radius: float

    def value(self, u: Array) -> Array:
        """Return the worst means."""
        return np.asarray(np.einsum("ma,ma->m", u, self.value_and_weights(u)[1]))

    def value_and_weights(self, u: Array) -> tuple[Array, Array]:
        """Return the worst means; the weights are the worst law."""
        mass = min(0.5 * self.radius, 1.0)
        carriers = np.flatnonzero(self.p)
        order = carriers[np.argsort(-u[:, carriers], axis=1, kind="stable")]  # best first
        there = self.p[order]
        before = np.cumsum(there, axis=1) - there
        taken = np.clip(mass - before, 0.0, there)
        rows = np.arange(len(u))
        q = np.tile(self.p, (len(u), 1))
        q[rows[:, None], order] = there - taken
        q[rows, u.argmin(axis=1)] += taken.sum(axis=1)
        return np.asarray(np.einsum("ma,ma->m", u, q)), q


@dataclass(frozen=True, eq=False)
class MinimaxApproximation:
    """The middle of a lower and an upper piecewise-linear bound of the worst mean in an MMD ball.

    Attributes:
        kernel: (a, a), positive definite with unit diagonal. p: (a,), the ball's centre.
        radius: at least 0.
        sensitivity: how fast the worst case falls at radius 0: "exact" with the kernel, or "fast" as if the kernel
            were the identity, which on a regular grid grows with the root of its size.
        stretch: multiplies the sensitivity; on a coarser grid, the root of the ratio of the sizes makes up for it.

    Source: Tay et al. (2022), "Efficient Distributionally Robust Bayesian Optimization with Worst-case Sensitivity";
    the reference is p.u, and the first case holds up to (p.u - min u) / S.
    """

    kernel: Array
    p: Array
    radius: float
    sensitivity: Literal["fast", "exact"] = "fast"
    stretch: float = 1.0

    @cached_property
    def distances(self) -> Array:  # (a,)
        """The MMD between p and all the mass on each atom."""
        Kp = self.kernel @ self.p
        return np.sqrt(np.maximum(np.diagonal(self.kernel) - 2.0 * Kp + self.p @ Kp, 0.0))

    @cached_property
    def _projected_inverse(self) -> Array:  # (a, a)
        """The matrix whose quadratic form is the square of the exact sensitivity; it takes constants to 0."""
        inverse = np.linalg.inv(self.kernel + RIDGE * np.eye(len(self.kernel)))
        ones = inverse.sum(axis=1)
        return np.asarray(inverse - np.outer(ones, ones) / ones.sum())

    def slopes(self, u: Array) -> tuple[Array, Array]:  # (m,), (m, a)
        """Return the sensitivity S and its gradient in u; if S vanishes so does the gradient."""
        projected = u - u.mean(axis=1, keepdims=True) if self.sensitivity == "fast" else u @ self._projected_inverse
        S = np.sqrt(np.maximum(np.einsum("ma,ma->m", u, projected), 0.0))
        dS = np.divide(projected, S[:, None], out=np.zeros_like(u), where=S[:, None] > 1e-12)
        return self.stretch * S, self.stretch * dS

    def value(self, u: Array) -> Array:
        """Return the approximate worst means."""
        return self.value_and_weights(u)[0]

    def value_and_weights(self, u: Array) -> tuple[Array, Array]:
        """Return the approximate worst means, and their gradients, which need not be laws."""
        rows, worst = np.arange(len(u)), u.argmin(axis=1)
        mean, least, reach = u @ self.p, u[rows, worst], self.distances[worst]
        S, dS = self.slopes(u)
        vertex = np.zeros(u.shape)
        vertex[rows, worst] = 1.0
        eps, far = self.radius, np.maximum(reach, 1e-300)
        chord, towards = (least - mean) / far, (vertex - self.p) / far[:, None]
        near = (mean + 0.5 * eps * (chord - S), self.p + 0.5 * eps * (towards - dS))
        middle = (0.5 * (mean + eps * chord + least), 0.5 * (self.p + eps * towards + vertex))
        is_near, is_beyond = eps * S <= mean - least, eps >= reach
        values = np.where(is_beyond, least, np.where(is_near, near[0], middle[0]))
        weights = np.where(is_near[:, None], near[1], middle[1])
        return values, np.where(is_beyond[:, None], vertex, weights)
