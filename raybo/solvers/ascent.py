"""Climbing from many starts at once: a projected quasi-Newton method in which every step is one batched call.

A climb by scipy's L-BFGS-B spends more time between evaluations of the surrogate than in them, and each start pays for
this again. Here all starts share each call of the function and each line of linear algebra.

    X (k, d)     where the climbs stand                  B (k, d, d)   BFGS models of the Hessian of -f, positive
    G (k, d)     gradients there                         R (k,)        trust radii, in the max norm

In each round, axes at a bound are held if their gradient points outwards; the model's step on the others, within the
radius, is projected onto the cube; the new point is taken if it gains enough (Armijo); the model learns from it either
way.

Bertsekas (1982), "Projected Newton methods for optimization problems with simple constraints"; Nocedal, Wright (2006),
"Numerical Optimization", eq. (6.19) (BFGS) and chapter 4 (radii).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybo.solvers.domain import Array, Axes
from raybo.solvers.solution import Search

FIRST_STEP = 0.1  # trust radius at the start, in sides of the cube
LONGEST_STEP = 0.5  # largest trust radius, in sides of the cube
ENOUGH = 1e-4  # a step is taken if it gains this share of the predicted gain (Armijo)
WELL = 0.25  # longer steps are tried after one that gains this share of the predicted gain
REACH = 0.25  # assumed distance to a maximum, in sides of the cube, by which a climb's prospects are judged
SMALLEST_RADIUS = 1e-8


class Climbs(NamedTuple):
    """The ends of climbs: points (k, d), values (k,), and a mask (k,) of those that stopped at a maximum."""

    X: Array
    values: Array
    converged: NDArray[np.bool_]


def ascend(search: Search, X: Array, axes: Axes, *, rounds: int = 40, tolerance: float = 1e-4) -> Climbs:
    """Return local maxima on the relaxed cube, climbed from the rows of X.

    Args:
        search: evaluates the function and counts.
        X: (k, d), the starts, inside the cube.
        axes: (d,), those that may move.
        rounds: at most so many batched evaluations after the first.
        tolerance: a climb ends where its next step promises less than this fraction of the largest finite |value| of
            the starts. One that promises too little to catch up with the highest is given up.
    """
    X = X.copy()
    F, G = search.value_and_gradient(X)
    G = G * axes
    # everything is in units of the first gradients, so that their scale does not matter; a power of 2 rounds nothing
    largest = float(np.abs(F).max(initial=0.0, where=np.isfinite(F)))
    unit = math.ldexp(1.0, math.frexp(max(float(np.abs(G).max()), 1e-100 * largest))[1] - 1)
    F, G = F / unit, G / unit
    small = tolerance * (largest / unit or 1.0)
    ends, values, converged = X.copy(), F.copy(), np.zeros(len(X), dtype=bool)
    highest = float(F.max())
    climbing = np.arange(len(X))
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.abs(G).max(axis=1)
        B = np.eye(X.shape[1]) * np.where(slope > 0.0, slope / FIRST_STEP, 1.0)[:, None, None]
        untaught = np.ones(len(X), dtype=bool)
        R = np.full(len(X), 2.0 * FIRST_STEP)
        for _ in range(rounds):
            T = np.clip(X + _step(X, G, B, R), 0.0, 1.0)
            S = T - X
            promised = (G * S).sum(axis=1)
            arrived = ~(promised > small) | (R < SMALLEST_RADIUS)  # also where a model has overflowed
            if arrived.any():
                T, S, promised = _second_opinion(X, G, B, R, T, S, promised, small)
                arrived = ~(promised > small) | (R < SMALLEST_RADIUS)
            uphill = np.where(G > 0.0, X < 1.0, X > 0.0)
            reach = REACH * np.abs(G * uphill).sum(axis=1)  # what a concave function can gain within that distance
            going = ~arrived & (F + reach >= highest)
            if not going.all():
                converged[climbing] = arrived & np.isfinite(F)
                if not going.any():
                    break
                X, F, G, B, R, T, S = X[going], F[going], G[going], B[going], R[going], T[going], S[going]
                promised, untaught, climbing = promised[going], untaught[going], climbing[going]
            Ft, Gt = search.value_and_gradient(T)
            Ft, Gt = Ft / unit, Gt * (axes / unit)
            gain = Ft - F
            taken = (gain > 0.0) & (gain >= ENOUGH * promised)
            length = np.abs(S).max(axis=1)
            well = np.where(gain > WELL * promised, np.maximum(R, 2.0 * length), R)
            R = np.minimum(np.where(taken, well, 0.25 * length), LONGEST_STEP)
            B, untaught = _learn(B, S, G - Gt, np.isfinite(Ft), untaught)
            X, F, G = np.where(taken[:, None], T, X), np.where(taken, Ft, F), np.where(taken[:, None], Gt, G)
            ends[climbing], values[climbing] = X, F
            highest = max(highest, float(F.max()))
    return Climbs(ends, values * unit, converged)


def _step(X: Array, G: Array, B: Array, R: Array) -> Array:  # (k, d)
    """Return the model's step within the radii; axes whose gradients are masked do not move."""
    low, high = X <= 0.0, X >= 1.0
    if not (low | high).any():
        return _solved(B, G, R)
    free = ~((low & (G < 0.0)) | (high & (G > 0.0)))
    model = np.where(free[:, :, None] & free[:, None, :], B, np.eye(X.shape[1]))
    return _solved(model, np.where(free, G, 0.0), R)


def _second_opinion(
    X: Array, G: Array, B: Array, R: Array, T: Array, S: Array, promised: Array, small: float
) -> tuple[Array, Array, Array]:
    """Return T, S and what they promise, the step of the model's diagonal in place of those that promise too little.

    Projecting a step of the whole model may turn it downhill; with this one every axis goes uphill or not at all.
    """
    diagonal = B.diagonal(axis1=1, axis2=2)
    steepest = np.maximum(np.abs(G).max(axis=1, keepdims=True), 1e-300)
    diagonal = np.where(diagonal > 0.0, diagonal, steepest)  # rounding may have taken an axis's curvature
    plain = np.clip(X + _within(G / diagonal, R), 0.0, 1.0)
    use = ~(promised > small)[:, None]
    T, S = np.where(use, plain, T), np.where(use, plain - X, S)
    return T, S, (G * S).sum(axis=1)


def _solved(B: Array, G: Array, R: Array) -> Array:  # (k, d)
    """Return B^-1 G, shortened to the radii."""
    try:
        step = np.linalg.solve(B, G[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:  # a model that rounding has made singular
        step = G
    return _within(np.asarray(step, dtype=np.float64), R)


def _within(step: Array, R: Array) -> Array:  # (k, d)
    length = np.abs(step).max(axis=1)
    return np.asarray(step * (R / np.maximum(R, length))[:, None])


def _learn(
    B: Array, S: Array, Y: Array, sound: NDArray[np.bool_], untaught: NDArray[np.bool_]
) -> tuple[Array, NDArray[np.bool_]]:
    """Return the BFGS update with steps S and changes Y of the gradient of -f, if finite and curved upwards."""
    SY = (S * Y).sum(axis=1)
    learns = sound & (SY > 1e-300)
    if untaught.any():  # the first curvature sets the scale of the whole model (Nocedal & Wright, eq. 6.20)
        first = untaught & learns
        size = (Y * Y).sum(axis=1) / np.where(first, SY, 1.0)
        B = np.where(first[:, None, None], np.eye(S.shape[1]) * size[:, None, None], B)
        untaught = untaught & ~first
    BS = (B @ S[:, :, None])[:, :, 0]
    SBS = (S * BS).sum(axis=1)
    learns &= SBS > 1e-300
    update = (
        Y[:, :, None] * (Y / np.where(learns, SY, 1.0)[:, None])[:, None, :]
        - BS[:, :, None] * (BS / np.where(learns, SBS, 1.0)[:, None])[:, None, :]
    )
    return np.where(learns[:, None, None], B + update, B), untaught
