"""Transforms of the observed values before the GP sees them: standardised, and tamed where a few are far off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import minimize_scalar

from raybo.surrogate.kernels import Array

CLIP = 4.0  # robust standard deviations below the median: what is worse than that is all the same
ROBUST = 1.4826  # makes the median absolute deviation of a normal sample its standard deviation


class Outputs(Protocol):
    """A monotone transform of the maximised values."""

    def apply(self, y: Array) -> Array:  # (n,) -> (n,)
        """Into the units of the GP."""
        ...


@dataclass(frozen=True)
class Standardised:
    """(y - mean) / std, safe for any finite values; std is 1 where all values are equal."""

    mean: float
    std: float

    @classmethod
    def of(cls, y: Array) -> Standardised:
        """The transform that gives y (n,) mean 0 and variance 1."""
        if len(y) == 0:
            return cls(0.0, 1.0)
        largest = float(np.max(np.abs(y)))
        unit = largest if largest > 0 else 1.0  # squares of 1e300 overflow, and of 1e-300 vanish
        z = y / unit
        mean, std = float(np.mean(z)), float(np.std(z))
        if std <= 1e-12:  # of the largest value: equal but for rounding
            return cls(mean * unit, unit)
        return cls(mean * unit, std * unit)

    def apply(self, y: Array) -> Array:
        """Into standardised units."""
        return (y / self.std) - (self.mean / self.std)


@dataclass(frozen=True)
class Tamed:
    """Clipped below, then Yeo-Johnson's power transform with the most likely power, then standardised.

    A few values far below the rest (a penalty, a steep wall) would otherwise set the scale on which the GP sees the
    good ones. The order of values is kept, but for those below the clip.

    Attributes:
        raw, clipped, final: standardise the values, the clipped ones, and those after the power.
        floor: what lies below is raised to it, in the units of `raw`.
        power: Yeo-Johnson's lambda, in [-2, 4]; 1 changes nothing.
    Source: Yeo, Johnson (2000), "A new family of power transformations to improve normality or symmetry", eq. (2.1).
    """

    raw: Standardised
    floor: float
    clipped: Standardised
    power: float
    final: Standardised

    @classmethod
    def of(cls, y: Array) -> Tamed:
        """The transform that suits y (n,), n >= 1."""
        raw = Standardised.of(y)
        z = raw.apply(y)
        median = float(np.median(z))
        spread = ROBUST * float(np.median(np.abs(z - median)))
        floor = median - CLIP * spread if spread > 0.0 else -np.inf
        clipped = Standardised.of(np.maximum(z, floor))
        z = clipped.apply(np.maximum(z, floor))
        power = _most_likely_power(z)
        return cls(raw, floor, clipped, power, Standardised.of(yeo_johnson(z, power)))

    def apply(self, y: Array) -> Array:
        """Into standardised units."""
        return self.final.apply(yeo_johnson(self.before_power(y), self.power))

    def before_power(self, y: Array) -> Array:
        """Clipped and standardised only."""
        return self.clipped.apply(np.maximum(self.raw.apply(y), self.floor))


def yeo_johnson(z: Array, power: float) -> Array:  # (n,) -> (n,)
    """Yeo and Johnson's transform, increasing in z; the identity at power 1."""
    size = np.log1p(np.abs(z))
    up = size if abs(power) < 1e-8 else np.expm1(power * size) / power
    other = 2.0 - power
    down = size if abs(other) < 1e-8 else np.expm1(other * size) / other
    return np.where(z >= 0.0, up, -down)


def _most_likely_power(z: Array) -> float:
    """The power under which the transformed values are most likely normal; 1 where they hardly differ."""
    if float(np.std(z)) < 1e-9:
        return 1.0
    jacobian = float(np.sum(np.sign(z) * np.log1p(np.abs(z))))

    def cost(power: float) -> float:
        variance = float(np.var(yeo_johnson(z, power)))
        return 0.5 * len(z) * float(np.log(max(variance, 1e-300))) - (power - 1.0) * jacobian

    return float(minimize_scalar(cost, bounds=(-2.0, 4.0), method="bounded", options={"xatol": 1e-2}).x)
