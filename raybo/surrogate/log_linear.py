"""A log-linear model of positive numbers, such as seconds: Bayesian ridge regression of their logarithms.

The logarithm is linear in features of each axis of the cube: for one with an order, the coordinate u and log(u + 1/20),
which suit a logarithmic and a linear parameter; for a choice, an indicator of each value. The weights have one normal
prior, whose variance and that of the noise are the most likely ones, so that features that explain nothing weigh
nothing. Lee, Eriksson, Perrone, Seeger (2021), "A Nonmyopic Approach to Cost-Constrained Bayesian Optimization", and
arXiv:2011.11456 find that such models of low variance predict training times best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SHIFT = 0.05  # of the logarithm: about the least value of a linear parameter, as a share of its range
RATIOS = np.logspace(-4.0, 4.0, 33)  # of the weights' variance to the noise's
NOISE, COUNTS = 1e-3, 1.0  # a variance that the noise is expected to have, and as how many observations that counts
_U = (np.arange(256) + 0.5) / 256
_LOGS = np.log(_U + SHIFT)


@dataclass(frozen=True, eq=False)
class LogLinear:
    """The posterior of the logarithms.

    Attributes:
        levels: per axis, the coordinates of a choice; None for an axis with an order.
        centre: (p,), of the features. offset: of the logarithms.
        weights: (p,), their posterior mean. root: (p, p), with root root' their posterior covariance.
        noise: variance of a logarithm about the model.
    """

    levels: Sequence[Array | None]
    centre: Array
    offset: float
    weights: Array
    root: Array
    noise: float

    @classmethod
    def of(cls, X: Array, values: Array, levels: Sequence[Array | None]) -> LogLinear:  # (n, d), (n,)
        """Return the model of positive numbers at some points, of which there is at least one."""
        logs, features = np.log(values), _features(X, levels)[0]
        centre, offset = features.mean(axis=0), float(logs.mean())
        U, s, Vt = np.linalg.svd(features - centre, full_matrices=False)
        z = U.T @ (logs - offset)
        rest = max(0.0, float(np.square(logs - offset).sum() - np.square(z).sum()))
        n, power = len(logs), np.square(s)
        shrunk = 1.0 + RATIOS[:, None] * power
        noises = (rest + (np.square(z) / shrunk).sum(axis=1) + COUNTS * NOISE) / (n + COUNTS)
        best = int(np.argmax(-0.5 * (n + COUNTS) * np.log(noises) - 0.5 * np.log(shrunk).sum(axis=1)))
        noise, ratio = float(noises[best]), float(RATIOS[best])
        gains = ratio * s / (1.0 + ratio * power)
        scales = np.sqrt(1.0 / (1.0 + ratio * power)) - 1.0  # along these directions; 1 along all others
        root = np.sqrt(ratio * noise) * (np.eye(features.shape[1]) + (Vt.T * scales) @ Vt)
        return cls(tuple(levels), centre, offset, Vt.T @ (gains * z), root, noise)

    def moments(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m,)
        """Return the mean and the variance of a logarithm, noise included."""
        features = _features(X, self.levels)[0] - self.centre
        return self.offset + features @ self.weights, self.noise + np.square(features @ self.root).sum(axis=1)

    def moments_and_gradients(self, X: Array) -> tuple[Array, Array, Array, Array]:  # (m,), (m,), (m, d), (m, d)
        """Return the mean and the variance, and the gradients of both."""
        features, slopes, axes = _features(X, self.levels)
        features = features - self.centre
        along = features @ self.root
        to_axis = np.zeros((len(axes), X.shape[1]))
        to_axis[np.arange(len(axes)), axes] = 1.0
        mean, variance = self.offset + features @ self.weights, self.noise + np.square(along).sum(axis=1)
        return mean, variance, (slopes * self.weights) @ to_axis, (2.0 * slopes * (along @ self.root.T)) @ to_axis


@dataclass(frozen=True, eq=False)
class Slice:
    """A model where its last coordinate has one value, as a model of the others.

    Attributes:
        model: the whole. last: the coordinate. offset: is added to the mean.
    """

    model: LogLinear
    last: float
    offset: float = 0.0

    def moments(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m,)
        """Return the mean and the variance of a logarithm, noise included."""
        mean, variance = self.model.moments(self._whole(X))
        return mean + self.offset, variance

    def moments_and_gradients(self, X: Array) -> tuple[Array, Array, Array, Array]:  # (m,), (m,), (m, d), (m, d)
        """Return the mean and the variance, and the gradients of both."""
        mean, variance, slope, growth = self.model.moments_and_gradients(self._whole(X))
        return mean + self.offset, variance, slope[:, :-1], growth[:, :-1]

    def _whole(self, X: Array) -> Array:  # (m, d + 1)
        return np.column_stack([X, np.full(len(X), self.last)])


def _features(X: Array, levels: Sequence[Array | None]) -> tuple[Array, Array, list[int]]:  # (m, p), (m, p)
    """Return the features, of unit variance over the cube if they have an order, their slopes, and their axes."""
    columns, slopes, axes = [], [], []
    for axis, choices in enumerate(levels):
        u = X[:, axis]
        if choices is not None:
            is_value = np.abs(u[:, None] - choices) < 0.5 / len(choices)
            columns += list(is_value.T.astype(np.float64))
            slopes += [np.zeros(len(u))] * len(choices)
            axes += [axis] * len(choices)
            continue
        columns += [(u - 0.5) / _U.std(), (np.log(u + SHIFT) - _LOGS.mean()) / _LOGS.std()]
        slopes += [np.full(len(u), 1.0 / _U.std()), 1.0 / ((u + SHIFT) * _LOGS.std())]
        axes += [axis, axis]
    return np.stack(columns, axis=1), np.stack(slopes, axis=1), axes
