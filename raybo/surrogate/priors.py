"""Priors of hyperparameters, as densities of u = log(hyperparameter) up to a constant, with their derivatives in u."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from raybo.common.errors import MethodError
from raybo.surrogate.kernels import Array


@dataclass(frozen=True)
class LogNormal:
    """u is normal: -(u - log_median)^2 / (2 log_sd^2)."""

    log_median: float
    log_sd: float

    def log_density(self, u: Array) -> tuple[Array, Array]:
        """Return log density of u, and its derivative."""
        z = (u - self.log_median) / self.log_sd
        return -0.5 * z * z, -z / self.log_sd


@dataclass(frozen=True)
class Gamma:
    """The hyperparameter is Gamma(shape, rate): shape u - rate exp(u).

    The Jacobian of the logarithm is included; without it a shape below 1 has its mode at 0, where no fit ends.
    """

    shape: float
    rate: float

    def log_density(self, u: Array) -> tuple[Array, Array]:
        """Return log density of u, and its derivative."""
        e = self.rate * np.exp(u)
        return self.shape * u - e, self.shape - e


@dataclass(frozen=True)
class Normal:
    """The hyperparameter itself is normal: -(exp(u) - mean)^2 / (2 sd^2), without a Jacobian, as GPyTorch adds it."""

    mean: float
    sd: float

    def log_density(self, u: Array) -> tuple[Array, Array]:
        """Return log density of the hyperparameter, and its derivative in u."""
        value = np.exp(u)
        z = (value - self.mean) / self.sd
        return -0.5 * z * z, -z * value / self.sd


@dataclass(frozen=True)
class Flat:
    """Nothing is preferred within the range."""

    def log_density(self, u: Array) -> tuple[Array, Array]:
        """Return zeros, and zeros."""
        return np.zeros_like(u), np.zeros_like(u)


Prior: TypeAlias = LogNormal | Gamma | Normal | Flat
Values: TypeAlias = float | tuple[float, ...]  # one for all length-scales, or one each


@dataclass(frozen=True)
class Hyperparameter:
    """A prior, a range, a value to start from; `fixed` if it is not fitted.

    All positive, and on the hyperparameter's own scale; of length-scales, one for all axes or one each.

    Raises:
        MethodError: a value that is not positive, or an empty range.
    """

    prior: Prior = field(default_factory=Flat)
    low: Values = 1e-3
    high: Values = 1e3
    start: Values = 1.0
    fixed: Values | None = None

    def __post_init__(self) -> None:
        given = [self.low, self.high, self.start] + ([] if self.fixed is None else [self.fixed])
        if not all(np.all(np.isfinite(v)) and np.all(np.asarray(v) > 0.0) for v in given):
            raise MethodError(f"hyperparameters and their ranges must be positive and finite, got {self}")
        if not np.all(np.asarray(self.low) <= np.asarray(self.high)):
            raise MethodError(f"a hyperparameter's low must not be above its high, got {self}")
