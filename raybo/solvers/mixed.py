"""Search with some discrete axes: exhaustive if that is cheap, else axis by axis from what a climb has found.

A climb moves the relaxed point, which must then be snapped. So its end is improved by alternately changing one discrete
axis at a time, judged at points that can be run, and climbing again along the continuous axes alone, until neither
gains. After optuna's `_gp/optim_mixed.py`.

If the function is a narrow ridge, as along the edge of a constraint, the end of a relaxed climb leaves the ridge when
it is snapped; `climb_within_levels` never leaves it.
"""

from __future__ import annotations

import numpy as np

from raybo.solvers.ascent import ascend
from raybo.solvers.domain import Array, Domain, all_points, continuous, count_points, one_axis_moves
from raybo.solvers.solution import ROWS_AT_ONCE, Search
from raybo.solvers.starts import choose_starts

FEW_POINTS = 4096  # a wholly discrete domain of so many points is searched completely
HELD = 256  # candidates whose discrete coordinates are held
HELD_STARTS = 8  # climbs from the best of those candidates


def is_small(domain: Domain) -> bool:
    """Return true if every point of the domain can be tried."""
    return count_points(domain) <= FEW_POINTS


def try_all(search: Search) -> Array:  # (count_points,)
    """Return the values of every point of a small domain, the best of which is kept."""
    return search.try_points(all_points(search.domain), ROWS_AT_ONCE)[1]


def search_axes(
    search: Search, X: Array, values: Array, rng: np.random.Generator, sweeps: int = 12
) -> tuple[Array, Array]:  # (k, d), (k,)
    """From runnable points, change one discrete axis at a time, always to the best change, until none gains.

    A sweep is one batched call for all points. Once a point's changes are known, all those that gain by themselves are
    also tried together, so that separable functions need few sweeps.
    """
    X, values = X.copy(), values.copy()
    active = np.arange(len(X))
    for _ in range(sweeps):
        moves = one_axis_moves(search.domain, X[active], rng)
        k, r, d = moves.shape
        if k == 0 or r == 0:
            break
        changed, gained = search.try_points(moves.reshape(-1, d), ROWS_AT_ONCE)
        changed, gained = changed.reshape(k, r, d), gained.reshape(k, r)
        changed, gained = _with_all_together(search, X[active], values[active], changed, gained)
        top = np.argmax(gained, axis=1)
        rows = np.arange(k)
        better = gained[rows, top] > values[active]
        active, rows, top = active[better], rows[better], top[better]
        X[active], values[active] = changed[rows, top], gained[rows, top]
    return X, values


def polish(
    search: Search, X: Array, values: Array, rng: np.random.Generator, *, turns: int = 3, tolerance: float = 1e-4
) -> tuple[Array, Array]:  # (k, d), (k,)
    """Return runnable points improved along their discrete axes and, by climbs, along the continuous ones, in turns."""
    axes = continuous(search.domain)
    for _ in range(turns):
        X, values = search_axes(search, X, values, rng)
        if not axes.any():
            break
        climbs = ascend(search, X, axes, tolerance=tolerance)
        ends, reached = search.try_points(climbs.X)
        better = reached > values
        gain = np.max(reached[better] - values[better], initial=0.0)
        X, values = np.where(better[:, None], ends, X), np.where(better, reached, values)
        if gain <= tolerance * np.max(np.abs(values), initial=0.0, where=np.isfinite(values)):
            break
    return X, values


def climb_within_levels(
    search: Search, near: Array, rng: np.random.Generator, *, rounds: int, tolerance: float
) -> tuple[Array, Array]:  # (k, d), (k,)
    """Return runnable points, climbed to along the continuous axes alone; none if there are no such axes.

    The climbs start from the best of the points near (k, d) and of random ones, whose discrete coordinates are those of
    a near point but for one axis, which may be a level off, and whose continuous ones are anywhere.
    """
    axes = continuous(search.domain)
    if not axes.any():
        return np.empty((0, len(axes))), np.empty(0)
    X, values = search.try_points(_sharing_levels(search.domain, near, rng), ROWS_AT_ONCE)
    chosen = choose_starts(X, values, HELD_STARTS)
    climbs = ascend(search, X[chosen], axes, rounds=rounds, tolerance=tolerance)
    return search.settle(climbs.X, climbs.values)


def _sharing_levels(domain: Domain, near: Array, rng: np.random.Generator) -> Array:  # (k + HELD, d)
    near = domain.snap(near)
    X, axes = np.resize(near, (HELD, domain.d)), continuous(domain)
    discrete = [j for j, levels in enumerate(domain.levels) if levels is not None]
    changed = rng.integers(-1, len(discrete), len(X))  # on which of them; -1 for none
    for j, axis in enumerate(discrete):
        rows, levels = changed == j, domain.levels[axis]
        assert levels is not None
        there = np.searchsorted(levels, X[rows, axis]) + rng.choice([-1, 1], int(rows.sum()))
        if domain.categorical[axis]:
            there = rng.integers(len(levels), size=len(there))
        X[rows, axis] = levels[np.clip(there, 0, len(levels) - 1)]
    return np.concatenate([near, np.where(axes, rng.random(X.shape), X)])


def _with_all_together(
    search: Search, X: Array, values: Array, changed: Array, gained: Array
) -> tuple[Array, Array]:  # (k, r + 1, d), (k, r + 1)
    """Return one more change per point: on every axis, the best change of that axis if it gains."""
    k, _, d = changed.shape
    together = X.copy()
    differs = changed != X[:, None, :]
    for axis in range(d):
        there = np.where(differs[:, :, axis], gained, -np.inf)
        top = np.argmax(there, axis=1)
        better = there[np.arange(k), top] > values
        together[better, axis] = changed[better, top[better], axis]
    snapped, reached = search.try_points(together)
    return np.concatenate([changed, snapped[:, None]], axis=1), np.concatenate([gained, reached[:, None]], axis=1)
