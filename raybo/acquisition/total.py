"""The sum of acquisitions: a sum of logarithms is the logarithm of a product, as of improvement and probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raybo.acquisition.protocols import Acquisition, Array


@dataclass(frozen=True)
class Total:
    """The sum of the parts.

    Attributes:
        parts: at least one acquisition.
    """

    parts: Sequence[Acquisition]

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the sum at the rows of X."""
        return np.asarray(np.sum([part.value(X) for part in self.parts], axis=0))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return the sum and its gradient."""
        pairs = [part.value_and_gradient(X) for part in self.parts]
        return np.sum([values for values, _ in pairs], axis=0), np.sum([slopes for _, slopes in pairs], axis=0)
