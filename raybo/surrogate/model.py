"""What is assumed of the objective: a kernel, and a prior and a range for each of its hyperparameters.

theta holds the logs of the hyperparameters: d length-scales (or one that all axes share), the outputscale, the noise
variance. A hyperparameter with a fixed value is not fitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from raybo.surrogate.kernels import Array, KernelName


@dataclass(frozen=True)
class LogNormal:
    """log of the hyperparameter is normal: (u - log_median)^2 / (2 log_sd^2), up to a constant."""

    log_median: float
    log_sd: float

    def log_density(self, u: Array) -> tuple[Array, Array]:
        """Log density of u = log(hyperparameter), up to a constant, and its derivative."""
        z = (u - self.log_median) / self.log_sd
        return -0.5 * z * z, -z / self.log_sd


@dataclass(frozen=True)
class Gamma:
    """Gamma(shape, rate) of the hyperparameter, as a density of u = log(hyperparameter): shape u - rate exp(u).

    The Jacobian is included; without it shapes below 1 have no mode.
    """

    shape: float
    rate: float

    def log_density(self, u: Array) -> tuple[Array, Array]:
        """Log density of u = log(hyperparameter), up to a constant, and its derivative."""
        e = self.rate * np.exp(u)
        return self.shape * u - e, self.shape - e


@dataclass(frozen=True)
class Flat:
    """Uniform in the log of the hyperparameter, within its range."""

    def log_density(self, u: Array) -> tuple[Array, Array]:
        """Zero, and zero."""
        return np.zeros_like(u), np.zeros_like(u)


Prior: TypeAlias = LogNormal | Gamma | Flat


@dataclass(frozen=True)
class Hyperparameter:
    """A prior, a range, a value to start from; `fixed` where it is not fitted."""

    prior: Prior = field(default_factory=Flat)
    low: float = 1e-3
    high: float = 1e3
    start: float = 1.0
    fixed: float | None = None


@dataclass(frozen=True)
class Model:
    """A kernel with its hyperparameters; `shared_lengthscale` for one length-scale on all axes."""

    kernel: KernelName = "matern52"
    lengthscale: Hyperparameter = field(default_factory=lambda: Hyperparameter(low=5e-3, high=20.0, start=0.5))
    outputscale: Hyperparameter = field(default_factory=lambda: Hyperparameter(low=1e-3, high=1e3, start=1.0))
    noise_variance: Hyperparameter = field(default_factory=lambda: Hyperparameter(low=1e-6, high=1.0, start=1e-3))
    shared_lengthscale: bool = False

    def lengthscales(self, d: int) -> int:
        """How many entries of theta are length-scales."""
        return 1 if self.shared_lengthscale else d

    def parts(self, d: int) -> list[Hyperparameter]:
        """The hyperparameter of each entry of theta."""
        return [self.lengthscale] * self.lengthscales(d) + [self.outputscale, self.noise_variance]

    def start(self, d: int) -> Array:  # (p,)
        """theta to start from where nothing is known."""
        values = [part.start if part.fixed is None else part.fixed for part in self.parts(d)]
        logs: Array = np.log(np.array(values))
        return logs

    def bounds(self, d: int) -> Array:  # (p, 2)
        """The range of each entry of theta; both ends are the value where it is fixed."""
        ranges = [(p.low, p.high) if p.fixed is None else (p.fixed, p.fixed) for p in self.parts(d)]
        logs: Array = np.log(np.array(ranges))
        return logs

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """Log prior density of theta, up to a constant, and its gradient; fixed entries add nothing."""
        value, gradient = 0.0, np.zeros_like(theta)
        k = len(theta) - 2
        for where, part in ((slice(0, k), self.lengthscale), (k, self.outputscale), (k + 1, self.noise_variance)):
            if part.fixed is None:
                density, slope = part.prior.log_density(theta[where])
                value += float(np.sum(density))
                gradient[where] = slope
        return value, gradient

    def expand(self, theta: Array, d: int) -> tuple[Array, float, float]:
        """Length-scales (d,), outputscale and noise variance of theta."""
        k = len(theta) - 2
        lengthscale = np.exp(theta[:k])
        if k != d:
            lengthscale = np.full(d, lengthscale[0])
        return lengthscale, math.exp(theta[k]), math.exp(theta[k + 1])
