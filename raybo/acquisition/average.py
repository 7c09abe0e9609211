"""Acquisitions averaged over posterior samples of the hyperparameters, or over models: each member has its own
surrogate.

Snoek, Larochelle, Adams (2012), "Practical Bayesian Optimization of Machine Learning Algorithms".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raybo.acquisition.protocols import Acquisition, Array


@dataclass(frozen=True)
class Average:
    """The mean of the members, of upper confidence bounds or expected improvements.

    Attributes:
        members: at least one acquisition. weights: of the members, positive; all equal unless given.
    """

    members: Sequence[Acquisition]
    weights: Sequence[float] | None = None

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the mean at the rows of X."""
        return np.asarray(np.average([member.value(X) for member in self.members], axis=0, weights=self.weights))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return the mean and its gradient."""
        values, gradients = _all(self.members, X)
        return np.average(values, axis=0, weights=self.weights), np.average(gradients, axis=0, weights=self.weights)


@dataclass(frozen=True)
class LogAverage:
    """log of the mean of exp of the members: of log expected improvements, the log of the mean expected improvement.

    Attributes:
        members: at least one acquisition, a logarithm. weights: of the members, positive; all equal unless given.
    """

    members: Sequence[Acquisition]
    weights: Sequence[float] | None = None

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the log of the mean at the rows of X; -inf only if every member is."""
        return _log_mean_exp(self._weighted(np.stack([member.value(X) for member in self.members])))[0]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return the log of the mean, and its gradient: the members' gradients weighted by their shares of the mean."""
        values, gradients = _all(self.members, X)
        value, shares = _log_mean_exp(self._weighted(values))
        return value, (shares[:, :, None] * gradients).sum(axis=0)

    def _weighted(self, values: Array) -> Array:  # (k, m)
        if self.weights is None:
            return values
        weights = np.asarray(self.weights)
        return np.asarray(values + np.log(weights / weights.mean())[:, None])


def _all(members: Sequence[Acquisition], X: Array) -> tuple[Array, Array]:  # (k, m), (k, m, d)
    pairs = [member.value_and_gradient(X) for member in members]
    return np.stack([values for values, _ in pairs]), np.stack([gradient for _, gradient in pairs])


def _log_mean_exp(values: Array) -> tuple[Array, Array]:  # (k, m) -> (m,), (k, m)
    """Return the log of the mean of exp over the first axis, and each member's share of that sum."""
    top = values.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    weights = np.exp(values - top)
    total = weights.sum(axis=0)
    with np.errstate(divide="ignore"):  # log 0 is the -inf meant
        return top + np.log(total / len(values)), weights / np.where(total > 0.0, total, 1.0)
