"""Transforms of the observed values before the GP sees them: standardised, and tamed where a few are far off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.surrogate.kernels import Array


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
