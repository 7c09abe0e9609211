"""The worst mean over laws in a ball of the maximum mean discrepancy, exactly and without a convex solver.

    min w.u    over    w >= 0,  sum w = 1,  (w - p)' K (w - p) <= radius^2

With the support F of w given, the minimum of a linear function over an ellipsoid cut by a plane has a closed form.
The support is found by an active-set method: walk from a feasible w towards the closed form; if a weight would become
negative, stop there and leave that atom out; if none does, bring in the atom with the most negative reduced cost. Every
step lowers w.u, and there are finitely many supports.

Kirschner, Bogunovic, Jegelka, Krause (2020), "Distributionally Robust Bayesian Optimization", AISTATS: eq. (6) and the
data-driven variant of section 4. Nocedal, Wright (2006), "Numerical Optimization", section 16.5, for active sets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from raybo.context.ambiguity import RIDGE
from raybo.space import Array

TOLERANCE = 1e-10  # of the spread of u: a reduced cost that is no gain
FAILURE = 0.1  # probability with which the law may lie outside the ball


def mmd_radius(t: float) -> float:
    """Return (2 + sqrt(2 log(1 / 0.1))) / sqrt(t): how far t contexts may be from their law, if k(x, x) is 1.

    Source: Kirschner et al. (2020), section 4.2; 4.145966 / sqrt(t).
    """
    return (2.0 + math.sqrt(2.0 * math.log(1.0 / FAILURE))) / math.sqrt(t)


@dataclass(frozen=True, eq=False)
class MmdBall:
    """The worst mean over all laws on the atoms within an MMD of p.

    Attributes:
        kernel: (a, a), positive definite with unit diagonal; RIDGE is added to it.
        p: (a,), not negative, summing to 1. radius: at least 0.
    """

    kernel: Array
    p: Array
    radius: float

    def value(self, u: Array) -> Array:  # (m, a) -> (m,)
        """Return the worst means."""
        return self.value_and_weights(u)[0]

    def value_and_weights(self, u: Array) -> tuple[Array, Array]:  # (m,), (m, a)
        """Return the worst means; the weights are the worst laws."""
        K = self.kernel.copy()
        K.flat[:: len(K) + 1] += RIDGE
        weights = np.stack([worst_law(K, self.p, self.radius, row) for row in u]) if len(u) else np.empty(u.shape)
        return np.asarray(np.einsum("ma,ma->m", u, weights)), weights


def worst_law(K: Array, p: Array, radius: float, u: Array) -> Array:  # (a, a), (a,), (a,) -> (a,)
    """Return the minimiser of w.u over the ball."""
    lowest = int(u.argmin())
    least = float(u.min())
    spread = float(u.max()) - least
    Kp = K @ p
    to_lowest = K[lowest, lowest] - 2.0 * Kp[lowest] + p @ Kp
    if spread == 0.0 or radius <= 0.0:
        return p.copy()
    if to_lowest <= radius * radius:
        w = np.zeros(len(u))
        w[lowest] = 1.0
        return w
    u = np.asarray((u - least) / spread)
    w = p.copy()
    free = p > 0.0
    free[lowest] = True
    for _ in range(20 * len(u)):
        target = _closed_form(K, p, radius, u, free)
        blocked = free & (target.w < 0.0)
        if blocked.any():
            shares = np.where(blocked, w / np.where(blocked, w - target.w, 1.0), np.inf)
            step = float(shares.min())
            w = w + step * (target.w - w)
            out = shares <= step * (1.0 + 1e-12)
            w[out], free[out] = 0.0, False
            continue
        w = target.w
        cost = np.where(free, 0.0, target.cost)
        entering = int(cost.argmin())
        if cost[entering] >= -TOLERANCE:
            break
        free[entering] = True
    w = np.maximum(w, 0.0)
    return np.asarray(w / w.sum())


class _Target(NamedTuple):
    w: Array  # (a,), the minimiser with the given support, signs ignored
    cost: Array  # (a,), what moving mass to an atom would cost; 0 on the support


def _closed_form(K: Array, p: Array, radius: float, u: Array, free: NDArray[np.bool_]) -> _Target:
    """Minimise over the laws of a given support, of any sign, in the ball.

    z = w - p is -p off the support; on it, z = nearest - tau g with `nearest` the point of the plane nearest to p and
    g = K^-1 (u - c), c such that g sums to 0; then z' K z = nearest^2 + tau^2 u.g.
    """
    F = np.flatnonzero(free)
    z = np.where(free, 0.0, -p)
    pull = K @ z
    right = np.column_stack([np.ones(len(F)), u[F], -pull[F]])
    P, G, A = lapack.dposv(K[np.ix_(F, F)], right, lower=1)[1].T
    total = float(P.sum())
    g = G - (float(G.sum()) / total) * P
    z[F] = A - ((float(z.sum()) + float(A.sum())) / total) * P
    left = radius * radius - float(z @ (K @ z))
    squared = float(np.dot(u[F], g))
    tau = math.sqrt(max(left, 0.0) / squared) if squared > 1e-14 else 0.0
    z[F] -= tau * g
    # u + (K z) / tau is constant on the support
    gradient = u * tau + K @ z if tau > 0.0 else u
    cost = gradient - gradient[F].mean()
    return _Target(p + z, cost / max(tau, 1e-300) if tau > 0.0 else cost)
