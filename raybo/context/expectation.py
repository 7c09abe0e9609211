"""The evaluated point to recommend: the one with the best expectation over the contexts, not the luckiest one.

    E(x) = sum_s p_s mean(x, s)      var = p' cov p      of the GP over (x, c), at atoms s of the estimated law

Both follow from the embedding k(x) = sum_s p_s k((x, s), Z): E(x) = m + k(x) alpha. Huang et al. (2024) report only
regret; this is the recommendation that their method implies. It uses only finished trials, whatever the method was, and
is a function of the history: its atoms are seeded with a constant.
"""

from __future__ import annotations

import math

import numpy as np

from raybo.common.errors import TrialError
from raybo.context.density import Density
from raybo.context.model import context_model, cube_of_contexts, joint_categorical, split_distances, with_context
from raybo.record.history import History
from raybo.record.states import State
from raybo.space import Array
from raybo.surrogate import GP, Observations, Standardised, fit_map
from raybo.surrogate.blocks import blocks
from raybo.surrogate.factor import half_solve
from raybo.surrogate.kernels import profile, squared_distances
from raybo.surrogate.observations import merged

SEED = 20_240_220
ATOMS, FEWEST_ATOMS = 256, 32
WORK = 8_000_000  # kernel values for all points together: a tenth of a second
FITTED = 150  # observations that hyperparameters are fitted to


def best_expected(history: History) -> tuple[int, float, float]:
    """Return the finished trial whose point has the largest estimated expectation over the contexts.

    Returns:
        The trial's number (the earliest of equals), the expectation there and the standard deviation of that estimate,
        both in the maximised values' units. With fewer than two finished trials whose context is known: the trial with
        the best value, that value, and nan.
    Raises:
        TrialError: no trial has finished.
    """
    rng = np.random.default_rng(SEED)
    n = max(1, len(history.y))
    atoms, p = Density.of(history.contexts, cube_of_contexts(history)).atoms(
        max(FEWEST_ATOMS, min(ATOMS, WORK // n**2)), rng
    )
    return _best_over(history, atoms, p)


def best_for(history: History, c: Array) -> tuple[int, float, float]:  # (dc,)
    """Return the trial that is best if the context will be c, coordinates in [0, 1], as `best_expected` does."""
    atom = np.asarray(c, dtype=np.float64).reshape(1, cube_of_contexts(history).d)
    return _best_over(history, atom, np.ones(1))


def _best_over(history: History, atoms: Array, p: Array) -> tuple[int, float, float]:
    finished = [number for number, record in enumerate(history.records) if record.state is State.FINISHED]
    if not finished:
        raise TrialError("no trial has finished yet, so there is no best one")
    Z, y = with_context(history)
    if len(y) < 2:
        top = int(np.argmax(history.y))
        return finished[top], float(history.y[top]), math.nan
    outputs = Standardised.of(y)
    observations = Observations.of(Z, outputs.apply(y), joint_categorical(history))
    model = context_model()
    gp = GP.of(observations, model, fit_map(observations, model, at_most=FITTED))
    first, _ = merged(history.X)  # repeats of a point would differ by rounding
    means, stds = expected(gp, history.X[first], atoms, p)
    top = int(np.argmax(means))
    return finished[first[top]], float(outputs.invert(means[[top]])[0]), outputs.std * float(stds[top])


def expected(gp: GP, X: Array, atoms: Array, p: Array) -> tuple[Array, Array]:  # (m, dx), (a, dc), (a,) -> (m,), (m,)
    """Return mean and standard deviation of sum_s p_s f(x, s) at the rows x of X, in the GP's units."""
    embedded = embeddings(gp, X, atoms, p)
    V = half_solve(gp.L, embedded.T)
    var = _prior_variance(gp, atoms, p) - np.einsum("nm,nm->m", V, V)
    return gp.prior_mean + embedded @ gp.alpha, np.sqrt(np.maximum(var, 0.0))


def embeddings(gp: GP, X: Array, atoms: Array, p: Array) -> Array:  # (m, dx), (a, dc), (a,) -> (m, n)
    """Return sum_s p_s k((x, s), Z) for the rows x of X, where Z are the n points of the GP over (x, c)."""
    qx, qc = split_distances(gp, X, atoms)
    embedded = np.empty(qx.shape)
    for rows in blocks(len(X), qc.size):
        q = qx[rows, None, :] + qc
        embedded[rows] = np.einsum("a,man->mn", p, profile(gp.stationary.name, q))
    return gp.outputscale * embedded


def _prior_variance(gp: GP, atoms: Array, p: Array) -> float:
    """Return p' k((x, s), (x, s')) p, a constant in x."""
    dx = gp.d - atoms.shape[1]
    q = squared_distances(atoms, atoms, gp.lengthscale[dx:], gp.stationary.categorical[dx:])
    return float(gp.outputscale * (p @ profile(gp.stationary.name, q) @ p))
