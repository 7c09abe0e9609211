"""What is assumed about the objective: a kernel, a mean, and a prior and a range for each hyperparameter.

theta holds the logs of the hyperparameters: d length-scales (or one that all axes share), the outputscale, the noise
variance. A hyperparameter with a fixed value is not fitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybo.common.errors import MethodError
from raybo.surrogate.kernels import Array, Kernel, KernelName
from raybo.surrogate.priors import Flat, Prior

Values: TypeAlias = float | tuple[float, ...]  # one for all length-scales, or one each


@dataclass(frozen=True)
class Hyperparameter:
    """A prior, a range, a value to start from; `fixed` where it is not fitted.

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


@dataclass(frozen=True)
class Model:
    """A kernel with its hyperparameters, and a mean.

    Attributes:
        kernel: name of the profile.
        lengthscale, outputscale, noise_variance: what is assumed of each; variances are of standardised values.
        shared_lengthscale: one length-scale for all axes.
        mean: "zero", or "constant", which is estimated by generalised least squares under the same theta,
            1'A^-1 y / 1'A^-1 1, and then taken as known.
    """

    kernel: KernelName = "matern52"
    lengthscale: Hyperparameter = field(default_factory=lambda: Hyperparameter(low=5e-3, high=20.0, start=0.5))
    outputscale: Hyperparameter = field(default_factory=lambda: Hyperparameter(low=1e-3, high=1e3, start=1.0))
    noise_variance: Hyperparameter = field(default_factory=lambda: Hyperparameter(low=1e-6, high=1.0, start=1e-3))
    shared_lengthscale: bool = False
    mean: Literal["zero", "constant"] = "zero"

    def lengthscales(self, d: int) -> int:
        """How many entries of theta are length-scales."""
        return 1 if self.shared_lengthscale else d

    def size(self, d: int) -> int:
        """How many entries theta has."""
        return self.lengthscales(d) + 2

    def start(self, d: int) -> Array:  # (p,)
        """theta to start from where nothing is known, within the bounds."""
        bounds = self.bounds(d)
        start = self._logs(d, *(p.start for p in (self.lengthscale, self.outputscale, self.noise_variance)))
        return np.clip(start, bounds[:, 0], bounds[:, 1])

    def bounds(self, d: int) -> Array:  # (p, 2)
        """The range of each entry of theta; both ends are the value where it is fixed."""
        parts = (self.lengthscale, self.outputscale, self.noise_variance)
        low = self._logs(d, *(p.low if p.fixed is None else p.fixed for p in parts))
        high = self._logs(d, *(p.high if p.fixed is None else p.fixed for p in parts))
        return np.stack([low, high], axis=1)

    def free(self, d: int) -> NDArray[np.bool_]:  # (p,)
        """Which entries of theta are fitted."""
        bounds = self.bounds(d)
        return np.asarray(bounds[:, 0] < bounds[:, 1])

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """Log prior density of theta, up to a constant, and its gradient; fixed entries add nothing."""
        value, gradient = 0.0, np.zeros_like(theta)
        k = len(theta) - 2
        for where, part in (
            (slice(0, k), self.lengthscale),
            (slice(k, k + 1), self.outputscale),
            (slice(k + 1, k + 2), self.noise_variance),
        ):
            if part.fixed is None:
                density, gradient[where] = part.prior.log_density(theta[where])
                value += float(density.sum())
        return value, gradient

    def expand(self, theta: Array, d: int) -> tuple[Array, float, float]:
        """Length-scales (d,), outputscale and noise variance of theta."""
        k = len(theta) - 2
        lengthscale = np.exp(theta[:k])
        if k != d:
            lengthscale = np.full(d, lengthscale[0])
        return lengthscale, math.exp(theta[k]), math.exp(theta[k + 1])

    def kernel_at(self, theta: Array, categorical: tuple[bool, ...]) -> Kernel:
        """The kernel with the hyperparameters of theta."""
        lengthscale, outputscale, _ = self.expand(theta, len(categorical))
        return Kernel(self.kernel, lengthscale, outputscale, categorical)

    def _logs(self, d: int, lengthscale: Values, outputscale: Values, noise_variance: Values) -> Array:  # (p,)
        k = self.lengthscales(d)
        values = np.empty(k + 2)
        values[:k], values[k], values[k + 1] = lengthscale, outputscale, noise_variance
        return np.log(values)
