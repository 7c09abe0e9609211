"""Nelder and Mead's simplex search: needs only values. (Kim, Liu, Chen 2025 call it quasi-Newton; it is not.)"""

from __future__ import annotations

from functools import partial

import numpy as np

from raybo.solvers.domain import Array, Domain
from raybo.solvers.scipy_minimisers import BOX, best_starts, minimise_from_each
from raybo.solvers.solution import Function, Search, Solution


def nelder_mead(
    function: Function,
    domain: Domain,
    rng: np.random.Generator,
    *,
    size: int = 512,
    near: Array | None = None,
    starts: int = 4,
    avoid: Array | None = None,
    apart: float | Array = 0.0,
) -> Solution:
    """Return the best end of several simplex searches within the box; discrete axes are then searched one at a time.

    Args:
        function: maximised; only its values are used.
        domain: the cube.
        rng: the stream that starts are drawn from.
        size, near, starts: starts are the best so many of `size` uniform candidates and moves of the points `near`.
        avoid, apart: points not to be returned, and the distance to keep from them (see `Search`).
    """
    search = Search(function, domain, avoid, apart)
    tolerances = {"xatol": 1e-4, "fatol": 1e-6}
    first = partial(best_starts, search, rng, size, near, starts)
    return minimise_from_each(search, rng, first, "Nelder-Mead", BOX, tolerances, None)
