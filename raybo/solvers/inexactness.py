"""Measures how inexact a solver's answer is, against a much more thorough search.

    gap     highest value found by the reference - value at x, never negative; independent of any shift
    shift   C >= 0 with value + C >= 0 everywhere: a ratio needs it, and depends on it
    eta     (value at x + C) / (highest + C), in [0, 1]; 1 is exact

These are observed values, whereas the theory's accuracy is a lower bound known in advance. Read eta together with gap
and shift: if the function's lowest values lie far down, even a large gap gives an eta near 1.

Kim, Liu, Chen (2025), "Bayesian Optimization with Inexact Acquisition: Is Random Grid Search Sufficient?".
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from raybo.solvers.domain import Domain, climbable
from raybo.solvers.mixed import is_small, search_axes, try_all
from raybo.solvers.scipy_minimisers import BOX, minimise
from raybo.solvers.solution import ROWS_AT_ONCE, Differentiable, Gradient, Search, Solution

POLISHED = 5  # scipy's L-BFGS-B climbs to tight tolerances from so many of the reference's best points
TIGHT = {"ftol": 1e-13, "gtol": 1e-9, "maxiter": 1000}


@dataclass(frozen=True)
class Inexactness:
    """The measurements of one step.

    Attributes:
        value, highest, lowest: of the function: at the point, and over the reference search.
        fixed_shift: a shift common to all steps, such as the largest |standardised y|, for `eta_fixed`.
        solver_evaluations, solver_seconds: what the measured solver spent.
        seconds: what the reference search took.
    """

    value: float
    highest: float
    lowest: float
    fixed_shift: float
    solver_evaluations: int
    solver_seconds: float
    seconds: float

    @property
    def gap(self) -> float:
        """The point's distance below the highest value; infinite if it has no value and another point has."""
        return self.highest - self.value if self.value < self.highest else 0.0

    @property
    def shift(self) -> float:
        """The least shift that makes the function non-negative on the reference set."""
        return max(0.0, -self.lowest) if math.isfinite(self.lowest) else 0.0

    @property
    def eta(self) -> float:
        """The accuracy under that shift."""
        return accuracy(self.value, self.highest, self.shift)

    @property
    def eta_fixed(self) -> float:
        """The accuracy under the fixed shift."""
        return accuracy(self.value, self.highest, self.fixed_shift)

    def to_json(self) -> dict[str, float | None]:
        """Return everything, for a log; None in place of numbers that are not finite."""
        numbers = {
            "gap": self.gap,
            "eta": self.eta,
            "shift": self.shift,
            "eta_fixed": self.eta_fixed,
            "fixed_shift": self.fixed_shift,
            "value": self.value,
            "highest": self.highest,
            "solver_evaluations": self.solver_evaluations,
            "solver_seconds": self.solver_seconds,
            "reference_seconds": self.seconds,
        }
        return {name: number if math.isfinite(number) else None for name, number in numbers.items()}


def accuracy(value: float, highest: float, shift: float) -> float:
    """Return (value + shift) / (highest + shift) clipped to [0, 1]; 1 if the value is the highest."""
    if value >= highest:
        return 1.0
    if highest + shift <= 0.0 or not math.isfinite(value):
        return 0.0
    return min(max((value + shift) / (highest + shift), 0.0), 1.0)


def measure(
    function: Differentiable,
    domain: Domain,
    rng: np.random.Generator,
    solution: Solution,
    *,
    fixed_shift: float = 0.0,
    points: int = 8192,
    gradient: Gradient = "analytic",
) -> Inexactness:
    """Compare a solution with the best of a scrambled Sobol set whose best points, and the solution, are polished.

    Costly: some thousands of evaluations; meant for one step in ten or so.

    Args:
        function, domain: what was maximised, and where.
        rng: for the Sobol set.
        solution: what the solver returned.
        fixed_shift: see `Inexactness`.
        points: size of the set, a power of 2.
        gradient: "analytic" or "fd".
    """
    from scipy.stats import qmc  # takes a third of a second to import, and few runs measure

    started = time.perf_counter()
    search = Search(function, domain, gradient=gradient)
    _, here = search.try_points(solution.x[None])
    if is_small(domain):
        values = try_all(search)
    else:
        X, values = search.try_points(qmc.Sobol(domain.d, rng=rng).random(points), ROWS_AT_ONCE)
        starts = np.concatenate([solution.x[None], X[np.argsort(-values, kind="stable")[:POLISHED]]])
        axes = np.flatnonzero(climbable(domain))
        if len(axes) > 0:
            starts = np.stack([minimise(search, x, axes, "L-BFGS-B", BOX, TIGHT, gradient).best for x in starts])
        search_axes(search, *search.try_points(starts), rng)
    highest, values = search.solution(rng).value, np.append(values, here)
    return Inexactness(
        value=float(here[0]),
        highest=highest,
        lowest=float(np.min(values, initial=highest, where=np.isfinite(values))),
        fixed_shift=fixed_shift,
        solver_evaluations=solution.evaluations,
        solver_seconds=solution.seconds,
        seconds=time.perf_counter() - started,
    )
