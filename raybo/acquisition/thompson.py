"""Thompson sampling: the acquisition is one function drawn from the posterior.

    JointDraw    exact, at a finite set of points, O(m^3); the sets of the random-grid solver
    Inflated     a function draw (a sample path of the surrogate's room) with its spread about the mean multiplied

Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", Algorithm
2: f_t has the posterior's mean and kappa^2 times its covariance, so f_t = mean + kappa (g - mean) with g from the
posterior. (The paper's beta_t multiplies the standard deviation: a kappa here.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import cholesky

from raybo.acquisition.protocols import Array, Draw, Surrogate
from raybo.errors import NumericalError

LARGEST_JOINT = 2000  # beyond it the Cholesky factor of the points' covariance costs seconds: use a function draw
JITTER, DOUBLINGS = 1e-10, 40  # of the largest variance; doubled until the covariance factorises


@dataclass(frozen=True)
class JointDraw:
    """One draw, exact and joint, at the points where it is called; for a finite set of them, in one call.

    It has no gradient, and two calls are not one draw.

    Attributes:
        gp: posterior of f.
        seed: of this draw.
        kappa: multiplies the standard deviations.
        inflation: adds to the standard deviations, for the inexact GP-TS of Theorem 4: (1 / eta - 1) B, see
            `inexact_inflation`. The paper gives only this diagonal; the correlations are the posterior's, and points
            where f is known are independent of all others.
    """

    gp: Surrogate
    seed: int
    kappa: float = 1.0
    inflation: float = 0.0
    is_joint: ClassVar[bool] = True  # tells the solvers not to divide a call

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """mean(x) + (kappa std(x) + inflation) xi(x), xi normal with the posterior's correlations.

        Raises:
            ValueError: more than 2,000 points.
            NumericalError: their covariance cannot be factorised, as when it is not finite.
        """
        if len(X) > LARGEST_JOINT:
            raise ValueError(f"a joint draw is for at most {LARGEST_JOINT} points, got {len(X)}: use a function draw")
        mean, cov = self.gp.joint(X)
        L = _factor(cov)
        deviation = L @ np.random.default_rng(self.seed).standard_normal(len(X))
        # divided by its own deviation, jitter included: where f is known the jitter is all, and xi independent
        xi = deviation / np.sqrt((L * L).sum(axis=1))
        std = np.sqrt(np.maximum(np.diagonal(cov), 0.0))
        return np.asarray(mean + (self.kappa * std + self.inflation) * xi)


@dataclass(frozen=True)
class Inflated:
    """mean + kappa (draw - mean): a function draw with kappa times the posterior's spread.

    Attributes:
        gp: the posterior that the draw is from.
        draw: one function drawn from it.
        kappa: multiplies the standard deviations; with 1 this is the draw itself.
    """

    gp: Surrogate
    draw: Draw
    kappa: float

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """The inflated draw at the rows of X."""
        mean, _ = self.gp.posterior(X)
        return mean + self.kappa * (self.draw.value(X) - mean)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """The inflated draw and its gradient."""
        mean, _, dmean, _ = self.gp.posterior_gradient(X)
        value, gradient = self.draw.value_and_gradient(X)
        return mean + self.kappa * (value - mean), dmean + self.kappa * (gradient - dmean)


def inexact_inflation(eta: float, B: float = 1.0) -> float:
    """(1 / eta - 1) B, which Theorem 4 adds to the standard deviation.

    Args:
        eta: in (0, 1], the share of the maximum that the solver reaches at worst; unknown in practice, and the random
            grid does without (Theorem 8).
        B: bound of the objective's norm in the kernel's function space, standardised units.
    """
    if not 0.0 < eta <= 1.0:
        raise ValueError(f"eta must lie in (0, 1], got {eta}")
    return (1.0 / eta - 1.0) * B


def _factor(cov: Array) -> Array:  # (m, m)
    """Lower Cholesky factor of a covariance matrix with the least jitter of the ladder that makes it exist."""
    diagonal = np.arange(len(cov))
    jitter = JITTER * max(float(cov[diagonal, diagonal].max()), 1e-12)
    for _ in range(DOUBLINGS):
        attempt = cov.copy()
        attempt[diagonal, diagonal] += jitter
        try:
            L = np.asarray(cholesky(attempt, lower=True, overwrite_a=True, check_finite=False))
        except np.linalg.LinAlgError:
            jitter *= 2.0
            continue
        if np.isfinite(L.diagonal()).all():
            return L
        break
    raise NumericalError(f"the covariance of {len(cov)} points cannot be factorised")
