"""Several runs of one of scipy's minimisers; the best result wins.

Only runs that scipy flags successful count; if there are none, the best point seen in any run is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from raybo.solvers.constrained import search_within
from raybo.solvers.domain import Array, climbable, continuous
from raybo.solvers.mixed import is_small, search_axes, try_all
from raybo.solvers.solution import ROWS_AT_ONCE, Gradient, Search, Solution
from raybo.solvers.starts import choose_starts, raw_candidates

scipy_minimize: Any = optimize.minimize  # its stubs know each method's arguments, not a method given as a variable

WORST = 1e30  # stands for a value that is not finite, since an infinity would upset a minimiser's arithmetic


@dataclass(frozen=True)
class Chart:
    """The coordinates z that a minimiser works in: the cube's own, or unbounded ones.

    Attributes:
        point: z -> x in the cube.
        slope: z -> dx/dz, per axis.
        coordinates: x -> a z that maps to it.
        bounds: of z, for all axes or for each; None if it is unbounded.
    """

    point: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    coordinates: Callable[[Array], Array]
    bounds: tuple[float | Array, float | Array] | None


BOX = Chart(lambda z: np.clip(z, 0.0, 1.0), np.ones_like, np.copy, (0.0, 1.0))
WAVE = Chart(  # smooth and nowhere flat but at the faces, from which starts are kept away
    lambda z: np.sin(0.5 * np.pi * z) ** 2,
    lambda z: 0.5 * np.pi * np.sin(np.pi * z),
    lambda x: np.arcsin(np.sqrt(np.clip(x, 1e-3, 1.0 - 1e-3))) / (0.5 * np.pi),
    None,
)


def best_starts(
    search: Search, rng: np.random.Generator, size: int, near: Array | None, starts: int
) -> Array:  # (k, d)
    """Return the best of many raw candidates, not all from one basin."""
    X, values = search.try_points(raw_candidates(search.domain, rng, size, near), ROWS_AT_ONCE)
    return X[choose_starts(X, values, starts)]


def minimise_from_each(
    search: Search,
    rng: np.random.Generator,
    starts: Callable[[], Array],
    method: str,
    chart: Chart,
    options: Mapping[str, Any],
    gradient: Gradient | None,
) -> Solution:
    """Run scipy's `method` from every start along the axes that have an order, then search the discrete axes.

    Args:
        search: the function and its account.
        rng: for the search of discrete axes.
        starts: gives the starts, (k, d); not called if the domain is small enough to be tried completely.
        method, options: scipy's.
        chart: the coordinates that it works in.
        gradient: None for a method without; "fd" for scipy's own forward differences.
    """
    domain = search.domain
    if is_small(domain):
        try_all(search)
        return search.solution(rng)
    X = starts()
    axes = np.flatnonzero(climbable(domain))
    if len(axes) == 0:
        search_axes(search, *search.try_points(X), rng)
        return search.solution(rng)
    runs = [minimise(search, x, axes, method, chart, options, gradient) for x in X]
    successes = [r for r in runs if r.success]
    if successes:
        ends = [(r.end, r.value) for r in successes]
    else:
        ends = [(r.best, r.best_value) for r in runs]
    settled = search.settle(np.stack([x for x, _ in ends]), np.array([value for _, value in ends]))
    if not continuous(domain).all():
        search_axes(search, *settled, rng)
    search_within(search, *settled, rng)
    return search.solution(rng, climbs=len(runs), converged=len(successes))


@dataclass(frozen=True)
class Minimised:
    """One run: whether it ended well by its own account, its end, and the best point that it saw."""

    success: bool
    end: Array
    value: float
    best: Array
    best_value: float


def minimise(
    search: Search,
    start: Array,
    axes: NDArray[np.intp],
    method: str,
    chart: Chart,
    options: Mapping[str, Any],
    gradient: Gradient | None,
) -> Minimised:
    """Run scipy's `method` from one start (d,) along the given axes; the others stay as they are."""
    best, best_value = start, -np.inf

    def point(z: Array) -> Array:  # (1, d)
        x = start[None].copy()
        x[0, axes] = chart.point(z)
        return x

    def note(x: Array, value: float) -> float:
        nonlocal best, best_value
        if value > best_value:
            best, best_value = x, value
        return -value if np.isfinite(value) else WORST

    def loss(z: Array) -> float:
        x = point(z)
        return note(x[0], float(search.value(x)[0]))

    def loss_and_gradient(z: Array) -> tuple[float, Array]:
        x = point(z)
        values, slopes = search.value_and_gradient(x)
        return note(x[0], float(values[0])), -slopes[0, axes] * chart.slope(z)

    analytic = gradient == "analytic"
    z = chart.coordinates(start[axes])
    settings = dict(options)
    if method == "Nelder-Mead" and chart.bounds is not None:  # scipy's own simplex is tiny at a coordinate of 0
        settings["initial_simplex"] = np.vstack([z, z + np.diag(np.where(z > 0.5, -0.1, 0.1))])
    bounds = None
    if chart.bounds is not None:
        low, high = (np.broadcast_to(end, z.shape) for end in chart.bounds)
        bounds = list(zip(low, high, strict=True))
    with np.errstate(all="ignore"):
        result = scipy_minimize(
            loss_and_gradient if analytic else loss,
            z,
            jac=True if analytic else None,
            method=method,
            bounds=bounds,
            options=settings,
        )
    end = point(np.asarray(result.x))[0]
    value = -float(result.fun)
    return Minimised(bool(result.success) and value > -WORST, end, value, best, best_value)
