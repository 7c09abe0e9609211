"""What was observed, with repeated points merged into counted observations of their mean."""

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
        known_noise: (n,), variance of a single value beside the model's noise variance (a measured standard error,
            say), in the units of y squared; None where there is none.
    """

    X: Array
    y: Array
    counts: Array
    scatter: Array
    categorical: tuple[bool, ...]
    known_noise: Array | None = None

    @classmethod
    def of(
        cls, X: Array, y: Array, categorical: Sequence[bool] | None = None, known_noise: Array | None = None
    ) -> Observations:
        """Merge equal rows of X (n, d) with values y (n,); rows of different known noise stay apart."""
        flags = (False,) * X.shape[1] if categorical is None else tuple(categorical)
        rows = X if known_noise is None else np.column_stack([X, known_noise])
        first, group = merged(rows)
        if len(first) == len(X):
            return cls(X, y, np.ones(len(X)), np.zeros(len(X)), flags, known_noise)
        counts = np.bincount(group).astype(np.float64)
        means = np.asarray(np.bincount(group, weights=y) / counts, dtype=np.float64)
        scatter = np.asarray(np.bincount(group, weights=np.square(y - means[group])), dtype=np.float64)
        return cls(X[first], means, counts, scatter, flags, None if known_noise is None else known_noise[first])

    def noise(self, noise_variance: float) -> Array:  # (n,)
        """Variance of the noise on each y."""
        return self.single_noise(noise_variance) / self.counts

    def single_noise(self, noise_variance: float) -> Array:  # (n,)
        """Variance of the noise on each of the values that y is the mean of."""
        if self.known_noise is None:
            return np.full(len(self.X), noise_variance)
        return noise_variance + self.known_noise

    def with_more(self, X: Array, y: Array, counts: Array | None = None) -> Observations:  # (m, d), (m,), (m,)
        """These and m more, which are not merged, without known noise of their own."""
        m = len(X)
        added = np.ones(m) if counts is None else counts
        known = None if self.known_noise is None else np.concatenate([self.known_noise, np.zeros(m)])
        return Observations(
            np.concatenate([self.X, X]),
            np.concatenate([self.y, y]),
            np.concatenate([self.counts, added]),
            np.concatenate([self.scatter, np.zeros(m)]),
            self.categorical,
            known,
        )

    def first(self, n: int) -> Observations:
        """The first n points."""
        return self._kept(np.arange(min(n, len(self.X))))

    def thinned(self, at_most: int) -> Observations:
        """At most so many of the points: the best, a fifth of them, and every so many of the rest, in order."""
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
            known_noise=None if self.known_noise is None else self.known_noise[keep],
        )


def merged(rows: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:  # (g,), (n,)
    """Index of each distinct row's first appearance, and the place in that list of every row."""
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[inverse.reshape(-1)]
