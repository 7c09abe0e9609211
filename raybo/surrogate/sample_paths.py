"""Functions drawn from the posterior: jointly on a finite set, or over the whole cube.

A draw over the cube is a draw from the prior, made of random Fourier features and corrected exactly by the data:

    f(x) = m + p(x) + k(x, X) A^-1 (y - m - p(X) - noise)
    p(x) = sum_i weight_i cos 2 pi (frequency_i . x + phase_i)

Every weight is that of a sine and a cosine together: sqrt(outputscale / F) times a Rayleigh variable with a mean square
of 2. Categorical axes enter through a one-hot code with the kernel's 1[x != x'] as its squared distance.

Wilson et al. (2020), "Efficiently sampling functions from Gaussian process posteriors", eq. (13); Rahimi, Recht (2007),
"Random features for large-scale kernel machines", for the features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raybo.common.errors import NumericalError
from raybo.surrogate.blocks import blocks
from raybo.surrogate.factor import cholesky, solve
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels import Array

FEATURES = 1_024
LEAST_ROWS = 8  # of a block
SINE = [(-1) ** k * (2.0 * math.pi) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(11)]  # its series
DEGREES = {"matern32": 3.0, "matern52": 5.0}  # of the t distribution that is a Matern kernel's spectrum, 2 nu


def joint_draws(gp: GP, X: Array, rng: np.random.Generator, draws: int = 1) -> Array:  # (draws, m)
    """Return draws of f at the rows of X (m, d) together; O(m^3), meant for m up to 2,000."""
    mean, cov = gp.joint(X)
    try:
        L, _ = cholesky(cov)
    except NumericalError:  # rounding has left a posterior that is almost known with negative eigenvalues
        values, vectors = np.linalg.eigh(cov)
        L = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(mean + rng.standard_normal((draws, len(X))) @ L.T)


@dataclass(frozen=True, eq=False)
class FunctionDraw:
    """One function drawn from a posterior, over the whole cube.

    A coordinate on a categorical axis stands for the nearest of its levels.

    Attributes:
        gp: the posterior.
        levels: per axis the ascending coordinates of its categories, empty if it is not categorical.
        frequencies: (F, c), of the coded axes, in turns per unit. phases: (F,), in turns. weights: (F,).
        correction: (n,), A^-1 times what the prior's part lacks at the data.
    """

    gp: GP
    levels: tuple[Array, ...]
    frequencies: Array
    phases: Array
    weights: Array
    correction: Array

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the function at the rows of X."""
        values = np.empty(len(X))
        for rows in blocks(len(X), len(self.phases), LEAST_ROWS):
            snapped, turns = self._turns(X[rows])
            prior = cosine(turns) @ self.weights
            values[rows] = prior + self.gp.stationary.matrix(snapped, self.gp.X) @ self.correction
        values += self.gp.prior_mean
        return values

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return the function and its gradient; zero along categorical axes."""
        numeric = [j for j, levels in enumerate(self.levels) if len(levels) == 0]
        values, gradient = np.empty(len(X)), np.zeros(X.shape)
        for rows in blocks(len(X), len(self.phases), LEAST_ROWS):
            snapped, turns = self._turns(X[rows])
            K, slope = self.gp.stationary.matrix_and_slope(snapped, self.gp.X)
            values[rows] = cosine(turns) @ self.weights + K @ self.correction
            waves = cosine(turns + 0.25)  # the cosine's slope, for an angle of 1
            waves *= 2.0 * math.pi * self.weights
            part = self.gp.stationary.contract(snapped, self.gp.X, slope * self.correction)
            part[:, numeric] += waves @ self.frequencies[:, : len(numeric)]
            gradient[rows] = part
        values += self.gp.prior_mean
        return values, gradient

    def _turns(self, X: Array) -> tuple[Array, Array]:  # (m, d), (m, F)
        snapped = X
        if any(len(levels) for levels in self.levels):
            snapped = X.copy()
            for j, levels in enumerate(self.levels):
                if len(levels):
                    snapped[:, j] = levels[np.searchsorted(0.5 * (levels[1:] + levels[:-1]), X[:, j])]
        turns = _code(snapped, self.levels) @ self.frequencies.T
        turns += self.phases
        return snapped, turns


def draw_function(
    gp: GP, rng: np.random.Generator, *, features: int = FEATURES, levels: Sequence[Array | None] = ()
) -> FunctionDraw:
    """Return a function drawn from the posterior.

    Args:
        gp: the posterior.
        features: random Fourier features of the prior's part; its error falls with their root.
        levels: per axis the ascending coordinates of its categories, needed for categorical axes only; where there is
            None for one, those observed stand for all.
    """
    o = gp.observations
    coded = []
    for j, is_categorical in enumerate(o.categorical):
        known = levels[j] if is_categorical and j < len(levels) else None
        observed = np.unique(o.X[:, j]) if is_categorical else np.empty(0)
        coded.append(observed if known is None else np.asarray(known, dtype=np.float64))
    numeric = ~np.asarray(o.categorical, dtype=bool)
    widths = np.concatenate(
        [gp.lengthscale[numeric]] + [np.full(len(c), gp.lengthscale[j]) for j, c in enumerate(coded) if len(c)]
    )
    frequencies = rng.standard_normal((features, len(widths)))
    if gp.stationary.name in DEGREES:
        degrees = DEGREES[gp.stationary.name]
        frequencies /= np.sqrt(rng.chisquare(degrees, (features, 1)) / degrees)
    frequencies /= 2.0 * math.pi * widths
    phases = rng.random(features)
    weights = math.sqrt(gp.outputscale / features) * rng.rayleigh(size=features)
    uncorrected = FunctionDraw(gp, tuple(coded), frequencies, phases, weights, np.zeros(gp.n))
    noise = rng.standard_normal(gp.n) * np.sqrt(o.noise(gp.noise_variance) + gp.jitter)
    return replace(uncorrected, correction=solve(gp.L, o.y - uncorrected.value(o.X) - noise))


def cosine(turns: Array) -> Array:
    """Return cos(2 pi turns), to a few 1e-16 of angles up to thousands of turns.

    numpy's own takes 30 ns per number, which would be nearly all of a draw's time; this takes a quarter of that.
    """
    r = turns - np.rint(turns)  # within half a turn
    np.abs(r, out=r)
    np.subtract(0.25, r, out=r)  # cos(2 pi r) = sin(2 pi (1/4 - r)), within a quarter of a turn
    square = np.square(r)
    total = np.full_like(r, SINE[-1])
    for coefficient in SINE[-2::-1]:
        total *= square
        total += coefficient
    total *= r
    return total


def _code(X: Array, levels: Sequence[Array]) -> Array:  # (m, d) -> (m, c)
    """Return numeric axes as they are, then each categorical one in a one-hot code scaled to distance 1."""
    numeric = [j for j, level in enumerate(levels) if len(level) == 0]
    parts = [X[:, numeric]]
    parts += [math.sqrt(0.5) * (X[:, j, None] == level) for j, level in enumerate(levels) if len(level)]
    return np.concatenate(parts, axis=1)
