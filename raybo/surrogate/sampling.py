"""Samples from the posterior of the hyperparameters, on theta = log(hyperparameters) within the model's ranges.

    sample_hmc      Hamiltonian Monte Carlo: leapfrog steps, identity mass, walls that reflect
    sample_slice    one coordinate at a time, stepping out and shrinking

Priors on unbounded logs may be improper or nearly so (a Gamma of small shape): without walls, a chain drifts to
length-scale 0, where the model is white noise.

Neal (2011), "MCMC using Hamiltonian dynamics", section 5.1 for the walls; Neal (2003), "Slice sampling", sections 4, 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raybo.common.errors import NumericalError
from raybo.surrogate.kernels import Array
from raybo.surrogate.likelihood import Likelihood

TARGET_ACCEPTANCE = 0.65  # of HMC in its tuning, the asymptotic optimum


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of a chain.

    Attributes:
        thetas: (s, p), in order; the last one is where the chain may be continued.
        acceptance: share of the proposals accepted after the burn-in; 1 for the slice sampler, which always moves.
        step: leapfrog step after the burn-in; the width of the slice sampler's first interval.
        evaluations: of the posterior, with its gradient for HMC and without for the slice sampler.
    """

    thetas: Array
    acceptance: float
    step: float
    evaluations: int


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
    """Sample by Hamiltonian Monte Carlo from `start`; fixed entries of theta stay.

    Args:
        likelihood: of the data under the model; thin the data first if there are many.
        samples: how many to keep, every `thin`-th after `burn_in`.
        leapfrogs: steps of one proposal.
        step: their size, to begin with.
        tune: whether it follows the acceptance during the burn-in; with False as published.
    Raises:
        NumericalError: the posterior is not finite at the start.
    Source: Ha et al., "Provably Efficient Bayesian Optimization with Unknown Gaussian Process Hyperparameter
        Estimation", appendix C, for the counts; pyMACE for leapfrogs and step; the walls and the tuning are ours.
    """
    bounds, free = likelihood.model.bounds(likelihood.d), likelihood.model.free(likelihood.d)
    low, high = bounds[free, 0], bounds[free, 1]
    theta = np.clip(start, bounds[:, 0], bounds[:, 1])
    evaluations = 0

    def target(u: Array) -> tuple[float, Array]:
        nonlocal evaluations
        evaluations += 1
        full = theta.copy()
        full[free] = u
        value, gradient = likelihood.log_posterior(full)
        return value, gradient[free]

    u = theta[free]
    value, gradient = _finite(target(u))
    kept, accepted = [], 0
    for i in range(burn_in + samples * thin):
        momentum = rng.standard_normal(len(u))
        new, new_value, new_gradient, new_momentum = leapfrog(target, u, gradient, momentum, low, high, leapfrogs, step)
        energy, new_energy = 0.5 * float(momentum @ momentum), 0.5 * float(new_momentum @ new_momentum)
        gain = (new_value - new_energy) - (value - energy)
        probability = math.exp(min(0.0, gain)) if gain > -math.inf else 0.0  # also if it is not a number
        is_accepted = bool(rng.random() < probability)
        if is_accepted:
            u, value, gradient = new, new_value, new_gradient
        if i < burn_in:
            if tune:
                step *= math.exp((probability - TARGET_ACCEPTANCE) / (1.0 + i) ** 0.6)
            continue
        accepted += is_accepted
        if (i - burn_in) % thin == thin - 1:
            kept.append(u)
    thetas = np.repeat(theta[None, :], len(kept), axis=0)
    thetas[:, free] = np.array(kept).reshape(len(kept), len(low))
    return Samples(thetas, accepted / max(1, samples * thin), step, evaluations)


def leapfrog(
    target: Callable[[Array], tuple[float, Array]],
    u: Array,
    gradient: Array,
    momentum: Array,
    low: Array,
    high: Array,
    steps: int,
    step: float,
) -> tuple[Array, float, Array, Array]:
    """Return where the dynamics lead in a box with reflecting walls: position, log density, its gradient, momentum.

    Reversible: from there with the momentum turned round they lead back. The value is -inf if the density vanished
    on the way.
    """
    value = -math.inf
    for _ in range(steps):
        momentum = momentum + 0.5 * step * gradient
        u, momentum = reflected(u + step * momentum, momentum, low, high)
        value, gradient = target(u)
        if not math.isfinite(value):
            return u, -math.inf, gradient, momentum
        momentum = momentum + 0.5 * step * gradient
    return u, value, gradient, momentum


def reflected(u: Array, momentum: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return a point that flew through the walls of [low, high] folded back; momenta turn at every bounce."""
    crossings, rest = np.divmod((u - low) / (high - low), 1.0)
    is_odd = crossings % 2.0 == 1.0
    inside = np.where(crossings == 0.0, u, low + (high - low) * np.where(is_odd, 1.0 - rest, rest))
    return np.clip(inside, low, high), np.where(is_odd, -momentum, momentum)


def sample_slice(
    likelihood: Likelihood,
    start: Array,  # (p,)
    rng: np.random.Generator,
    *,
    samples: int = 10,
    burn_in: int = 20,
    thin: int = 1,
    width: float = 1.0,
) -> Samples:
    """Sample each free entry of theta in turn by its slice, one sweep per draw, within the model's ranges.

    Args:
        likelihood: of the data under the model; thin the data first if there are many.
        samples: how many to keep, every `thin`-th sweep after `burn_in`.
        width: of the first interval, in logs.
    Raises:
        NumericalError: the posterior is not finite at the start.
    """
    bounds = likelihood.model.bounds(likelihood.d)
    free = np.flatnonzero(likelihood.model.free(likelihood.d))
    theta = np.clip(start, bounds[:, 0], bounds[:, 1])
    evaluations = 0

    def along(u: float) -> float:
        nonlocal evaluations
        evaluations += 1
        moved = theta.copy()
        moved[j] = u
        return likelihood.log_density(moved)

    value, _ = _finite((likelihood.log_density(theta), theta))
    kept = []
    for i in range(burn_in + samples * thin):
        for j in free:
            u, value = slice_draw(along, float(theta[j]), value, bounds[j, 0], bounds[j, 1], width, rng)
            theta = theta.copy()
            theta[j] = u
        if i >= burn_in and (i - burn_in) % thin == thin - 1:
            kept.append(theta)
    return Samples(np.array(kept).reshape(len(kept), len(bounds)), 1.0, width, evaluations)


def slice_draw(
    density: Callable[[float], float],
    u: float,
    value: float,
    low: float,
    high: float,
    width: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the next point of a chain on [low, high] at u, whose log density is `value`, and the log density there."""
    level = value + math.log1p(-rng.random())  # of a uniform height in (0, density]
    left = u - width * rng.random()
    right = left + width
    while left > low and density(left) > level:  # stepping out
        left -= width
    while right < high and density(right) > level:
        right += width
    left, right = max(left, low), min(right, high)
    while right - left > 1e-12:  # shrinking
        candidate = rng.uniform(left, right)
        found = density(candidate)
        if found > level:
            return candidate, found
        if candidate < u:
            left = candidate
        else:
            right = candidate
    return u, value  # a slice narrower than rounding


def _finite(evaluated: tuple[float, Array]) -> tuple[float, Array]:
    if not math.isfinite(evaluated[0]):
        raise NumericalError("the posterior of the hyperparameters is not finite where a chain is to start")
    return evaluated
