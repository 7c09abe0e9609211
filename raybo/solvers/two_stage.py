"""Search with a cheap, coarse function, and improve what it finds with the function to be maximised.

The two differ in cost only: for example, expectations over few atoms and over many. Searching the cube with the coarse
one costs little, and its maximiser is a good start for the other.
"""

from __future__ import annotations

import numpy as np

from raybo.solvers import SolverName, solve
from raybo.solvers.ascent import ascend
from raybo.solvers.constrained import search_within
from raybo.solvers.domain import Array, Domain, continuous
from raybo.solvers.solution import ROWS_AT_ONCE, Differentiable, Search, Solution

GRID = 1000  # points of a random grid
COMPARED = 32  # the meant function compares so many of the grid's points
ROUNDS = 12  # rounds of the climb with the meant function


def two_stages(
    name: SolverName,
    coarse: Differentiable,
    meant: Differentiable,
    domain: Domain,
    rng: np.random.Generator,
    *,
    size: int | None = None,
    near: Array | None = None,
    avoid: Array | None = None,
    apart: float | Array = 0.0,
) -> Solution:
    """Return the coarse function's maximiser, climbed on with the meant one along its continuous axes.

    Of a random grid, the points that the coarse one likes best are compared under the meant one instead; nothing
    climbs. If both are one function a climber's maximiser is the answer.

    Args:
        name: the solver of the first stage.
        coarse, meant: functions of points, maximised.
        domain: the cube.
        rng: a stream for this search alone.
        size, near, avoid, apart: as in `solve`.
    Returns:
        A point with its value under `meant`, at least that of the first stage's point. Its evaluations are those of
        `meant`, or of the first stage if that was all.
    """
    search = Search(meant, domain, avoid, apart)
    if name == "random-grid":
        grid, values = Search(coarse, domain).try_points(domain.uniform(rng, size or GRID), ROWS_AT_ONCE)
        search.try_points(grid[np.argsort(-values, kind="stable")[:COMPARED]])
        return search.solution(rng, aside=False)
    found = solve(name, coarse, domain, rng, size=size, near=near, avoid=avoid, apart=apart)
    if coarse is meant or not found.is_apart:
        return found
    start, _ = search.try_points(found.x[None, :])
    axes = continuous(domain)
    if axes.any():
        climbs = ascend(search, start, axes, rounds=ROUNDS)
        search_within(search, *search.settle(climbs.X, climbs.values), rng)
    return search.solution(rng, climbs=1, aside=False)
