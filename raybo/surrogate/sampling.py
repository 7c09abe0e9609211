"""Samples from the posterior of the hyperparameters, on theta = log(hyperparameters) within the model's ranges.

    sample_hmc      Hamiltonian Monte Carlo: leapfrog steps, identity mass, walls that reflect
    sample_slice    one coordinate at a time, stepping out and shrinking

Neal (2011), "MCMC using Hamiltonian dynamics", section 5.1 for the walls; Neal (2003), "Slice sampling", sections 4, 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybo.surrogate.kernels import Array
from raybo.surrogate.likelihood import Likelihood

TARGET_ACCEPTANCE = 0.65  # of HMC in its tuning, the asymptotic optimum


@dataclass(frozen=True)
class Samples:
    """What a chain found: thetas (s, p), the share of accepted proposals, the step size it ended with."""

    thetas: Array
    acceptance: float
    step: float


def sample_hmc(
    likelihood: Likelihood,
    start: Array,  # (p,)
    rng: np.random.Generator,
    *,
    samples: int = 10,
    burn_in: int = 200,
    thin: int = 10,
    leapfrogs: int = 20,
    step: float = 0.05,
    tune: bool = True,
) -> Samples:
    """Hamiltonian Monte Carlo from `start`; fixed entries of theta stay.

    Args:
        likelihood: of the data under the model.
        samples: how many to keep, every `thin`-th after `burn_in`.
        leapfrogs, step: of one proposal.
        tune: whether the step size follows the acceptance during the burn-in.
    Source: Ha et al., "Provably Efficient Bayesian Optimization with Unknown Gaussian Process Hyperparameter
        Estimation", appendix C, for the counts; reflecting walls are ours, as the prior alone lets chains drift away.
    """
    bounds = likelihood.model.bounds(likelihood.d)
    free = bounds[:, 0] < bounds[:, 1]
    low, high = bounds[:, 0], bounds[:, 1]
    theta = np.clip(np.asarray(start, dtype=np.float64), low, high)
    value, gradient = likelihood.log_posterior(theta)
    kept, accepted, proposed = [], 0, 0
    for i in range(burn_in + samples * thin):
        momentum = np.where(free, rng.standard_normal(len(theta)), 0.0)
        ended = _leapfrog(likelihood, theta, gradient, momentum, low, high, free, leapfrogs, step)
        accept = False
        if ended is not None:
            new, new_value, new_gradient, new_momentum = ended
            gain = (new_value - 0.5 * new_momentum @ new_momentum) - (value - 0.5 * momentum @ momentum)
            accept = bool(math.log(rng.random()) < gain)
            if accept:
                theta, value, gradient = new, new_value, new_gradient
        if i < burn_in:
            if tune:
                step *= math.exp((float(accept) - TARGET_ACCEPTANCE) / (1.0 + i) ** 0.6)
        else:
            accepted, proposed = accepted + accept, proposed + 1
            if (i - burn_in) % thin == thin - 1:
                kept.append(theta)
    return Samples(np.array(kept), accepted / max(proposed, 1), step)


def _leapfrog(
    likelihood: Likelihood,
    theta: Array,
    gradient: Array,
    momentum: Array,
    low: Array,
    high: Array,
    free: NDArray[np.bool_],
    steps: int,
    step: float,
) -> tuple[Array, float, Array, Array] | None:
    """Where the dynamics lead; None where the likelihood ceases to be a number."""
    value = 0.0
    for _ in range(steps):
        momentum = momentum + 0.5 * step * np.where(free, gradient, 0.0)
        theta = theta + step * momentum
        for _ in range(10):  # a long step may bounce more than once
            below, above = theta < low, theta > high
            if not (below.any() or above.any()):
                break
            theta = np.where(below, 2.0 * low - theta, np.where(above, 2.0 * high - theta, theta))
            momentum = np.where(below | above, -momentum, momentum)
        theta = np.clip(theta, low, high)
        value, gradient = likelihood.log_posterior(theta)
        if not math.isfinite(value):
            return None
        momentum = momentum + 0.5 * step * np.where(free, gradient, 0.0)
    return theta, value, gradient, momentum


def sample_slice(
    likelihood: Likelihood,
    start: Array,  # (p,)
    rng: np.random.Generator,
    *,
    samples: int = 10,
    burn_in: int = 20,
    width: float = 1.0,
) -> Samples:
    """Slice sampling of each free entry of theta in turn, a sweep a sample, within the model's ranges.

    Args:
        width: of the first interval, in logs.
    """
    bounds = likelihood.model.bounds(likelihood.d)
    theta = np.clip(np.asarray(start, dtype=np.float64), bounds[:, 0], bounds[:, 1])
    free = np.flatnonzero(bounds[:, 0] < bounds[:, 1])
    value = likelihood.log_posterior(theta)[0]
    kept = []
    for i in range(burn_in + samples):
        for j in free:
            theta, value = _slice(lambda t: likelihood.log_posterior(t)[0], theta, value, int(j), bounds[j], width, rng)
        if i >= burn_in:
            kept.append(theta)
    return Samples(np.array(kept), 1.0, width)


def _slice(
    density: Callable[[Array], float],
    theta: Array,
    value: float,
    j: int,
    bounds: Array,
    width: float,
    rng: np.random.Generator,
) -> tuple[Array, float]:
    """One draw of coordinate j from its conditional: an interval stepped out to the slice, then shrunk."""

    def at(u: float) -> tuple[Array, float]:
        moved = theta.copy()
        moved[j] = u
        return moved, density(moved)

    level = value + math.log(rng.random())
    left = theta[j] - width * rng.random()
    right = left + width
    while left > bounds[0] and at(left)[1] > level:
        left -= width
    while right < bounds[1] and at(right)[1] > level:
        right += width
    left, right = max(left, bounds[0]), min(right, bounds[1])
    while True:
        u = rng.uniform(left, right)
        moved, found = at(u)
        if found > level or abs(u - theta[j]) < 1e-12:
            return (moved, found) if found > level else (theta, value)
        left, right = (u, right) if u < theta[j] else (left, u)
