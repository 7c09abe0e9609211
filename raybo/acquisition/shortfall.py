"""The price of a constraint that may be broken, for confidence bounds, which no probability can multiply.

An exact penalty, as in constrained optimisation by confidence bounds: Xu, Jiang, Svetozarevic, Jones (2023),
"Constrained Efficient Global Optimization of Expensive Black-box Functions", ICML, arXiv:2211.00162, which has the
constraint itself in its place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.acquisition.protocols import Acquisition, Array

PRICE = 10.0  # standard deviations of the metric for one of the margin


@dataclass(frozen=True)
class Shortfall:
    """Minus the price of what a bound falls short of a least value; 0 where it does not.

    Attributes:
        bound: a confidence bound of a margin.
        least: what it should reach.
    """

    bound: Acquisition
    least: float

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return minus the price at the rows of X."""
        return np.asarray(PRICE * np.minimum(self.bound.value(X) - self.least, 0.0))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return minus the price and its gradient."""
        values, slopes = self.bound.value_and_gradient(X)
        above = values - self.least
        return PRICE * np.minimum(above, 0.0), np.where(above[:, None] < 0.0, PRICE * slopes, 0.0)
