"""Points of the context space: spread evenly, in a box, or on a grid; and the frequencies of contexts on a grid."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from raybo.space import Array, Cube, scrambled_sobol


def numeric(cube: Cube) -> NDArray[np.bool_]:  # (dc,)
    """Return the axes whose order has meaning."""
    return ~np.array(cube.categorical, dtype=bool)


def is_listed(cube: Cube) -> bool:
    """Return true if every axis is discrete, with few enough values that they are known one by one."""
    return all(levels is not None for levels in cube.levels)


def all_levels(cube: Cube) -> Array:  # (cube.size, dc)
    """Return every point of a listed cube."""
    return _product([levels for levels in cube.levels if levels is not None])


def uniform_points(cube: Cube, m: int, rng: np.random.Generator) -> Array:  # (m, dc)
    """Return m points that can occur, spread evenly (scrambled Sobol)."""
    return cube.snap(scrambled_sobol(m, cube.d, rng))


def cover(cube: Cube, m: int, rng: np.random.Generator) -> Array:  # (a, dc)
    """Return at most m different points spread over all contexts: every one of a listed cube of so few."""
    if is_listed(cube) and cube.size <= m:
        return all_levels(cube)
    points = uniform_points(cube, m, rng)
    return np.unique(points, axis=0) if is_listed(cube) else points


def box(contexts: Array, cube: Cube, m: int, rng: np.random.Generator) -> Array:  # (t, dc) -> (a, dc)
    """Return at most m points of the box of mean +- standard deviation (divisor t - 1) of each number, within [0, 1].

    On a categorical axis, those of the categories met. With one context the box is that context; with none, everything.

    Source: StableOpt as compared by Huang et al. (2024); Bogunovic et al. (2018).
    """
    if len(contexts) == 0:
        return cover(cube, m, rng)
    U = scrambled_sobol(m, cube.d, rng)
    mean = contexts.mean(axis=0)
    sd = contexts.std(axis=0, ddof=1) if len(contexts) > 1 else np.zeros(cube.d)
    low, high = np.clip(mean - sd, 0.0, 1.0), np.clip(mean + sd, 0.0, 1.0)
    points = low + (high - low) * U
    for j in np.flatnonzero(~numeric(cube)):
        met = np.unique(contexts[:, j])
        points[:, j] = met[np.minimum((U[:, j] * len(met)).astype(int), len(met) - 1)]
    snapped = cube.snap(points)
    return snapped if (high > low).all() and not is_listed(cube) else np.unique(snapped, axis=0)


def grid(cube: Cube, least: int) -> Array:  # (g, dc)
    """Return a regular grid, end points included, with the fewest points k per axis for which k^dc >= least.

    A discrete axis has its own values instead, if these are fewer; a categorical one always has all of its values.
    """
    k = math.ceil(least ** (1.0 / cube.d) - 1e-9)  # 100^(1/2) must not become 11
    axes = []
    for levels, categorical in zip(cube.levels, cube.categorical, strict=True):
        if levels is not None and (categorical or len(levels) <= k):
            axes.append(levels)
        else:
            axes.append(np.linspace(0.0, 1.0, k))
    return np.unique(cube.snap(_product(axes)), axis=0)


def histogram(contexts: Array, points: Array, cube: Cube) -> Array:  # (t, dc), (g, dc) -> (g,)
    """Return the share of the contexts to which each point is the nearest; uniform without contexts."""
    if len(contexts) == 0:
        return np.full(len(points), 1.0 / len(points))
    numbers = numeric(cube)
    distances = np.square(contexts[:, None, numbers] - points[:, numbers]).sum(axis=2)
    # another category is further away than any number can be
    distances += (1.0 + cube.d) * (contexts[:, None, ~numbers] != points[:, ~numbers]).sum(axis=2)
    return np.bincount(np.argmin(distances, axis=1), minlength=len(points)) / len(contexts)


def _product(axes: list[Array]) -> Array:
    return np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)
