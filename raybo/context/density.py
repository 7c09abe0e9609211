"""The law of the contexts, estimated from those observed: a kernel density, with frequencies for categories.

    p(c) = (1 - s) sum_i w_i [c_k = c_ik for all categories k] prod_j N(c_j; c_ij, h_j^2)  +  s u(categories) q(numbers)
    h_j  = scale (4 / (D + 2))^(1 / (D + 4)) sd_j t^(-1 / (D + 4))         t = (sum w)^2 / sum w^2 contexts in effect

D counts the numeric axes. Without categories s = 0 and this is the rule-of-thumb estimate of Huang et al. (2024),
"Stochastic Bayesian Optimization with Unknown Continuous Context Distribution via Kernel Density Estimation", AAAI,
section 4. With categories, sd and t are those of the contexts with the same categories, and one extra context, beyond
those observed, is spread over all categories (u uniform, q the density of the numbers alone), so that none is thought
impossible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from raybo.context.points import all_levels, is_listed, numeric, uniform_points
from raybo.space import Array, Cube, scrambled_sobol

LEAST_BANDWIDTH = 0.01  # of the declared range, if the contexts do not vary
NOT_VARYING = 1e-12  # a standard deviation that is rounding error


@dataclass(frozen=True, eq=False)
class Density:
    """An estimate of the law that contexts are drawn from; uniform if none is known.

    Attributes:
        cube: the declared contexts, dc axes.
        contexts: (t, dc), those met, in the unit cube.
        weights: (t,), summing to 1.
        effective: how many equally weighted contexts they are worth; t unless older ones are forgotten.
        bandwidth: (t, dc), the kernel's standard deviation around each context; 0 on categorical axes.
        unseen: the share s of the mass that is spread over all categories.
        scale: what the rule-of-thumb bandwidth was multiplied by.
    """

    cube: Cube
    contexts: Array
    weights: Array
    effective: float
    bandwidth: Array
    unseen: float
    scale: float = 1.0

    @classmethod
    def of(cls, contexts: Array, cube: Cube, *, half_life: float | None = None, scale: float = 1.0) -> Density:
        """Return the estimate from contexts (t, dc), oldest first.

        Args:
            contexts: coordinates in [0, 1]; t >= 0.
            cube: their space.
            half_life: a context counts half as much as one that was met so many contexts later; None: all count alike.
            scale: multiplies the rule-of-thumb bandwidth, which smooths more than is good for laws of many peaks.
        """
        t = len(contexts)
        if t == 0:
            return cls(cube, contexts, np.empty(0), 0.0, np.empty((0, cube.d)), 0.0, scale)
        ages = np.arange(t - 1.0, -1.0, -1.0)
        raw = np.ones(t) if half_life is None else np.exp2(-np.minimum(ages / half_life, 1000.0))
        weights = raw / raw.sum()
        bandwidth = np.zeros((t, cube.d))
        numbers = numeric(cube)
        groups = _groups(contexts[:, ~numbers])
        for group in range(groups.max() + 1):
            rows = groups == group
            bandwidth[np.ix_(rows, numbers)] = rule_of_thumb(contexts[rows][:, numbers], weights[rows], scale)
        effective = effective_number(weights)
        unseen = 0.0 if numbers.all() else 1.0 / (effective + 1.0)
        return cls(cube, contexts, weights, effective, bandwidth, unseen, scale)

    @cached_property
    def pooled_bandwidth(self) -> Array:  # (dc,)
        """The kernel's standard deviation if there were no categories, for q above."""
        numbers = numeric(self.cube)
        bandwidth = np.zeros(self.cube.d)
        bandwidth[numbers] = rule_of_thumb(self.contexts[:, numbers], self.weights, self.scale)
        return bandwidth

    def pdf(self, C: Array) -> Array:  # (m, dc) -> (m,)
        """Return density at the rows of C with respect to numbers, mass with respect to categories.

        The kernels' tails beyond [0, 1] are left where they are; samples are clipped.
        """
        if len(self.contexts) == 0:
            return np.full(len(C), _share_of_a_category(self.cube))
        numbers = numeric(self.cube)
        kernels = _kernels(C, self.contexts, self.bandwidth, numbers)
        same = (C[:, None, ~numbers] == self.contexts[:, ~numbers]).all(axis=2)
        density = (kernels * same) @ self.weights
        if self.unseen > 0.0:
            pooled = _kernels(C, self.contexts, self.pooled_bandwidth, numbers) @ self.weights
            density = (1.0 - self.unseen) * density + self.unseen * _share_of_a_category(self.cube) * pooled
        return np.asarray(density)

    def sample(self, m: int, rng: np.random.Generator) -> Array:  # (m, dc)
        """Return m draws, clipped to the bounds and moved to the nearest context that can occur.

        They are a scrambled Sobol sequence carried through the inverse of the law: each by itself has the law, and
        the first 2^k of them are already spread over it evenly. The order of the contexts does not matter.
        """
        if len(self.contexts) == 0:
            return uniform_points(self.cube, m, rng)
        numbers = numeric(self.cube)
        U = scrambled_sobol(m, 1 + self.cube.d, rng)
        which, V = U[:, 0], U[:, 1:]
        spread = which < self.unseen
        within = np.where(spread, which / max(self.unseen, 1e-300), (which - self.unseen) / (1.0 - self.unseen))
        order = np.lexsort(self.contexts.T[::-1])
        shares = np.cumsum(self.weights[order])
        rows = order[np.minimum(np.searchsorted(shares, within * shares[-1], side="right"), len(order) - 1)]
        C = self.contexts[rows]
        h = np.where(spread[:, None], self.pooled_bandwidth, self.bandwidth[rows])
        C[:, numbers] += h[:, numbers] * _normal_quantile(V[:, numbers])
        C[:, ~numbers] = np.where(spread[:, None], V[:, ~numbers], C[:, ~numbers])
        return self.cube.snap(C)

    def atoms(self, m: int, rng: np.random.Generator) -> tuple[Array, Array]:  # (a, dc), (a,)
        """Return at most m contexts that stand for the law, and their weights, which sum to 1.

        Categories alone are all listed with their estimated frequencies, if they are at most m; else m draws, of which
        equal ones are merged if contexts are discrete.
        """
        if not numeric(self.cube).any() and is_listed(self.cube) and self.cube.size <= m:
            C = all_levels(self.cube)
            return C, self.pdf(C)
        C = self.sample(m, rng)
        if not is_listed(self.cube):
            return C, np.full(m, 1.0 / m)
        distinct, counts = np.unique(C, axis=0, return_counts=True)
        return distinct, counts / m


def rule_of_thumb(contexts: Array, weights: Array, scale: float) -> Array:  # (t, D), (t,) -> (D,)
    """Return the rule of thumb's bandwidths, times `scale`; at least LEAST_BANDWIDTH on an axis that does not vary."""
    D = contexts.shape[1]
    w = weights / weights.sum()
    t = effective_number(w)
    sd = np.sqrt(w @ np.square(contexts - w @ contexts))
    h = np.asarray(scale * (4.0 / (D + 2.0)) ** (1.0 / (D + 4.0)) * sd * t ** (-1.0 / (D + 4.0)))
    return np.where((sd < NOT_VARYING) | (t <= 1.0), np.maximum(h, LEAST_BANDWIDTH), h)


def effective_number(weights: Array) -> float:  # (t,)
    """Return (sum w)^2 / sum w^2: how many equal weights are worth as much."""
    return float(weights.sum() ** 2 / np.square(weights).sum())


def _groups(categories: Array) -> NDArray[np.intp]:  # (t, k) -> (t,)
    """Return a number for each row; equal rows have the same."""
    if categories.shape[1] == 0:
        return np.zeros(len(categories), dtype=np.intp)
    return np.unique(categories, axis=0, return_inverse=True)[1].reshape(-1)


def _kernels(C: Array, contexts: Array, bandwidth: Array, numbers: NDArray[np.bool_]) -> Array:  # (m, t)
    h = bandwidth[..., numbers]
    z = (C[:, None, numbers] - contexts[:, numbers]) / h
    return np.asarray(np.exp(-0.5 * np.square(z).sum(axis=2)) / np.prod(math.sqrt(2.0 * math.pi) * h, axis=-1))


def _share_of_a_category(cube: Cube) -> float:
    """Return one divided by the number of combinations of categories."""
    pairs = zip(cube.levels, cube.categorical, strict=True)
    counts = [math.inf if levels is None else len(levels) for levels, categorical in pairs if categorical]
    return 1.0 / math.prod(counts)


def _normal_quantile(u: Array) -> Array:
    from scipy.special import ndtri  # slow to import

    return np.asarray(ndtri(np.clip(u, 1e-12, 1.0 - 1e-12)))
