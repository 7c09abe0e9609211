"""The model of the objective: a kernel, a mean, and a prior and a range for each hyperparameter.

theta holds the logs of the hyperparameters: d length-scales (or one that all axes share), the outputscale, those of a
structure's further parts if the kernel has one, and the noise variance. A hyperparameter with a fixed value is not
fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from raybo.surrogate.kernels import Array, Kernel, KernelName, StationaryKernel
from raybo.surrogate.priors import Hyperparameter, LogNormal, Values
from raybo.surrogate.structured import Structure


@dataclass(frozen=True)
class Model:
    """A kernel with its hyperparameters, and a mean.

    Attributes:
        kernel: name of the profile.
        lengthscale, outputscale, noise_variance: what is assumed of each; variances are of standardised values.
        shared_lengthscale: one length-scale for all axes; not with a structure.
        mean: "zero", or "constant", which is estimated by generalised least squares under the same theta,
            1'A^-1 y / 1'A^-1 1, and then taken as known.
        structure: what the kernel has beside the stationary one; None for a stationary kernel.
    """

    kernel: KernelName = "matern52"
    lengthscale: Hyperparameter = field(default_factory=lambda: Hyperparameter(low=5e-3, high=20.0, start=0.5))
    outputscale: Hyperparameter = field(default_factory=lambda: Hyperparameter(low=1e-3, high=1e3, start=1.0))
    noise_variance: Hyperparameter = field(default_factory=lambda: Hyperparameter(low=1e-6, high=1.0, start=1e-3))
    shared_lengthscale: bool = False
    mean: Literal["zero", "constant"] = "zero"
    structure: Structure | None = None

    def lengthscales(self, d: int) -> int:
        """The number of entries of theta that are length-scales."""
        return 1 if self.shared_lengthscale else d

    def size(self, d: int) -> int:
        """The number of entries of theta."""
        return int(self.parts(d)[-1][0].stop)

    def parts(self, d: int) -> tuple[tuple[slice, Hyperparameter], ...]:
        """Return the hyperparameters with their entries of theta, in order."""
        if self.structure is not None:
            each = self.structure.hyperparameters(self.lengthscale, self.outputscale, self.noise_variance)
            return tuple((slice(i, i + 1), part) for i, part in enumerate(each))
        k = self.lengthscales(d)
        return (
            (slice(0, k), self.lengthscale),
            (slice(k, k + 1), self.outputscale),
            (slice(k + 1, k + 2), self.noise_variance),
        )

    def start(self, d: int) -> Array:  # (p,)
        """Return the theta to start from if nothing is known, within the bounds."""
        low, high = self.bounds(d).T
        return np.clip(_logs(self.parts(d), lambda part: part.start), low, high)

    def bounds(self, d: int) -> Array:  # (p, 2)
        """Return the range of each entry of theta; both ends are the value of one that is fixed."""
        parts = self.parts(d)
        low = _logs(parts, lambda part: part.low if part.fixed is None else part.fixed)
        high = _logs(parts, lambda part: part.high if part.fixed is None else part.fixed)
        return np.stack([low, high], axis=1)

    def free(self, d: int) -> NDArray[np.bool_]:  # (p,)
        """Return which entries of theta are fitted."""
        bounds = self.bounds(d)
        return np.asarray(bounds[:, 0] < bounds[:, 1])

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """Return the log prior density of theta, up to a constant, and its gradient; fixed entries add nothing."""
        if self.structure is not None:
            medians, sds = self._log_normals
            z = (theta - medians) / sds
            return -0.5 * float(z @ z), -z / sds
        value, gradient = 0.0, np.zeros_like(theta)
        for where, part in self.parts(len(theta) - 2):
            if part.fixed is None:
                density, gradient[where] = part.prior.log_density(theta[where])
                value += float(density.sum())
        return value, gradient

    def kernel_at(self, theta: Array, categorical: tuple[bool, ...]) -> Kernel:
        """Return the kernel with the hyperparameters of theta."""
        if self.structure is not None:
            return self.structure.kernel(self.kernel, theta)
        return self.stationary_at(theta, categorical)

    def stationary_at(self, theta: Array, categorical: tuple[bool, ...]) -> StationaryKernel:
        """Return the kernel of a model without a structure, with the hyperparameters of theta."""
        assert self.structure is None
        lengthscale = np.exp(theta[:-2])
        if len(lengthscale) != len(categorical):
            lengthscale = np.full(len(categorical), lengthscale[0])
        return StationaryKernel(self.kernel, lengthscale, math.exp(theta[-2]), categorical)

    @cached_property
    def _log_normals(self) -> tuple[Array, Array]:  # (p,), (p,)
        """Log medians and standard deviations of a structure's priors, all of which are log-normal."""
        assert self.structure is not None
        priors = []
        for _, part in self.parts(self.structure.d):
            prior = LogNormal(0.0, math.inf) if part.fixed is not None else part.prior  # flat, and so nothing
            assert isinstance(prior, LogNormal)
            priors.append((prior.log_median, prior.log_sd))
        medians, sds = np.array(priors).T
        return medians, sds


def _logs(parts: Sequence[tuple[slice, Hyperparameter]], value: Callable[[Hyperparameter], Values]) -> Array:  # (p,)
    theta = np.empty(parts[-1][0].stop)
    for where, part in parts:
        theta[where] = value(part)
    return np.log(theta)
