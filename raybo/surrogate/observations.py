"""Observations, with repeated points merged into counted observations of their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raybo.surrogate.kernels import Array


@dataclass(frozen=True, eq=False)
class Observations:
    """Distinct points with the mean and the number of their values.

    Mean and scatter of a point's values are all that a GP needs of them: posterior and likelihood are those of the
    single values.

    Attributes:
        X: (n, d), in the order of first appearance. y: (n,).
        counts: (n,), how many values each y is the mean of.
        scatter: (n,), the squared deviations of those values from it, summed.
        categorical: per axis, whether only equality counts.
        added: (n,), variance of what each of those values is uncertain by beside the noise: it was predicted, not seen.
            None if all were seen.
    """

    X: Array
    y: Array
    counts: Array
    scatter: Array
    categorical: tuple[bool, ...]
    added: Array | None = None

    @classmethod
    def of(
        cls, X: Array, y: Array, categorical: Sequence[bool] | None = None, added: Array | None = None
    ) -> Observations:
        """Merge equal rows of X (n, d) with values y (n,), if they are equally uncertain."""
        flags = (False,) * X.shape[1] if categorical is None else tuple(categorical)
        if added is not None and not added.any():
            added = None
        first, group = merged(X if added is None else np.column_stack([X, added]))
        if len(first) == len(X):
            return cls(X, y, np.ones(len(X)), np.zeros(len(X)), flags, added)
        counts = np.bincount(group).astype(np.float64)
        means = np.asarray(np.bincount(group, weights=y) / counts, dtype=np.float64)
        scatter = np.asarray(np.bincount(group, weights=np.square(y - means[group])), dtype=np.float64)
        return cls(X[first], means, counts, scatter, flags, None if added is None else added[first])

    def noise_of_values(self, noise_variance: float) -> Array | float:  # (n,)
        """Return the variance of the noise on each of the values that a y is the mean of."""
        return noise_variance if self.added is None else noise_variance + self.added

    def noise(self, noise_variance: float) -> Array:  # (n,)
        """Return the variance of the noise on each y."""
        return np.asarray(self.noise_of_values(noise_variance) / self.counts)

    def with_more(self, X: Array, y: Array) -> Observations:  # (m, d), (m,)
        """Return these and m more, which are not merged and not predicted."""
        m = len(X)
        return Observations(
            np.concatenate([self.X, X]),
            np.concatenate([self.y, y]),
            np.concatenate([self.counts, np.ones(m)]),
            np.concatenate([self.scatter, np.zeros(m)]),
            self.categorical,
            None if self.added is None else np.concatenate([self.added, np.zeros(m)]),
        )

    def first(self, n: int) -> Observations:
        """Return the first n points."""
        return self._kept(np.arange(min(n, len(self.X))))

    def thinned(self, at_most: int) -> Observations:
        """Return at most so many of the points: the best, a fifth of them, and every so many of the rest, in order."""
        n = len(self.X)
        if n <= at_most:
            return self
        order = np.argsort(-self.y, kind="stable")
        top, rest = order[: at_most // 5], np.sort(order[at_most // 5 :])
        picked = rest[np.linspace(0, len(rest) - 1, at_most - len(top)).astype(int)]
        return self._kept(np.sort(np.concatenate([top, picked])))

    def _kept(self, keep: NDArray[np.intp]) -> Observations:
        return replace(
            self,
            X=self.X[keep],
            y=self.y[keep],
            counts=self.counts[keep],
            scatter=self.scatter[keep],
            added=None if self.added is None else self.added[keep],
        )


def merged(rows: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:  # (g,), (n,)
    """Return the index of each distinct row's first appearance, and the place in that list of every row."""
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[inverse.reshape(-1)]
