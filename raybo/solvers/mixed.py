"""Search where some axes are discrete: exactly where that is cheap, else axis by axis from what a climb has found.

A climb moves the relaxed point, which must then be snapped; so its end is improved by changing one discrete axis at a
time, judged at points that can be run, and by climbing again along the continuous axes alone, in turns until neither
gains. After optuna's `_gp/optim_mixed.py`.
"""

from __future__ import annotations

import numpy as np

from raybo.solvers.ascent import ascend
from raybo.solvers.domain import Array, Domain, all_points, continuous, count_points, one_axis_moves
from raybo.solvers.solution import ROWS_AT_ONCE, Search

FEW_POINTS = 4096  # a wholly discrete domain of so many points is searched completely


def is_small(domain: Domain) -> bool:
    """Whether every point of the domain can be tried."""
    return count_points(domain) <= FEW_POINTS


def try_all(search: Search) -> Array:  # (count_points,)
    """The values of every point of a small domain, the best of which is kept."""
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
    """Runnable points improved along their discrete axes and, by climbs, along the continuous ones, in turns."""
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


def _with_all_together(
    search: Search, X: Array, values: Array, changed: Array, gained: Array
) -> tuple[Array, Array]:  # (k, r + 1, d), (k, r + 1)
    """One more change per point: on every axis, the best change of that axis where it gains."""
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
