"""Inner maximisers of a plain function on the unit cube, by name, with a single calling convention.

    solution = solve("lbfgsb", acquisition, cube, rng)

    random-grid    the best of fresh uniform points                                 grid
    lbfgsb         raw candidates, then quasi-Newton climbs with box bounds         multistart
    nelder-mead    the same starts, then simplex searches                           simplex
    cg             the same starts, then conjugate gradients                        conjugate_gradient

All maximise, return points that can be run, and treat discrete axes as such: the climbers search them one at a time
(`mixed`), and try every point of a small, wholly discrete domain. `two_stage` searches with a cheap function and
improves what it finds with a costly one. `published` has these solvers with the settings of a paper that compared them.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np

from raybo.solvers.conjugate_gradient import conjugate_gradients
from raybo.solvers.domain import Array, Domain
from raybo.solvers.grid import grid_size, random_grid
from raybo.solvers.multistart import multistart_ascent
from raybo.solvers.published import solve_as_published
from raybo.solvers.simplex import nelder_mead
from raybo.solvers.solution import Differentiable, Function, Solution

__all__ = [
    "SOLVERS",
    "Differentiable",
    "Domain",
    "Function",
    "Solution",
    "SolverName",
    "conjugate_gradients",
    "grid_size",
    "multistart_ascent",
    "nelder_mead",
    "random_grid",
    "solve",
]

Preset: TypeAlias = Literal["standard", "paper"]
SolverName: TypeAlias = Literal["random-grid", "lbfgsb", "nelder-mead", "cg"]
SOLVERS: tuple[SolverName, ...] = get_args(SolverName)


def solve(
    name: SolverName,
    function: Function,
    domain: Domain,
    rng: np.random.Generator,
    *,
    preset: Preset = "standard",
    size: int | None = None,
    near: Array | None = None,
    avoid: Array | None = None,
    apart: float | Array = 0.0,
    **options: Any,
) -> Solution:
    """Maximise by the named solver.

    Args:
        name: of the solver.
        function: maximised; the random grid and Nelder-Mead use its values only.
        domain: the cube.
        rng: a stream for this search alone.
        preset: "standard", or "paper" for the settings of the published comparison of these solvers.
        size: how many uniform points: the grid itself (1,000 unless given), or a climber's raw candidates (512).
        near: (k, d), good points already known, best first; climbers also start near them. The random grid does not.
        avoid: (a, d), points that must not be returned while the domain has others.
        apart: the least distance from those, one for all or (a,); with 0 the point must just differ.
        options: the solver's own.
    Raises:
        ValueError: an unknown name.
    """
    if name not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {name!r}")
    options |= {"avoid": avoid, "apart": apart}
    if size is not None:
        options["size"] = size
    if preset == "paper":
        return solve_as_published(name, function, domain, rng, **options)
    if name == "random-grid":
        return random_grid(function, domain, rng, **options)
    if name == "nelder-mead":
        return nelder_mead(function, domain, rng, near=near, **options)
    smooth = cast(Differentiable, function)
    if name == "cg":
        return conjugate_gradients(smooth, domain, rng, near=near, **options)
    return multistart_ascent(smooth, domain, rng, near=near, **options)
