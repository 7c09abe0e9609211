"""Polak and Ribiere's conjugate gradients, which know no bounds: a change of coordinates keeps them in the box."""

from __future__ import annotations

from functools import partial

import numpy as np

from raybo.solvers.domain import Array, Domain
from raybo.solvers.scipy_minimisers import WAVE, best_starts, minimise_from_each
from raybo.solvers.solution import Differentiable, Gradient, Search, Solution


def conjugate_gradients(
    function: Differentiable,
    domain: Domain,
    rng: np.random.Generator,
    *,
    gradient: Gradient = "analytic",
    size: int = 512,
    near: Array | None = None,
    starts: int = 4,
    avoid: Array | None = None,
    apart: float | Array = 0.0,
) -> Solution:
    """Return the best end of climbs in z with x = sin^2(pi z / 2); discrete axes are then searched one at a time.

    Args:
        function: maximised.
        domain: the cube.
        rng: the stream that starts are drawn from.
        gradient: "analytic" or "fd".
        size, near, starts: starts are the best so many of `size` uniform candidates and moves of the points `near`.
        avoid, apart: points not to be returned, and the distance to keep from them (see `Search`).
    """
    search = Search(function, domain, avoid, apart)
    options = {"gtol": 1e-5, "maxiter": 200 * domain.d}
    first = partial(best_starts, search, rng, size, near, starts)
    return minimise_from_each(search, rng, first, "CG", WAVE, options, gradient)
