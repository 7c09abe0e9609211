"""Transforms of the observed values before the GP sees them: standardised, and tamed if a few are far off.

Each transform is made from the values with `of`, applied with `apply`, and undone with `invert`, so that what the model
expects can be given in the user's units. All are increasing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from raybo.surrogate.kernels import Array

LARGEST = float(np.finfo(np.float64).max)
SMALLEST = float(np.finfo(np.float64).tiny)
ROBUST_SD = 1.4826  # of a normal sample, in median absolute deviations
POWERS = (-2.0, 4.0)  # among which the most likely is sought
FARTHEST = 1e9  # standard deviations at which an inverse stops that has left the transform's range
HIGHEST = 1e140  # standard deviations of a value far beyond those that a transform was made from; it gets squared


class Outputs(Protocol):
    """An increasing transform of the maximised values."""

    def apply(self, y: Array) -> Array:  # (n,) -> (n,)
        """Return the values in the units of the GP."""
        ...

    def invert(self, z: Array) -> Array:  # (n,) -> (n,)
        """Convert from the GP's units to the units of the values."""
        ...


@dataclass(frozen=True)
class Standardised:
    """(y - mean) / std, safe for values of at most 1e150.

    Attributes:
        mean: of the values. std: their standard deviation; the largest of their sizes (or 1) if all are equal.
    """

    mean: float
    std: float

    @classmethod
    def of(cls, y: Array) -> Standardised:
        """Return the transform that gives y (n,) mean 0 and variance 1; one that does nothing if n = 0."""
        if len(y) == 0:
            return cls(0.0, 1.0)
        largest = float(np.max(np.abs(y)))
        away = y - y[0]
        unit = float(np.max(np.abs(away)))
        if unit <= 1e-15 * largest:  # equal but for rounding
            return cls(float(y[0]), largest if largest > SMALLEST else 1.0)
        z = away / unit  # squares of 1e-300 vanish
        return cls(float(y[0]) + unit * float(z.mean()), max(unit * float(z.std()), SMALLEST))

    def variances(self, errors: Array) -> Array:  # (n,) -> (n,)
        """Return variances in standardised units, of standard deviations of values."""
        return np.asarray(np.square(errors / self.std))  # the square of either may overflow, or vanish

    def apply(self, y: Array) -> Array:
        """Return the values in standardised units, at most 1e140 of them."""
        with np.errstate(over="ignore"):  # the transform may have been made from much smaller values
            return np.clip((y - self.mean) / self.std, -HIGHEST, HIGHEST)

    def invert(self, z: Array) -> Array:
        """Return the values."""
        return np.asarray(z * self.std + self.mean)


@dataclass(frozen=True)
class Clipped:
    """The values, none below `floor`. Undoing it leaves them there."""

    floor: float

    @classmethod
    def of(cls, y: Array, sds: float) -> Clipped:
        """Return the floor at median - sds robust standard deviations of y (n,); no floor if half of y is equal."""
        if len(y) == 0:
            return cls(-math.inf)
        centre = float(np.median(y))
        sd = ROBUST_SD * float(np.median(np.abs(y - centre)))
        return cls(centre - sds * sd if sd > 0.0 else -math.inf)

    def apply(self, y: Array) -> Array:
        """Return the values, those below the floor raised to it."""
        return np.maximum(y, self.floor)

    def invert(self, z: Array) -> Array:
        """Return the values as they are: what was below the floor is lost."""
        return z


@dataclass(frozen=True)
class YeoJohnson:
    """Yeo and Johnson's power transform, which makes skewed values of either sign more normal; for standardised ones.

    y >= 0: ((1 + y)^power - 1) / power            y < 0: -((1 - y)^(2 - power) - 1) / (2 - power)
    with logarithms if an exponent is 0; power 1 changes nothing, above 1 it tames low values.

    Source: Yeo, Johnson (2000), "A new family of power transformations to improve normality or symmetry", eq. (2.1).
    """

    power: float

    @classmethod
    def of(cls, y: Array) -> YeoJohnson:
        """Return the power in [-2, 4] of the highest likelihood if transformed y (n,) are normal; 1 if n < 3."""
        if len(y) < 3 or float(np.ptp(y)) == 0.0:
            return cls(1.0)
        step = (POWERS[1] - POWERS[0]) / 24.0
        powers = np.linspace(*POWERS, 25)
        for _ in range(3):  # each time a tenth as wide: 1e-2 of the first step is beyond what any sample can tell
            best = float(powers[np.argmax(_log_likelihoods(y, powers))])
            powers = np.clip(best + step * np.linspace(-1.0, 1.0, 21), *POWERS)
            step /= 10.0
        return cls(best)

    def apply(self, y: Array) -> Array:
        """Return the transformed values, at most the largest float."""
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(_yeo_johnson(y, np.array([self.power]))[0], -LARGEST, LARGEST))

    def invert(self, z: Array) -> Array:
        """Return the values; +-1e9 beyond the transform's range, which is bounded if the power is not in [0, 2]."""
        size = np.abs(z)
        exponents = np.where(z >= 0.0, self.power, 2.0 - self.power)
        is_log = np.abs(exponents) < 1e-9
        with np.errstate(over="ignore", divide="ignore"):
            inside = np.maximum(size * exponents, -1.0)
            logs = np.where(is_log, size, np.log1p(inside) / np.where(is_log, 1.0, exponents))
            return np.asarray(np.sign(z) * np.minimum(np.expm1(logs), FARTHEST))


@dataclass(frozen=True)
class Tamed:
    """Clipped below, then Yeo-Johnson's power transform with the most likely power, standardised before and after.

    A few values far below the rest (a penalty, a steep wall) would otherwise set the scale on which the GP sees the
    good ones. The order of values is kept, but for those below the clip.

    Attributes:
        steps: the transforms, the first applied first.
    """

    steps: tuple[Outputs, ...]

    @classmethod
    def of(cls, y: Array, *, clip: float | None = 4.0) -> Tamed:
        """Return the transform that suits y (n,).

        Args:
            y: finite values, maximised.
            clip: robust standard deviations below the median; all worse values become equal. None to clip none.
        """
        clipped = Clipped.of(y, math.inf if clip is None else clip)
        y = clipped.apply(y)
        standardised = Standardised.of(y)
        z = standardised.apply(y)
        power = YeoJohnson.of(z)
        return cls((clipped, standardised, power, Standardised.of(power.apply(z))))

    def apply(self, y: Array) -> Array:
        """Return the values in standardised units."""
        for step in self.steps:
            y = step.apply(y)
        return y

    def invert(self, z: Array) -> Array:
        """Convert from the GP's units to the units of the values."""
        for step in reversed(self.steps):
            z = step.invert(z)
        return z


@dataclass(frozen=True)
class SignedLog:
    """sign(y) log(1 + |y| / scale), standardised: what matters is the sign, and how close to 0 a value is.

    For margins of constraints: large ones of either sign are drawn together, so that they do not hide where it is 0.

    Source: the bilog transform of Eriksson, Poloczek (2021), "Scalable constrained Bayesian optimization", section 3.2.
    """

    scale: float
    standardised: Standardised

    @classmethod
    def of(cls, y: Array) -> SignedLog:
        """Return the transform that suits y (n,): its scale is the median size of y."""
        sizes = np.abs(y)
        scale = float(np.median(sizes)) or float(sizes.max(initial=0.0)) or 1.0
        raw = cls(max(scale, SMALLEST), Standardised(0.0, 1.0))
        return cls(raw.scale, Standardised.of(raw.apply(y)))

    def apply(self, y: Array) -> Array:
        """Return the values in standardised units."""
        with np.errstate(over="ignore"):
            sizes = np.minimum(np.abs(y) / self.scale, LARGEST)
        return self.standardised.apply(np.sign(y) * np.log1p(sizes))

    def invert(self, z: Array) -> Array:
        """Convert from the GP's units to the units of the values."""
        raw = self.standardised.invert(z)
        with np.errstate(over="ignore"):
            return np.asarray(np.sign(raw) * np.minimum(np.expm1(np.abs(raw)) * self.scale, LARGEST))


def _yeo_johnson(y: Array, powers: Array) -> Array:  # (n,), (p,) -> (p, n)
    exponents = np.where(y >= 0.0, powers[:, None], 2.0 - powers[:, None])
    logs = np.log1p(np.abs(y))
    is_log = np.abs(exponents) < 1e-9
    safe = np.where(is_log, 1.0, exponents)
    return np.asarray(np.sign(y) * np.where(is_log, logs, np.expm1(safe * logs) / safe))


def _log_likelihoods(y: Array, powers: Array) -> Array:  # (n,), (p,) -> (p,)
    """Return the profile log likelihood of each power, with the best mean and variance of the transformed values."""
    variances = np.maximum(_yeo_johnson(y, powers).var(axis=1), SMALLEST)
    jacobian = float(np.sum(np.sign(y) * np.log1p(np.abs(y))))
    return np.asarray(-0.5 * len(y) * np.log(variances) + (powers - 1.0) * jacobian)
