"""Nelder and Mead's simplex search: needs values only. (Kim, Liu, Chen 2025 call it quasi-Newton; it is not.)"""

from __future__ import annotations

from functools import partial

import numpy as np

from raybo.solvers.domain import Array, Domain
from raybo.solvers.scipy_minimisers import BOX, CLIPPED, Preset, best_starts, paper_starts, run_all
from raybo.solvers.solution import Function, Search, Solution


def nelder_mead(
    function: Function,
    domain: Domain,
    rng: np.random.Generator,
    *,
    preset: Preset = "standard",
    size: int = 512,
    near: Array | None = None,
    starts: int = 4,
    avoid: Array | None = None,
    apart: float | Array = 0.0,
) -> Solution:
    """The best end of several simplex searches; discrete axes are then searched one at a time.

    Args:
        function: maximised; only its values are used.
        domain: the cube.
        rng: the stream that starts are drawn from.
        preset: "standard" keeps the simplex in the box, from the best `starts` of `size` uniform candidates and moves
            of the points `near`; "paper" is Kim, Liu, Chen (2025): 10 uniform starts, clipped arguments, tolerances
            0.01.
        avoid, apart: points not to be returned, and the distance to keep from them (see `Search`).
    """
    search = Search(function, domain, avoid, apart)
    if preset == "paper":
        tolerances = {"xatol": 0.01, "fatol": 0.01}
        return run_all(search, rng, partial(paper_starts, search, rng), "Nelder-Mead", CLIPPED, tolerances, None)
    tolerances = {"xatol": 1e-4, "fatol": 1e-6}
    first = partial(best_starts, search, rng, size, near, starts)
    return run_all(search, rng, first, "Nelder-Mead", BOX, tolerances, None)
