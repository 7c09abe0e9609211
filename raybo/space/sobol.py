"""Points of the unit cube that are spread more evenly than independent ones."""

from __future__ import annotations

import numpy as np

from raybo.space.parameters import Array

LARGEST_DIMENSION = 21_201  # of the published direction numbers; uniform points beyond


def scrambled_sobol(n: int, d: int, rng: np.random.Generator) -> Array:  # (n, d)
    """Return the first n points of a freshly scrambled Sobol sequence, inside the open cube."""
    if d > LARGEST_DIMENSION:
        return rng.random((n, d))
    from scipy.stats import qmc  # slow to import

    balanced = 1 << max(0, n - 1).bit_length()  # a power of 2
    points: Array = qmc.Sobol(d, rng=rng).random(balanced)[:n]
    return points
