"""The solvers of a published comparison, with its settings: the one place that knows them.

Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?", compares the
random grid with L-BFGS-B, Nelder-Mead and CG and prints no settings. The settings here are those of the released
script: 10 starts, uniform in the box; gtol, xatol and fatol 0.01; at most 200 d iterations; gradients by finite
differences, as for the published times; for the two unbounded methods, the argument is clipped into the box, outside of
which the function is flat; only runs flagged successful count. If there are none (the script stops there), the best
point seen in any run is taken. Everything is in raw units: tolerances and difference steps are measured in them, and
the first simplex scales with the distance from their origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.solvers.domain import Array, Domain, climbable
from raybo.solvers.grid import random_grid
from raybo.solvers.scipy_minimisers import Chart, minimise_from_each
from raybo.solvers.solution import Function, Gradient, Search, Solution

STARTS = 10
TOLERANCE = 0.01
ITERATIONS = 200  # per axis


@dataclass(frozen=True)
class Published:
    """One of scipy's minimisers as it was compared.

    Attributes:
        method: scipy's name. is_bounded: whether it knows of the box.
        tolerances: the options that are tolerances. is_limited: whether its iterations are.
        gradient: None for a method without.
    """

    method: str
    is_bounded: bool
    tolerances: tuple[str, ...]
    is_limited: bool
    gradient: Gradient | None


MINIMISERS = {
    "lbfgsb": Published("L-BFGS-B", True, ("gtol",), True, "fd"),
    "nelder-mead": Published("Nelder-Mead", False, ("xatol", "fatol"), False, None),
    "cg": Published("CG", False, ("gtol",), True, "fd"),
}


def solve_as_published(
    name: str,
    function: Function,
    domain: Domain,
    rng: np.random.Generator,
    *,
    size: int | None = None,
    gradient: Gradient | None = None,
    unit: float = 1.0,
    origin: Sequence[float] = (0.0,),
    avoid: Array | None = None,
    apart: float | Array = 0.0,
) -> Solution:
    """Maximise as the comparison's solver of that name does.

    Args:
        name: "random-grid", "lbfgsb", "nelder-mead" or "cg".
        function, domain, rng, avoid, apart: as in `solve`.
        size: points of the random grid, the one solver that is as it always is; 1,000 unless given.
        gradient: "analytic" takes the function's own instead of differences, if a gradient is used.
        unit: the raw unit, in sides of the cube.
        origin: the cube's lower corner in raw units, one number or one per axis.
    """
    if name == "random-grid":
        return random_grid(function, domain, rng, avoid=avoid, apart=apart, **({} if size is None else {"size": size}))
    its = MINIMISERS[name]
    options: dict[str, Any] = dict.fromkeys(its.tolerances, TOLERANCE)
    if its.is_limited:
        options["maxiter"] = ITERATIONS * domain.d

    def starts() -> Array:  # (10, d), with categorical coordinates that can be run
        X = domain.uniform(rng, STARTS)
        return np.where(np.array(domain.categorical), domain.snap(X), X)

    slopes = None if its.gradient is None else gradient or its.gradient
    search = Search(function, domain, avoid, apart)
    low = np.broadcast_to(np.asarray(origin, dtype=np.float64), (domain.d,))[climbable(domain)]
    return minimise_from_each(search, rng, starts, its.method, raw(unit, low, its.is_bounded), options, slopes)


def raw(unit: float, low: Array, is_bounded: bool) -> Chart:
    """Return raw units z = low + x / unit; outside a box that is not known the function is flat."""

    def inside(z: Array) -> Array:
        return np.asarray((z >= low) & (z <= low + 1.0 / unit), dtype=np.float64)

    return Chart(
        point=lambda z: np.clip((z - low) * unit, 0.0, 1.0),
        slope=lambda z: unit * (np.ones_like(z) if is_bounded else inside(z)),
        coordinates=lambda x: low + x / unit,
        bounds=(low, low + 1.0 / unit) if is_bounded else None,
    )
