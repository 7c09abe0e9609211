"""The search for the next point: apart from those in flight, and never at one that is already known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from raybo.record.history import History
from raybo.record.states import State
from raybo.solvers import Function, Solution, SolverName, solve
from raybo.space import Array

APART = 1e-3  # of the cube's side, as a root mean square over the axes: the least distance between points in flight


def least_distance(d: int) -> float:
    """Return the least distance between points in flight in a cube of d axes."""
    return APART * math.sqrt(d)


def taken(history: History) -> tuple[Array, Array]:  # (a, d), (a,)
    """Points that must not be proposed again, and how far to stay from each: a little from those in flight."""
    pending = history.X_pending
    known = np.vstack([history.X, history.X_failed, history.points(State.PRUNED)])
    apart = np.concatenate([np.full(len(pending), least_distance(history.d)), np.zeros(len(known))])
    return np.vstack([pending, known]), apart


def solve_apart(
    name: SolverName, acquisition: Function, history: History, rng: np.random.Generator, **settings: Any
) -> Solution:
    """The point of the cube that is worth most by the named solver, apart from all that have been proposed.

    Args:
        settings: those of `solvers.solve`.
    """
    points, apart = taken(history)
    return solve(name, acquisition, history.cube, rng, avoid=points, apart=apart, **settings)
