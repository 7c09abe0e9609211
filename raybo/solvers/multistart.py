"""Many raw candidates, then a few climbs from the best of them: the solver of most methods.

The climbs are quasi-Newton with box bounds on the relaxed cube, all in step (`ascent`); discrete axes are then searched
one at a time (`mixed`).
"""

from __future__ import annotations

import numpy as np

from raybo.solvers.ascent import ascend
from raybo.solvers.constrained import search_within
from raybo.solvers.domain import Array, Domain, climbable, continuous
from raybo.solvers.mixed import climb_within_levels, is_small, polish, try_all
from raybo.solvers.solution import ROWS_AT_ONCE, Differentiable, Gradient, Search, Solution
from raybo.solvers.starts import choose_starts, raw_candidates

POLISHED = 2  # discrete axes are searched from so many ends; more starts serve better than more of these


def multistart_ascent(
    function: Differentiable,
    domain: Domain,
    rng: np.random.Generator,
    *,
    size: int = 512,
    near: Array | None = None,
    perturbations: int = 50,
    starts: int = 4,
    rounds: int = 40,
    tolerance: float = 1e-4,
    gradient: Gradient = "analytic",
    avoid: Array | None = None,
    apart: float | Array = 0.0,
    hold: bool = False,
) -> Solution:
    """Climb from the best of many candidates. A wholly discrete domain of few points is searched completely instead.

    Args:
        function: maximised; with gradient="fd" only its values are used.
        domain: the cube.
        rng: the stream that candidates are drawn from.
        size: uniform candidates.
        near: (k, d), good points already known, such as incumbents, best first; they and `perturbations` Gaussian
            moves of them are candidates too.
        starts: how many climbs.
        rounds: evaluations of a climb, at most; all climbs share them.
        tolerance: relative gain below which a climb ends (see `ascend`).
        gradient: "analytic", or "fd" for central differences.
        avoid, apart: points not to be returned, and the distance to keep from them (see `Search`).
        hold: True to climb continuous axes alone as well, see `climb_within_levels`; with discrete axes and `near`.
    """
    if size < 1 or starts < 1:
        raise ValueError(f"at least one candidate and one start are needed, got size={size}, starts={starts}")
    search = Search(function, domain, avoid, apart, gradient)
    if is_small(domain):
        try_all(search)
        return search.solution(rng)
    candidates, values = search.try_points(raw_candidates(domain, rng, size, near, perturbations), ROWS_AT_ONCE)
    chosen = choose_starts(candidates, values, starts)
    ends, reached, converged = candidates[chosen], values[chosen], 0
    axes = climbable(domain)
    if axes.any():
        climbs = ascend(search, ends, axes, rounds=rounds, tolerance=tolerance)
        ends, reached = search.settle(climbs.X, climbs.values)
        converged = int(climbs.converged.sum())
    if not continuous(domain).all():
        if hold and near is not None and len(near):
            held, heights = climb_within_levels(search, near, rng, rounds=rounds, tolerance=tolerance)
            ends, reached = np.concatenate([ends, held]), np.concatenate([reached, heights])
        best = choose_starts(ends, reached, POLISHED, distance=1e-3)
        polish(search, ends[best], reached[best], rng, tolerance=tolerance)
    search_within(search, np.concatenate([ends, candidates[chosen]]), np.concatenate([reached, values[chosen]]), rng)
    return search.solution(rng, climbs=len(chosen) if axes.any() else 0, converged=converged)
