"""Polak and Ribiere's conjugate gradients, which know no bounds: the box is reached through other coordinates."""

from __future__ import annotations

from functools import partial

import numpy as np

from raybo.solvers.domain import Array, Domain
from raybo.solvers.scipy_minimisers import CLIPPED, WAVE, Preset, best_starts, paper_starts, run_all
from raybo.solvers.solution import Differentiable, Gradient, Search, Solution


def conjugate_gradients(
    function: Differentiable,
    domain: Domain,
    rng: np.random.Generator,
    *,
    preset: Preset = "standard",
    gradient: Gradient | None = None,
    size: int = 512,
    near: Array | None = None,
    starts: int = 4,
    avoid: Array | None = None,
    apart: float | Array = 0.0,
) -> Solution:
    """The best end of several climbs by conjugate gradients; discrete axes are then searched one at a time.

    Args:
        function: maximised.
        domain: the cube.
        rng: the stream that starts are drawn from.
        preset: "standard" climbs in z with x = sin^2(pi z / 2), from the best `starts` of `size` uniform candidates and
            moves of the points `near`; "paper" is Kim, Liu, Chen (2025): 10 uniform starts, arguments clipped into the
            box, outside of which the gradient vanishes, gtol 0.01, at most 200 d iterations.
        gradient: "analytic" or "fd"; by default the preset's, which is "fd" for "paper".
        avoid, apart: points not to be returned, and the distance to keep from them (see `Search`).
    """
    search = Search(function, domain, avoid, apart)
    if preset == "paper":
        options = {"gtol": 0.01, "maxiter": 200 * domain.d}
        return run_all(search, rng, partial(paper_starts, search, rng), "CG", CLIPPED, options, gradient or "fd")
    options = {"gtol": 1e-5, "maxiter": 200 * domain.d}
    first = partial(best_starts, search, rng, size, near, starts)
    return run_all(search, rng, first, "CG", WAVE, options, gradient or "analytic")
