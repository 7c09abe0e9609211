"""Initial designs: where to look before there is a model."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from raybo.history import History, Proposal
from raybo.space import Array

LARGEST_DIMENSION = 21_201  # of the published direction numbers; uniform points beyond
LARGEST_POWER = 2.0  # of t in a random grid's size: 10,000 times the first one's at t = 100


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


def grid_points(c: int, growth: str | float, t: int) -> int:
    """Points of the random grid at step t = 1, 2, ...: c t where it is "growing", c where "fixed", or c t^growth."""
    power = {"growing": 1.0, "fixed": 0.0}[growth] if isinstance(growth, str) else growth
    return math.ceil(c * math.pow(t, power))
