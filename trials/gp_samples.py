"""Smooth random landscapes in many dimensions: samples of a Gaussian process, with known scales and maxima.

    raybo tune trials/gp_samples.py --set dimension=50 --set index=3

The objectives of local Bayesian optimisation on the unit cube: all of one dimension share their length-scales, `index`
chooses one of them, and `noise` is the standard deviation of an error that belongs to the configuration. `value` has
this error; `noise_free` has not, and `regret` is how far that lies below the maximum.

Mueller, von Rohr, Trimpe (2021), "Local policy search with Bayesian optimization", NeurIPS, section 5.1 and appendix;
also of Nguyen et al. (NeurIPS 2022) and Fan, Wang, Ng, Hu (NeurIPS 2024).

The published code draws values at 1,000 Sobol points and takes the posterior mean given them, under its library's
default noise variance, ln 2: that smooths the samples. `condition_noise=1e-4` is the cleaner variant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import raybo

Array: TypeAlias = NDArray[np.float64]

POINTS = 1_000
JITTER = 1e-9  # of the unit variance: few dimensions make the draw's covariance singular
CLIMBS = 15  # highest of the points, from which the maximum is sought


def mean_distance(d: int) -> float:
    """A formula for the mean distance between two uniform points of the unit cube."""
    return math.sqrt(d / 6) * math.sqrt((1 + 2 * math.sqrt(1 - 3 / (5 * d))) / 3)


def typical_lengthscale(d: int) -> float:
    """0.1 in two dimensions, and grows as distances do."""
    return 0.1 * mean_distance(d) / mean_distance(2)


def lengthscales(d: int) -> Array:  # (d,)
    """Return the lengthscales of all samples of this dimension: drawn once, 1.4 to 2.6 times the typical one."""
    return typical_lengthscale(d) * np.random.default_rng([d]).uniform(1.4, 2.6, d)


@dataclass(frozen=True, eq=False)
class Landscape:
    """f(x) = sum over i of a_i exp(-|x - x_i|^2 / 2), with distances in length-scales.

    Attributes:
        centres: (n, d), the x_i in length-scales. amplitudes: (n,). values: (n,), f at the x_i.
        lengthscale: (d,).
    """

    centres: Array
    amplitudes: Array
    values: Array
    lengthscale: Array

    def __call__(self, x: Array) -> float:  # (d,)
        """f(x)."""
        return float(self._bells(x) @ self.amplitudes)

    def minus_with_gradient(self, x: Array) -> tuple[float, Array]:  # (d,) -> (), (d,)
        """-f(x) and its gradient, for a minimiser."""
        weighted = self._bells(x) * self.amplitudes
        slope = weighted @ (self.centres - x / self.lengthscale) / self.lengthscale
        return -float(weighted.sum()), -slope

    def _bells(self, x: Array) -> Array:  # (n,)
        apart = self.centres - x / self.lengthscale
        bells: Array = np.exp(-0.5 * np.einsum("ij,ij->i", apart, apart))
        return bells


@lru_cache(maxsize=4)  # once a process: an evaluation takes a fraction of a millisecond, this a tenth of a second
def landscape(dimension: int, index: int, condition_noise: float) -> Landscape:
    """One of the samples."""
    from scipy.linalg import cho_factor, cho_solve, cholesky
    from scipy.spatial.distance import cdist
    from scipy.stats import qmc

    lengthscale = lengthscales(dimension)
    centres = qmc.Sobol(dimension, scramble=False).random(1024)[:POINTS] / lengthscale
    K = np.exp(-0.5 * cdist(centres, centres, "sqeuclidean"))
    eye = np.eye(POINTS)
    normal = np.random.default_rng([dimension, index]).standard_normal(POINTS)
    y = cholesky(K + JITTER * eye, lower=True) @ normal
    amplitudes = cho_solve(cho_factor(K + condition_noise * eye, lower=True), y)
    return Landscape(centres, amplitudes, K @ amplitudes, lengthscale)


@lru_cache(maxsize=4)
def maximum(dimension: int, index: int, condition_noise: float) -> tuple[Array, float]:  # (d,), ()
    """Return the maximiser of a sample in the unit cube, and its maximum: the best of 15 climbs."""
    from scipy.optimize import minimize

    f = landscape(dimension, index, condition_noise)
    best = np.argsort(-f.values, kind="stable")[:CLIMBS]
    climbs = [
        minimize(f.minus_with_gradient, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * dimension)
        for start in f.centres[best] * f.lengthscale
    ]
    highest = min(climbs, key=lambda climb: float(climb.fun))
    return np.asarray(highest.x, dtype=np.float64), -float(highest.fun)


def unit_cube(dimension: int) -> raybo.Space:
    """x1, x2, ... from 0 to 1."""
    return raybo.Space({f"x{i}": raybo.Float(0.0, 1.0) for i in range(1, dimension + 1)})


@raybo.objective(space=unit_cube, mode="max")
def gp_sample(
    config: dict[str, Any],
    *,
    dimension: int = 25,
    index: int = 0,
    noise: float = 0.1,
    condition_noise: float = math.log(2),
) -> dict[str, float]:
    """The sample's value with its error, without it, and how far that is below the maximum."""
    f = landscape(dimension, index, condition_noise)
    x = np.array([config[f"x{i}"] for i in range(1, dimension + 1)], dtype=np.float64)
    value = f(x)
    error = np.random.default_rng([index, *np.frombuffer(x.tobytes(), np.uint32).tolist()]).standard_normal()
    return {
        "value": value + noise * float(error),
        "noise_free": value,
        "regret": maximum(dimension, index, condition_noise)[1] - value,
    }
