"""The evaluated point to recommend: the one with the best expectation over the contexts, not the luckiest one.

    E(x) = sum_s p_s mean(x, s)      var = p' cov p      of the GP over (x, c), at atoms s of the estimated law

Both follow from the embedding k(x) = sum_s p_s k((x, s), Z): E(x) = m + k(x) alpha. Huang et al. (2024) report only
regret; this is the recommendation that their method implies. It uses only finished trials, whatever the method was, and
is a function of the history: its atoms are seeded with a constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from raybo.common.errors import TrialError
from raybo.context.ambiguity import WorstShare
from raybo.context.density import Density
from raybo.context.model import context_model, cube_of_contexts, joint_categorical, split_distances, with_context
from raybo.record.history import History
from raybo.record.states import State
from raybo.space import Array
from raybo.surrogate import GP, Observations, Outputs, SignedLog, Standardised, fit_map
from raybo.surrogate.blocks import blocks
from raybo.surrogate.factor import half_solve
from raybo.surrogate.kernels import profile, squared_distances
from raybo.surrogate.observations import merged

T = TypeVar("T", bound=Outputs)

SEED = 20_240_220
ATOMS, FEWEST_ATOMS = 256, 32
TAIL = 0.05  # share of the contexts, the worst ones, over which constraints should hold on average
CAUTION = 1.0  # standard deviations by which they should
WORK = 8_000_000  # kernel values for all points together: a tenth of a second
FITTED = 150  # observations that hyperparameters are fitted to


def best_expected(history: History) -> tuple[int, float, float]:
    """Return the finished trial whose point has the largest estimated expectation over the contexts.

    With constraints, of those that should hold on average over the worst twentieth of the contexts; if there are none,
    the one that comes closest.

    Returns:
        The trial's number (the earliest of equals), the expectation there and the standard deviation of that estimate,
        both in the maximised values' units. With fewer than two finished trials whose context is known: the trial with
        the best value, that value, and nan.
    Raises:
        TrialError: no trial has finished.
    """
    return _best_over(history, *_law(history))


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
        top = int(np.argmax(np.where(history.feasible, history.y, -np.inf) if history.feasible.any() else history.y))
        return finished[top], float(history.y[top]), math.nan
    gp, outputs = _fitted(history, Z, y, Standardised.of)
    first, _ = merged(history.X)  # repeats of a point would differ by rounding
    means, stds = expected(gp, history.X[first], atoms, p)
    short = _shortfalls(history, history.X[first], atoms, p)
    top = int(np.lexsort((-means, short))[0])
    return finished[first[top]], float(outputs.invert(means[[top]])[0]), outputs.std * float(stds[top])


def breaks_constraints(history: History, number: int) -> bool:
    """Return True if a trial's configuration is expected to break a constraint in the worst of the contexts."""
    atoms, p = _law(history)
    return bool(_shortfalls(history, history.records[number].x[None, :], atoms, p)[0] > 0.0)


def _law(history: History) -> tuple[Array, Array]:  # (a, dc), (a,)
    n = max(1, len(history.y))
    density = Density.of(history.contexts, cube_of_contexts(history))
    return density.atoms(max(FEWEST_ATOMS, min(ATOMS, WORK // n**2)), np.random.default_rng(SEED))


def _shortfalls(history: History, X: Array, atoms: Array, p: Array) -> Array:  # (m, dx), (a, dc), (a,) -> (m,)
    """Return by how much each point breaks the constraints in the worst contexts, in standard deviations; 0 if none.

    A recommendation has to be sure: what counts is the mean less its standard deviation.
    """
    short, worst = np.zeros(len(X)), WorstShare(p, TAIL)
    for j in range(len(history.goals.constraints)):
        Z, margins = with_context(history.of_number(history.goals.k + j))
        if len(margins) < 2:
            return short
        gp, outputs = _fitted(history, Z, margins, SignedLog.of)
        short = np.maximum(short, float(outputs.apply(np.zeros(1))[0]) - worst.value(_lower_bounds(gp, X, atoms)))
    return short


def _fitted(history: History, Z: Array, y: Array, transform: Callable[[Array], T]) -> tuple[GP, T]:
    """Return the model of these values at points of the joint cube, and their transform."""
    outputs, model = transform(y), context_model()
    observations = Observations.of(Z, outputs.apply(y), joint_categorical(history))
    return GP.of(observations, model, fit_map(observations, model, at_most=FITTED)), outputs


def _lower_bounds(gp: GP, X: Array, atoms: Array) -> Array:  # (m, dx), (a, dc) -> (m, a)
    """Return the mean of each point at each context, less a standard deviation."""
    qx, qc = split_distances(gp, X, atoms)
    bounds = np.empty((len(X), len(atoms)))
    for rows in blocks(len(X), qc.size):
        q = qx[rows, None, :] + qc
        K = gp.outputscale * profile(gp.stationary.name, q.reshape(-1, gp.n))
        V = half_solve(gp.L, K.T)
        std = np.sqrt(np.maximum(gp.outputscale - np.einsum("nr,nr->r", V, V), 0.0))
        bounds[rows] = (gp.prior_mean + K @ gp.alpha - CAUTION * std).reshape(q.shape[:2])
    return bounds


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
