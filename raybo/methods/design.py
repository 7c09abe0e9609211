"""Points spread evenly: designs, where to look before there is a model, and samples."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from raybo.history import History, Proposal
from raybo.space import Array

LARGEST_DIMENSION = 21_201  # of the published direction numbers; uniform points beyond


def sobol_proposal(history: History, rng: np.random.Generator) -> Proposal:
    """The next point of one scrambled Sobol sequence a study; the scramble's seed lives in the tag `sobol`."""
    seed = history.first_tag("sobol")
    if seed is None:
        seed = int(rng.integers(2**31))
    if history.d > LARGEST_DIMENSION:
        return Proposal(rng.random(history.d), tags={"sobol": seed})
    return Proposal(_sobol_point(history.d, seed, history.count_tag("sobol")), tags={"sobol": seed})


def _sobol_point(d: int, seed: int, index: int) -> Array:  # (d,)
    block = max(64, 1 << index.bit_length())
    point: Array = _sobol_block(d, seed, block)[index]
    return point


@lru_cache(maxsize=4)  # a cache only: the sequence is a function of its seed
def _sobol_block(d: int, seed: int, size: int) -> Array:  # (size, d)
    from scipy.stats import qmc

    points: Array = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(seed)).random(size)
    return points


def scrambled_sobol(n: int, d: int, rng: np.random.Generator) -> Array:  # (n, d)
    """The first n points of a freshly scrambled Sobol sequence."""
    if d > LARGEST_DIMENSION:
        return rng.random((n, d))
    from scipy.stats import qmc

    balanced = 1 << (n - 1).bit_length()  # a power of 2
    points: Array = qmc.Sobol(d, rng=rng).random(balanced)[:n]
    return points
