"""Functions drawn from the posterior: jointly on a finite set, or over the whole cube.

A draw over the cube is one from the prior, made of random Fourier features, corrected by the data exactly:

    f(x) = w . features(x) + k(x, X) A^-1 (y - w . features(X) - noise)

Categorical axes enter the features through a one-hot code whose squared distance is the kernel's 1[x != x'].

Wilson et al. (2020), "Efficiently sampling functions from Gaussian process posteriors", eq. (13); Rahimi, Recht (2007).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from raybo.errors import NumericalError
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels import Array, profile, profile_and_slope, squared_distances
from raybo.surrogate.likelihood import cholesky

FEATURES = 1_024
DEGREES = {"matern32": 3.0, "matern52": 5.0}  # of the t distribution that is a Matern kernel's spectrum, 2 nu


def joint_draws(gp: GP, X: Array, rng: np.random.Generator, draws: int = 1) -> Array:  # (draws, m)
    """Draws of f at the rows of X (m, d) together; O(m^3), meant for m up to 2,000.

    Raises:
        NumericalError: the posterior covariance cannot be factorised.
    """
    mean, cov = gp.joint(X)
    try:
        L, _ = cholesky(cov)
    except NumericalError:  # rounding has left a posterior that is almost known with negative eigenvalues
        values, vectors = np.linalg.eigh(cov)
        L = vectors * np.sqrt(np.maximum(values, 0.0))
    return mean + rng.standard_normal((draws, len(X))) @ L.T


@dataclass(frozen=True)
class FunctionDraw:
    """One function drawn from a posterior, over the whole cube.

    Attributes:
        gp: the posterior. frequencies: (F, c) of the coded axes. phases, weights: (F,). correction: (n,).
    """

    gp: GP
    frequencies: Array
    phases: Array
    weights: Array
    correction: Array
    levels: tuple[Array, ...]

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """The function at the rows of X."""
        lengthscale, outputscale, _ = self.gp.hyperparameters
        o = self.gp.observations
        K = outputscale * profile(self.gp.model.kernel, squared_distances(X, o.X, lengthscale, o.categorical))
        return np.cos(_code(X, self.levels) @ self.frequencies.T + self.phases) @ self.weights + K @ self.correction

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """The function and its gradient; zero along categorical axes."""
        lengthscale, outputscale, _ = self.gp.hyperparameters
        o = self.gp.observations
        numeric = ~np.asarray(o.categorical)
        angle = _code(X, self.levels) @ self.frequencies.T + self.phases
        kernel, slope = profile_and_slope(self.gp.model.kernel, squared_distances(X, o.X, lengthscale, o.categorical))
        value = np.cos(angle) @ self.weights + outputscale * (kernel @ self.correction)
        gradient = np.zeros_like(X)
        gradient[:, numeric] = -(np.sin(angle) * self.weights) @ self.frequencies[:, : int(numeric.sum())]
        W = slope * self.correction
        scale = np.where(numeric, 2.0 * outputscale / lengthscale**2, 0.0)
        gradient += scale * (X * W.sum(axis=1)[:, None] - W @ o.X)
        return value, gradient


def draw_function(
    gp: GP, rng: np.random.Generator, *, features: int = FEATURES, levels: tuple[Array | None, ...] = ()
) -> FunctionDraw:
    """A function drawn from the posterior.

    Args:
        gp: the posterior.
        features: random Fourier features of the prior's part; its error falls with their root.
        levels: per axis the coordinates of its categories; needed for categorical axes only.
    """
    lengthscale, outputscale, noise = gp.hyperparameters
    o = gp.observations
    coded = tuple(
        (np.empty(0) if not categorical else np.asarray(levels[j])) for j, categorical in enumerate(o.categorical)
    )
    width = np.concatenate(
        [lengthscale[~np.asarray(o.categorical)]]
        + [np.full(len(c), lengthscale[j]) for j, c in enumerate(coded) if len(c)]
    )
    spectrum = rng.standard_normal((features, len(width)))
    if gp.model.kernel in DEGREES:
        degrees = DEGREES[gp.model.kernel]
        spectrum /= np.sqrt(rng.chisquare(degrees, (features, 1)) / degrees)
    frequencies = spectrum / width
    phases = rng.uniform(0.0, 2.0 * np.pi, features)
    weights = rng.standard_normal(features) * np.sqrt(2.0 * outputscale / features)
    at_data = np.cos(_code(o.X, coded) @ frequencies.T + phases) @ weights
    error = rng.standard_normal(gp.n) * np.sqrt(noise / o.counts)
    correction, _ = lapack.dpotrs(gp.L.T, o.y - at_data - error, lower=0)
    return FunctionDraw(gp, frequencies, phases, weights, correction, coded)


def _code(X: Array, levels: tuple[Array, ...]) -> Array:  # (m, c)
    """Numeric axes as they are, then each categorical one in a one-hot code scaled to distance 1."""
    numeric = [j for j, level in enumerate(levels) if len(level) == 0]
    parts = [X[:, numeric]]
    parts += [np.sqrt(0.5) * (X[:, j][:, None] == level) for j, level in enumerate(levels) if len(level)]
    return np.concatenate(parts, axis=1)
