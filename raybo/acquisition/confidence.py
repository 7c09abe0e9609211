"""Upper confidence bounds, and the published schedules of their exploration.

    kappa   multiplies the standard deviation: mean + kappa std; called exploration in this package
    beta    kappa squared, if a paper writes mean + sqrt(beta) std

Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", Algorithms 1
and 2, Theorems 3, 7, 8. That paper's beta_t multiplies the standard deviation, so it is a kappa here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from raybo.acquisition.protocols import Array, Surrogate

# c in kappa = B + R sqrt(2 (gain + 1 + log(c / delta))): one for each event that must hold with probability 1 - delta
THEORY_CONSTANT: Mapping[str, int] = MappingProxyType(
    {
        "ucb": 1,  # Algorithm 1, Theorem 3
        "ts": 2,  # Algorithm 2
        "random-grid-ucb": 2,  # Theorem 7
        "random-grid-ts": 3,  # Theorem 8
    }
)


@dataclass(frozen=True)
class UpperConfidence:
    """mean + kappa std. With kappa = 0 the posterior mean, with kappa < 0 a lower confidence bound.

    Attributes:
        gp: posterior of f.
        kappa: how many standard deviations to add, any finite number.
    """

    gp: Surrogate
    kappa: float

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the bound at the rows of X."""
        mean, var = self.gp.posterior(X)
        return mean + self.kappa * np.sqrt(np.maximum(var, 0.0))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return the bound and its gradient; if the variance vanishes its part of the gradient is 0."""
        mean, var, dmean, dvar = self.gp.posterior_gradient(X)
        if self.kappa == 0.0:
            return mean, dmean
        std, dstd = std_and_gradient(var, dvar)
        return mean + self.kappa * std, dmean + self.kappa * dstd


def std_and_gradient(var: Array, dvar: Array, floor: float = 0.0) -> tuple[Array, Array]:  # (m,), (m, d)
    """Return the standard deviation, at least `floor`, and its gradient, 0 if the floor holds."""
    std = np.sqrt(np.maximum(var, floor * floor))
    half = np.divide(0.5, std, out=np.zeros_like(std), where=var > floor * floor)
    return std, half[:, None] * dvar


def practical_kappa(t: int) -> float:
    """Return sqrt(log(t + 1)) at step t = 1, 2, ...: the experiments' schedule (there written for t = 0, 1, ...)."""
    _check_step(t)
    return math.sqrt(math.log(t + 1))


def theory_kappa(
    information_gain: float, *, B: float = 1.0, R: float = 1.0, delta: float = 0.1, result: str = "ucb"
) -> float:
    """Return B + R sqrt(2 (information_gain + 1 + log(c / delta))), with the c of the named result (THEORY_CONSTANT).

    Args:
        information_gain: of the observations so far, 0.5 log det(I + K / noise_variance) at the visited points; it
            stands in for the maximum over all sets of as many points, which the theorem asks for and nobody can
            compute.
        B: bound of the objective's norm in the kernel's function space, standardised units.
        R: sub-Gaussian scale of the noise, standardised units.
        delta: probability, in (0, 1), with which the bounds may fail.
        result: a key of THEORY_CONSTANT.
    Source: Kim et al. (2025), Algorithms 1 and 2, Theorems 7 and 8.
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie in (0, 1), got {delta}")
    log_term = math.log(THEORY_CONSTANT[result] / delta)
    return B + R * math.sqrt(2.0 * (max(information_gain, 0.0) + 1.0 + log_term))


def exploration(
    rule: str | float,
    t: int,
    *,
    information_gain: float = 0.0,
    B: float = 1.0,
    R: float = 1.0,
    delta: float = 0.1,
    result: str = "ucb",
) -> float:
    """Return kappa at step t = 1, 2, ... by rule: `practical`, `theory`, or a number, which is kappa at every step.

    Raises:
        ValueError: an unknown rule, or t below 1.
    """
    if not isinstance(rule, str):
        return float(rule)
    if rule == "practical":
        return practical_kappa(t)
    if rule == "theory":
        _check_step(t)
        return theory_kappa(information_gain, B=B, R=R, delta=delta, result=result)
    raise ValueError(f"rule must be 'practical', 'theory' or a number, got {rule!r}")


def _check_step(t: int) -> None:
    if t < 1:
        raise ValueError(f"steps are counted from 1, got t={t}")
