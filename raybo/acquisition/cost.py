"""Weigh a point's worth against its cost: Lee, Perrone, Archambeau, Seeger (2020), "Cost-aware Bayesian Optimization".

    log EI(x) - alpha log E[cost(x)] + log P(cost(x) <= left)

with alpha cooled from 1 to 0 as the budget is used: improvement per cost alone would try cheap points for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from raybo.acquisition.protocols import Acquisition
from raybo.space import Array
from raybo.surrogate.log_linear import LogLinear, Slice

ROOT = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True, eq=False)
class PerCost:
    """The logarithm of an acquisition, less what the point costs.

    Attributes:
        acquisition: a logarithm of what is gained.
        costs: predicts the logarithm of the cost.
        alpha: power of the cost by which the gain is divided.
        left: the logarithm of what is left to spend.
    """

    acquisition: Acquisition
    costs: LogLinear | Slice
    alpha: float
    left: float

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the gain per cost, as a logarithm."""
        mean, variance = self.costs.moments(X)
        in_time = log_ndtr((self.left - mean) / np.sqrt(variance))
        return np.asarray(self.acquisition.value(X) - self.alpha * (mean + 0.5 * variance) + in_time)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, d)
        """Return the gain per cost, as a logarithm, and its gradient."""
        value, gradient = self.acquisition.value_and_gradient(X)
        mean, variance, slope, growth = self.costs.moments_and_gradients(X)
        z = (self.left - mean) / np.sqrt(variance)
        in_time = log_ndtr(z)
        inverse_mills = np.exp(-0.5 * np.square(z) - ROOT - in_time)
        z_slope = -slope / np.sqrt(variance)[:, None] - (0.5 * z / variance)[:, None] * growth
        value = value - self.alpha * (mean + 0.5 * variance) + in_time
        gradient = gradient - self.alpha * (slope + 0.5 * growth) + inverse_mills[:, None] * z_slope
        return np.asarray(value), np.asarray(gradient)
