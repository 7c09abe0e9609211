"""The random grid: draws fresh uniform points and returns the best, without polishing it.

Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?": a grid
that grows linearly with the step is enough for no regret (Theorems 7 and 8).
"""

from __future__ import annotations

import math

import numpy as np

from raybo.solvers.domain import Array, Domain
from raybo.solvers.solution import ROWS_AT_ONCE, Function, Search, Solution


def grid_size(t: int, points: int = 100, power: float = 1.0) -> int:
    """Return points t^power, rounded up, at step t = 1, 2, ...: published are 100 t, and power 0 for a fixed grid.

    Grids of t^p leave a regret term of order T^(1 - p / d), p < d (remark after Theorem 8).
    """
    if t < 1 or points < 1:
        raise ValueError(f"steps and points are counted from 1, got t={t}, points={points}")
    return math.ceil(points * math.pow(t, power))


def random_grid(
    function: Function,
    domain: Domain,
    rng: np.random.Generator,
    *,
    size: int = 1000,
    avoid: Array | None = None,
    apart: float | Array = 0.0,
    chunk: int = ROWS_AT_ONCE,
) -> Solution:
    """Return the best of `size` independent uniform points, valued if they can be run.

    Args:
        function: maximised; only its values are used.
        domain: the cube.
        rng: a stream of this grid's own, so that grids are independent.
        size: how many points, at least 1; see `grid_size`.
        avoid, apart: points not to be returned, and the distance to keep from them (see `Search`).
        chunk: rows evaluated in one call, which does not change the answer.
    """
    if size < 1:
        raise ValueError(f"a grid needs at least one point, got size={size}")
    search = Search(function, domain, avoid, apart)
    search.try_points(domain.uniform(rng, size), chunk)
    return search.solution(rng, aside=False)
