"""Chooses the starts of climbs: the best of many raw candidates that do not all lie in one basin."""

from __future__ import annotations

import numpy as np

from raybo.solvers.domain import Array, Domain

SPREAD = 0.05  # standard deviation of a move, in sides of the cube


def raw_candidates(
    domain: Domain,
    rng: np.random.Generator,
    size: int,
    near: Array | None = None,
    perturbations: int = 50,
) -> Array:  # (m, d)
    """Return uniform points; then, if there are points to stay near, these and Gaussian moves of each in turn.

    A categorical coordinate is redrawn, instead of moved, on one axis in `d` on average.
    """
    uniform = domain.uniform(rng, size)
    if near is None or len(near) == 0:
        return uniform
    moved = np.resize(near, (perturbations, domain.d))
    moved = moved + SPREAD * rng.standard_normal(moved.shape)
    categorical = np.array(domain.categorical)
    if categorical.any():
        redrawn = rng.random(moved.shape) * domain.d < 1.0
        moved = np.where(categorical, np.where(redrawn, rng.random(moved.shape), np.resize(near, moved.shape)), moved)
    return np.concatenate([uniform, near, np.clip(moved, 0.0, 1.0)])


def choose_starts(X: Array, values: Array, starts: int, distance: float = 0.1) -> list[int]:
    """Return rows to climb from: the best, then always the best that lies farther than `distance` from those chosen.

    The distance is a root mean square over the axes: one high basin does not take all. If no such row is left, it is
    the best of the rest.
    """
    order = np.argsort(-values, kind="stable")[: 16 * starts]
    pool = X[order]
    free = np.ones(len(order), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < min(starts, len(order)):
        left = np.flatnonzero(free)
        if len(left) == 0:
            rest = [int(i) for i in order if i not in chosen]
            return chosen + rest[: starts - len(chosen)]
        i = int(left[0])
        chosen.append(int(order[i]))
        free &= ((pool - pool[i]) ** 2).mean(axis=1) > distance**2
    return chosen
