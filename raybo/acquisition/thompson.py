"""Thompson sampling: the acquisition is one function drawn from the posterior.

    JointDraw    exact, at a finite set of m points, O(m^3); for the sets of the random-grid solver
    Inflated     a function draw (a sample path from `raybo.surrogate`) with its spread about the mean multiplied

Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", Algorithm
2: f_t has the posterior's mean and kappa^2 times its covariance, so f_t = mean + kappa (g - mean) with g from the
posterior. (The paper's beta_t multiplies the standard deviation: a kappa here.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raybo.acquisition.confidence import std_and_gradient
from raybo.acquisition.protocols import Array, Draw, Surrogate
from raybo.surrogate.factor import cholesky

LARGEST_JOINT = 2000  # beyond it the Cholesky factor of the points' covariance costs seconds: use a function draw
KNOWN = 1e-12  # standard deviation, in standardised units, below which f is known
# of the largest variance. Never 0, as only jitter is drawn where f is known; and in finer steps than the GP's own
# ladder, as what is added to a thousand close points shows in their draw
JITTERS = tuple(1e-10 * 2.0**k for k in range(40))


@dataclass(frozen=True)
class JointDraw:
    """One draw, exact and joint, at the points where it is called; for a finite set of them, in one call.

    It has no gradient, and two calls are not one draw.

    Attributes:
        gp: posterior of f.
        seed: of this draw.
        kappa: multiplies the standard deviations.
        inflation: adds to the standard deviations, for the inexact GP-TS of Theorem 4: (1 / eta - 1) B, with eta in
            (0, 1] the share of the maximum that the solver reaches at worst, unknown in practice (the random grid does
            without, Theorem 8), and B a bound of the objective's norm, standardised. The paper gives only this
            diagonal; the correlations are the posterior's, and points where f is known are independent of all others.
    """

    gp: Surrogate
    seed: int
    kappa: float = 1.0
    inflation: float = 0.0
    is_joint: ClassVar[bool] = True  # tells the solvers not to divide a call

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return mean(x) + (kappa std(x) + inflation) xi(x), xi normal with the posterior's correlations.

        Raises:
            ValueError: more than 2,000 points.
            NumericalError: their covariance cannot be factorised, as when it is not finite.
        """
        if len(X) > LARGEST_JOINT:
            raise ValueError(f"a joint draw is for at most {LARGEST_JOINT} points, got {len(X)}: use a function draw")
        mean, cov = self.gp.joint(X)
        L, _ = cholesky(cov, JITTERS, max(float(np.diagonal(cov).max()), 1e-12))
        deviation = L @ np.random.default_rng(self.seed).standard_normal(len(X))
        # divided by its own deviation, jitter included: where f is known the jitter is all, and xi independent
        xi = deviation / np.sqrt((L * L).sum(axis=1))
        std = np.sqrt(np.maximum(np.diagonal(cov), 0.0))
        return np.asarray(mean + (self.kappa * std + self.inflation) * xi)


@dataclass(frozen=True)
class Inflated:
    """mean + (kappa + inflation / std) (draw - mean): a function draw of greater spread than the posterior's.

    Attributes:
        gp: the posterior that the draw is from.
        draw: one function drawn from it.
        kappa, inflation: as `JointDraw`'s; with 1 and 0 this is the draw itself. Where f is known it is the mean.
    """

    gp: Surrogate
    draw: Draw
    kappa: float
    inflation: float = 0.0

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the inflated draw at the rows of X."""
        mean, var = self.gp.posterior(X)
        return mean + self._spread(np.sqrt(var)) * (self.draw.value(X) - mean)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return the inflated draw and its gradient."""
        mean, var, dmean, dvar = self.gp.posterior_gradient(X)
        value, gradient = self.draw.value_and_gradient(X)
        std, dstd = std_and_gradient(var, dvar)
        spread = self._spread(std)
        # through the spread: d(inflation / std) = -(inflation / std) dstd / std
        share = np.divide(spread - self.kappa, std, out=np.zeros_like(std), where=std > KNOWN)
        climb = dmean + spread[:, None] * (gradient - dmean) - ((value - mean) * share)[:, None] * dstd
        return mean + spread * (value - mean), climb

    def _spread(self, std: Array) -> Array:  # (m,)
        """Return the factor of the draw's distance from the mean."""
        return self.kappa + np.divide(self.inflation, std, out=np.zeros_like(std), where=std > KNOWN)
