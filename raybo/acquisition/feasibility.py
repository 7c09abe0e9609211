"""The prediction of a new observation, noise included: for the probability that a trial succeeds."""

from __future__ import annotations

from dataclasses import dataclass

from raybo.acquisition.protocols import Array
from raybo.surrogate import GP


@dataclass(frozen=True)
class Observed:
    """The distribution of what would be observed at a point: the posterior of f with the noise added.

    Attributes:
        gp: posterior of f.
    """

    gp: GP

    def posterior(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m,)
        """Return mean and variance of an observation at the rows of X."""
        mean, var = self.gp.posterior(X)
        return mean, var + self.gp.noise_variance

    def posterior_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:  # (m,), (m,), (m, d), (m, d)
        """Return mean, variance and the gradients of both at the rows of X."""
        mean, var, dmean, dvar = self.gp.posterior_gradient(X)
        return mean, var + self.gp.noise_variance, dmean, dvar

    def joint(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, m)
        """Return mean and covariance of observations at the rows of X."""
        mean, cov = self.gp.joint(X)
        cov.flat[:: len(cov) + 1] += self.gp.noise_variance
        return mean, cov
