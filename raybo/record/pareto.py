"""Fronts of several maximised metrics: which points no other dominates, and how much space they dominate.

    a dominates b     a is nowhere below b, and somewhere above it
    front             the points that no other dominates
    hypervolume       of what is dominated by the front and above a reference point
    cells             the boxes that make up what the front does not dominate, above the reference

Arrays are (n, k), k metrics, all maximised.
"""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

BLOCK = 2**22  # comparisons at a time


def non_dominated(Y: Array) -> NDArray[np.bool_]:  # (n, k) -> (n,)
    """Return True for each row that no other dominates; equal rows are alike."""
    n, k = Y.shape
    kept = np.ones(n, dtype=bool)
    rows = max(1, BLOCK // max(1, n * k))
    for begin in range(0, n, rows):
        mine = Y[begin : begin + rows, None, :]
        is_below = np.asarray((Y[None, :, :] >= mine).all(axis=2) & (Y[None, :, :] > mine).any(axis=2))
        kept[begin : begin + rows] = ~is_below.any(axis=1)
    return kept


def hypervolume(Y: Array, reference: Array) -> float:  # (n, k), (k,)
    """Volume of the points that are above the reference and that some row of Y dominates.

    Exact: a sweep for two metrics, else the sum over the rows of what each adds to the later ones. At most the largest
    float.

    Source: While, Bradstreet, Barone (2012), "A fast way of calculating exact hypervolumes" (WFG).
    """
    Y = Y.reshape(-1, len(reference))
    Y = Y[(Y > reference).all(axis=1)]
    if not len(Y):
        return 0.0
    # differences and products of large floats are infinite; a power of two changes no digit
    exponents = np.frexp(np.abs(np.vstack([Y, reference])).max(axis=0))[1]
    above = np.ldexp(Y, -exponents) - np.ldexp(reference, -exponents)
    volume = _volume(np.unique(above[non_dominated(above)], axis=0))
    try:
        return math.ldexp(volume, int(exponents.sum()))
    except OverflowError:
        return sys.float_info.max


def _volume(Y: Array) -> float:  # (n, k), none dominated, above 0
    if len(Y) == 1 or Y.shape[1] == 1:
        return float(Y.max(axis=0).prod()) if Y.shape[1] == 1 else float(Y[0].prod())
    if Y.shape[1] == 2:
        Y = Y[np.argsort(-Y[:, 0])]  # the second rises along it
        return float(np.sum(Y[:, 0] * np.diff(Y[:, 1], prepend=0.0)))
    Y = Y[np.argsort(Y[:, -1])]
    total = 0.0
    for i, row in enumerate(Y):
        # later rows reach at least as high in the last metric: there this row limits all of them alike
        limited = np.minimum(Y[i + 1 :, :-1], row[:-1])
        shared = _volume(np.unique(limited[non_dominated(limited)], axis=0)) if len(limited) else 0.0
        total += row[-1] * (float(row[:-1].prod()) - shared)
    return total


def cells(Y: Array, reference: Array) -> tuple[Array, Array]:  # (b, k), (b, k)
    """Lower and upper corners of boxes that make up what is above the reference and not dominated by Y.

    The boxes do not overlap; upper corners may be infinite. Two metrics give a strip for each row and one more.

    Source: the first k - 1 metrics are cut at every value where the front's height changes, after Emmerich, Deutz,
    Klinkenberg (2011), "Hypervolume-based expected improvement: Monotonicity properties and exact computation".
    """
    above = Y[(Y > reference).all(axis=1)]
    front = np.unique(above[non_dominated(above)], axis=0)
    return _cells(front, reference)


def _cells(front: Array, reference: Array) -> tuple[Array, Array]:
    k = len(reference)
    if k == 1:
        low = max(float(front.max()), float(reference[0])) if len(front) else float(reference[0])
        return np.array([[low]]), np.array([[np.inf]])
    levels = np.concatenate([reference[:1], np.unique(front[:, 0]), [np.inf]])
    lows, highs = [], []
    for low, high in pairwise(levels):
        rest = front[front[:, 0] > low][:, 1:]  # those that reach across this slab
        below, above = _cells(rest[non_dominated(rest)] if len(rest) else rest, reference[1:])
        lows.append(np.column_stack([np.full(len(below), low), below]))
        highs.append(np.column_stack([np.full(len(above), high), above]))
    return np.vstack(lows), np.vstack(highs)
