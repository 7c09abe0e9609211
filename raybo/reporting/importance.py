"""The importance of parameters: Sobol indices of the objective, with their uncertainty.

    main_i  = Var(E[f | x_i]) / Var f            what x_i explains alone
    total_i = E[Var(f | all but x_i)] / Var f    what it explains alone and together with others

x is uniform over the cube's runnable points, and f is in the metric's own units (its logarithm where the other figures
have one): a transform that makes values normal, as `auto` and the other figures' surrogate have, would change the
indices. Both are estimated from two scrambled Sobol samples A, B (N, d) and their mixtures AB_i (A with column i of B),
once for each function drawn from the posterior. The spread over the draws has three sources: the few trials,
hyperparameters that are sampled and not fixed at the likeliest, and a sample of points of its own for each draw.

Saltelli et al. (2010), "Variance based sensitivity analysis of model output", table 2, (b) for main and (f) for total;
Le Gratiet, Cannamela, Iooss (2014), "A Bayesian approach for global sensitivity analysis of (multifidelity) computer
codes", for the draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raybo.common.errors import NumericalError
from raybo.reporting.emulator import CONDITIONED, Emulator
from raybo.reporting.frame import is_logarithmic
from raybo.space import Array, Cube
from raybo.surrogate import GP, Likelihood, Observations, Standardised, draw_function, noisy_model, sample_slice

DRAWS = 48
POINTS = 256  # N; a power of two keeps the Sobol sample balanced
FEATURES = 512
BURN_IN = 10  # sweeps of the hyperparameters before the first draw
SAMPLED_POINTS = 150  # trials at most that the hyperparameters are sampled from: thousands of likelihoods


@dataclass(frozen=True, eq=False)
class Importance:
    """Indices of each parameter: the median over the draws, and the ends of its 90% interval.

    Attributes:
        main, total: (3, d), the 5%, 50% and 95% quantiles.
        is_log: true if they are those of the metric's logarithm.
    """

    main: Array
    total: Array
    is_log: bool = False

    @property
    def order(self) -> list[int]:
        """The parameters by their total index, the largest first."""
        return [int(i) for i in np.argsort(-self.total[1], kind="stable")]


def importance(emulator: Emulator, *, draws: int = DRAWS, points: int = POINTS, seed: int = 0) -> Importance:
    """Return the Sobol indices of a study's objective."""
    rng = np.random.default_rng(seed)
    cube, y = emulator.history.cube, emulator.history.y
    is_log = is_logarithmic(emulator.goal, emulator.goal.value_of(y))
    if is_log:
        y = -np.log10(-y)
    found = np.array(
        [
            sobol_indices(
                draw_function(gp, rng, features=FEATURES, levels=cube.levels).value, sobol_design(cube, points, rng)
            )
            for gp in _posteriors(emulator, y, draws, rng)
        ]
    )  # (draws, 2, d)
    main, total = np.quantile(found, [0.05, 0.5, 0.95], axis=0).transpose(1, 0, 2)
    return Importance(main, total, is_log)


def _posteriors(emulator: Emulator, y: Array, draws: int, rng: np.random.Generator) -> list[GP]:
    """Return posteriors of the objective, one for each sample of the hyperparameters."""
    history, model = emulator.history, noisy_model()
    everything = Observations.of(history.X, Standardised.of(y).apply(y), history.cube.categorical)
    observations = everything.thinned(CONDITIONED)
    likelihood = Likelihood(observations.thinned(SAMPLED_POINTS), model)
    try:
        samples = sample_slice(likelihood, emulator.gp.theta, rng, samples=draws, burn_in=BURN_IN)
        return [GP.of(observations, model, theta) for theta in samples.thetas]
    except NumericalError:  # values that no scale suits: as the emulator sees them
        return [emulator.gp] * draws


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
