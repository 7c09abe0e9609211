"""The importance of parameters: Sobol indices of the objective's surrogate, with their uncertainty.

    main_i  = Var(E[f | x_i]) / Var f            what x_i explains alone
    total_i = E[Var(f | all but x_i)] / Var f    what it explains alone and together with others

x is uniform over the cube's runnable points. Both are estimated from two scrambled Sobol samples A, B (N, d) and their
mixtures AB_i (A with column i of B), once for each function drawn from the posterior: the spread over the draws is the
uncertainty that remains because there are few trials.

Saltelli et al. (2010), "Variance based sensitivity analysis of model output", table 2, (b) for main and (f) for total;
Le Gratiet, Cannamela, Iooss (2014), "A Bayesian approach for global sensitivity analysis of (multifidelity) computer
codes", for the draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raybo.reporting.emulator import Emulator
from raybo.space import Array, Cube
from raybo.surrogate import draw_function

DRAWS = 24
POINTS = 512  # N; a power of two keeps the Sobol sample balanced
FEATURES = 512


@dataclass(frozen=True, eq=False)
class Importance:
    """Indices of each parameter: the median over the draws, and where nine in ten of them lie.

    Attributes:
        main, total: (3, d), the 5 %, 50 % and 95 % quantiles.
    """

    main: Array
    total: Array

    @property
    def order(self) -> list[int]:
        """The parameters by their total index, the largest first."""
        return [int(i) for i in np.argsort(-self.total[1], kind="stable")]


def importance(emulator: Emulator, *, draws: int = DRAWS, points: int = POINTS, seed: int = 0) -> Importance:
    """Sobol's indices of the objective, in the units in which the surrogate sees it."""
    rng = np.random.default_rng(seed)
    cube = emulator.history.cube
    design = sobol_design(cube, points, rng)
    found = np.array(
        [
            sobol_indices(draw_function(emulator.gp, rng, features=FEATURES, levels=cube.levels).value, design)
            for _ in range(draws)
        ]
    )  # (draws, 2, d)
    main, total = np.quantile(found, [0.05, 0.5, 0.95], axis=0).transpose(1, 0, 2)
    return Importance(main, total)


def sobol_design(cube: Cube, points: int, rng: np.random.Generator) -> Array:  # (d + 2, N, d)
    """A, B and the d mixtures AB_i, all runnable points."""
    from scipy.stats import qmc

    sample = cube.place(np.vstack(np.split(qmc.Sobol(2 * cube.d, rng=rng).random(points), 2, axis=1)))
    A, B = sample[:points], sample[points:]
    mixed = np.repeat(A[None, :, :], cube.d, axis=0)
    axes = np.arange(cube.d)
    mixed[axes, :, axes] = B.T
    return np.concatenate([A[None], B[None], mixed])


def sobol_indices(f: Callable[[Array], Array], design: Array) -> tuple[Array, Array]:  # (d + 2, N, d) -> (d,), (d,)
    """Return the first-order and total Sobol indices of a function of rows; zeros if it is constant."""
    k, n, d = design.shape
    values = f(design.reshape(k * n, d)).reshape(k, n)
    a, b, mixed = values[0], values[1], values[2:]
    variance = float(np.var(values[:2]))
    if variance <= 1e-12 * float(np.mean(np.square(values[:2]))):
        return np.zeros(d), np.zeros(d)
    main = np.mean((b - values[:2].mean()) * (mixed - a), axis=1) / variance
    total = 0.5 * np.mean(np.square(a - mixed), axis=1) / variance
    return np.clip(main, 0.0, 1.0), np.clip(total, 0.0, None)
