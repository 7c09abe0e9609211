"""Priors of hyperparameters, as densities of u = log(hyperparameter) up to a constant, with their derivatives in u."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from raybo.surrogate.kernels import Array


@dataclass(frozen=True)
class LogNormal:
    """u is normal: -(u - log_median)^2 / (2 log_sd^2)."""

    log_median: float
    log_sd: float

    def log_density(self, u: Array) -> tuple[Array, Array]:
        """Log density of u, and its derivative."""
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
        """Log density of u, and its derivative."""
        e = self.rate * np.exp(u)
        return self.shape * u - e, self.shape - e


@dataclass(frozen=True)
class Normal:
    """The hyperparameter itself is normal: -(exp(u) - mean)^2 / (2 sd^2), without a Jacobian, as GPyTorch adds it."""

    mean: float
    sd: float

    def log_density(self, u: Array) -> tuple[Array, Array]:
        """Log density of the hyperparameter, and its derivative in u."""
        value = np.exp(u)
        z = (value - self.mean) / self.sd
        return -0.5 * z * z, -z * value / self.sd


@dataclass(frozen=True)
class Flat:
    """Nothing is preferred within the range."""

    def log_density(self, u: Array) -> tuple[Array, Array]:
        """Zero, and zero."""
        return np.zeros_like(u), np.zeros_like(u)


Prior: TypeAlias = LogNormal | Gamma | Normal | Flat
