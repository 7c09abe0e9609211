"""For the probability that a trial succeeds: new observations, noise included, and what counts only where it is low."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.acquisition.protocols import Acquisition, Array
from raybo.surrogate import GP


@dataclass(frozen=True)
class Observed:
    """The distribution of what would be observed at a point: the posterior of f with the noise added.

    Attributes:
        gp: posterior of f.
    """

    gp: GP

    def posterior(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m,)
        """Mean and variance of an observation at the rows of X."""
        mean, var = self.gp.posterior(X)
        return mean, var + self.gp.noise_variance

    def posterior_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:  # (m,), (m,), (m, d), (m, d)
        """Mean, variance and the gradients of both at the rows of X."""
        mean, var, dmean, dvar = self.gp.posterior_gradient(X)
        return mean, var + self.gp.noise_variance, dmean, dvar

    def joint(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, m)
        """Mean and covariance of observations at the rows of X."""
        mean, cov = self.gp.joint(X)
        cov.flat[:: len(cov) + 1] += self.gp.noise_variance
        return mean, cov


@dataclass(frozen=True)
class AtMost:
    """An acquisition, where it is below a level; else that level.

    Attributes:
        part: the acquisition. level: from which on more is worth nothing.
    """

    part: Acquisition
    level: float

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """The lesser of the two at the rows of X."""
        return np.minimum(self.part.value(X), self.level)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """The lesser and its gradient, 0 where that is the level."""
        value, gradient = self.part.value_and_gradient(X)
        return np.minimum(value, self.level), np.where((value < self.level)[:, None], gradient, 0.0)
