"""Mixtures of surrogates: one member a sample of the hyperparameters, or a fantasy of pending results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from raybo.surrogate.kernels import Array

if TYPE_CHECKING:
    from raybo.surrogate.gp import GP


@dataclass(frozen=True, eq=False)
class Mixture:
    """GPs of equal weight, with the interface of one; acquisitions may also average over the members.

    Its mean and covariance are those of the mixture: the members' covariances averaged, plus the covariance of their
    means.

    Attributes:
        members: at least one.
    """

    members: tuple[GP, ...]

    @property
    def d(self) -> int:
        """Number of axes."""
        return self.members[0].d

    def posterior(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m,)
        """Mean and variance of f at the rows of X."""
        means, variances = map(np.stack, zip(*(gp.posterior(X) for gp in self.members), strict=True))
        return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)

    def posterior_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:  # (m,), (m,), (m, d), (m, d)
        """Mean and variance of f at the rows of X, and their gradients in x."""
        parts = zip(*(gp.posterior_gradient(X) for gp in self.members), strict=True)
        means, variances, dmeans, dvariances = map(np.stack, parts)
        mean, dmean = means.mean(axis=0), dmeans.mean(axis=0)
        spread = 2.0 * np.mean((means - mean)[:, :, None] * (dmeans - dmean), axis=0)
        return mean, variances.mean(axis=0) + means.var(axis=0), dmean, dvariances.mean(axis=0) + spread

    def joint(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, m)
        """Mean and covariance of f at the rows of X."""
        means, covariances = map(np.stack, zip(*(gp.joint(X) for gp in self.members), strict=True))
        mean = means.mean(axis=0)
        deviations = means - mean
        return mean, covariances.mean(axis=0) + deviations.T @ deviations / len(means)

    def believing(self, X: Array) -> Mixture:  # (m, d)
        """Each member believing the pending points at its own posterior mean."""
        return Mixture(tuple(gp.believing(X) for gp in self.members))
