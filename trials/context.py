"""Test functions whose value depends on a context that nobody chooses, with the optimum of their expectation.

    raybo tune trials/context.py:ackley --method sbo-kde
    raybo tune trials/context.py:hartmann --method drbo-kde --set complicated=true --trials 100

Every trial meets a fresh context c, of which raybo is told afterwards, and returns f(x, c) with it. What counts is the
expectation of f over the contexts; each trial computes it as its metric `expected`, which no method sees. PROBLEMS
holds its maximum. The context belongs to the configuration and the keyword parameter `seed`: evaluated again, a
configuration meets the same one.

Sources: Huang, Song, Xue and Qian (AAAI 2024, arXiv:2312.10423), section 5 and appendix D, with the sign and the
weights of their public code; all contexts are clipped to [0, 1]. Optima by quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import raybo

Array: TypeAlias = NDArray[np.float64]
Config: TypeAlias = dict[str, Any]


def unit(name: str, d: int) -> raybo.Space:
    """d numbers of [0, 1]: x1, x2, ... for the name x."""
    return raybo.Space({f"{name}{i}": raybo.Float(0, 1) for i in range(1, d + 1)})


def point(config: Config) -> Array:  # (d,)
    """x1, ..., xd as an array."""
    return np.array([config[f"x{i}"] for i in range(1, len(config) + 1)], dtype=np.float64)


def nature(config: Config, seed: int) -> np.random.Generator:
    """Return the generator of contexts: another stream for every configuration and seed."""
    text = ";".join(f"{name}={setting!r}" for name, setting in sorted(config.items()))
    return np.random.default_rng([seed, *text.encode()])


def met(c: Array) -> dict[str, float]:  # (dc,)
    """A context under its names."""
    return {f"c{i}": float(value) for i, value in enumerate(c, start=1)}


# ---- laws of a context on [0, 1], and their quadrature


@dataclass(frozen=True)
class Law:
    """A law of one number, clipped to [0, 1]: its cumulative distribution and density before that, and a draw."""

    cdf: Callable[[float], float]
    density: Callable[[Array], Array]
    draw: Callable[[np.random.Generator], float]

    def sample(self, rng: np.random.Generator) -> float:
        """One context."""
        return min(max(self.draw(rng), 0.0), 1.0)

    def nodes(self, panels: int, points: int = 10) -> tuple[Array, Array]:  # (n,), (n,)
        """Nodes and weights of E g(c): Gauss-Legendre panels, and the clipped tails at 0 and 1."""
        u, w = np.polynomial.legendre.leggauss(points)
        left = np.arange(panels)[:, None] / panels
        c = (left + (u + 1.0) / (2.0 * panels)).ravel()
        weights = np.tile(w / (2.0 * panels), panels) * self.density(c)
        return np.r_[0.0, c, 1.0], np.r_[self.cdf(0.0), weights, 1.0 - self.cdf(1.0)]


def normal(mean: float, sd: float) -> Law:
    """The normal law."""
    return Law(
        lambda c: 0.5 * math.erfc((mean - c) / (sd * math.sqrt(2.0))),
        lambda c: np.exp(-0.5 * ((c - mean) / sd) ** 2) / (sd * math.sqrt(2.0 * math.pi)),
        lambda rng: rng.normal(mean, sd),
    )


def cauchy(centre: float, width: float) -> Law:
    """Cauchy's law."""
    return Law(
        lambda c: 0.5 + math.atan((c - centre) / width) / math.pi,
        lambda c: width / (math.pi * ((c - centre) ** 2 + width**2)),
        lambda rng: centre + width * rng.standard_cauchy(),
    )


def mixture(*laws: Law) -> Law:
    """One of the laws, all equally probable."""
    return Law(
        lambda c: math.fsum(law.cdf(c) for law in laws) / len(laws),
        lambda c: np.mean([law.density(c) for law in laws], axis=0),
        lambda rng: laws[rng.integers(len(laws))].draw(rng),
    )


COMPLICATED = mixture(
    normal(0.1, 0.02),
    normal(0.3, 0.075),
    normal(0.4, 0.1),
    normal(0.5, 0.1),
    normal(0.7, 0.075),
    normal(0.8, 0.03),
    cauchy(0.2, 0.02),
    cauchy(0.8, 0.02),
)
WIDE, NARROW = normal(0.5, 0.15), normal(0.5, 0.1)

# ---- the functions


def ackley_value(xc: Array) -> Array:  # (..., d) -> (...)
    """Minus Ackley's function of a point of the joint cube; 0 in the middle."""
    z = 65.536 * xc - 32.768
    ripples = np.exp(np.cos(2 * np.pi * z).mean(axis=-1))
    return np.asarray(20 * np.exp(-0.2 * np.sqrt((z**2).mean(axis=-1))) + ripples - 20 - np.e)


@raybo.objective(space=unit("x", 2), context=unit("c", 1), mode="max")
def ackley(config: Config, *, seed: int = 0) -> dict[str, float]:
    """A needle among ripples, two dimensions and one context."""
    x, c = point(config), np.array([WIDE.sample(nature(config, seed))])
    nodes, weights = WIDE.nodes(80)
    rows = np.column_stack([np.tile(x, (len(nodes), 1)), nodes])
    expected = float(weights @ ackley_value(rows))
    return {"value": float(ackley_value(np.r_[x, c])), "expected": expected, **met(c)}


@lru_cache
def four_squares() -> tuple[Array, Array]:  # (n,), (n,)
    """Nodes and weights for the sum of z^2 over four contexts: the tensor rule, equal sums of it counted together."""
    u, w = np.polynomial.legendre.leggauss(24)
    c = 0.5 + (u + 1.0) / 4.0  # by symmetry the upper half is enough
    weights = np.r_[2.0 * w / 4.0 * WIDE.density(c), 2.0 * (1.0 - WIDE.cdf(1.0))]
    squares = (65.536 * np.r_[c, 1.0] - 32.768) ** 2
    rows = np.array(list(combinations_with_replacement(range(len(squares)), 4)))
    repeats = [math.prod(math.factorial(k) for k in np.unique(row, return_counts=True)[1]) for row in rows]
    return squares[rows].sum(axis=1), weights[rows].prod(axis=1) * 24.0 / np.array(repeats, dtype=np.float64)


@raybo.objective(space=unit("x", 2), context=unit("c", 4), mode="max")
def ackley_2_4(config: Config, *, seed: int = 0) -> dict[str, float]:
    """The same with four contexts."""
    x, rng = point(config), nature(config, seed)
    c = np.array([WIDE.sample(rng) for _ in range(4)])
    z = 65.536 * x - 32.768
    squares, weights = four_squares()
    hill = 20 * weights @ np.exp(-0.2 * np.sqrt(((z**2).sum() + squares) / 6))
    nodes, one = WIDE.nodes(80)
    ripple = (one @ np.exp(np.cos(2 * np.pi * (65.536 * nodes - 32.768)) / 6)) ** 4
    expected = float(hill + math.exp(np.cos(2 * np.pi * z).sum() / 6) * ripple - 20 - math.e)
    return {"value": float(ackley_value(np.r_[x, c])), "expected": expected, **met(c)}


def branin_root(u: Any, v: Any) -> Any:
    """The root of Branin's function on the unit square."""
    u, v = 15 * u - 5, 15 * v
    return np.sqrt(
        (v - 5.1 * u**2 / (4 * np.pi**2) + 5 * u / np.pi - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10
    )


@raybo.objective(space=unit("x", 2), context=unit("c", 2), mode="max")
def branin(config: Config, *, seed: int = 0) -> dict[str, float]:
    """Minus the mean of two Branin functions, geometric, each of one number and one context."""
    (x1, x2), rng = point(config), nature(config, seed)
    c = np.array([NARROW.sample(rng), NARROW.sample(rng)])
    nodes, weights = NARROW.nodes(40)
    expected = -(weights @ branin_root(x1, nodes)) * (weights @ branin_root(nodes, x2))  # the contexts are independent
    return {
        "value": float(-branin_root(x1, c[0]) * branin_root(c[1], x2)),
        "expected": float(expected),
        **met(c),
    }


ALPHA = np.array([1, 1.2, 3, 3.2])
A6 = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
P6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


@lru_cache
def mean_of_peaks(complicated: bool) -> Array:  # (4,)
    """The expectation of the context's factor in each of Hartmann's four peaks."""
    nodes, weights = (COMPLICATED if complicated else NARROW).nodes(200)
    return np.asarray(np.exp(-A6[:, 5:] * (nodes - P6[:, 5:]) ** 2) @ weights)


@raybo.objective(space=unit("x", 5), context=unit("c", 1), mode="max")
def hartmann(config: Config, *, complicated: bool = False, seed: int = 0) -> dict[str, float]:
    """Hartmann's function in six dimensions, the last of which is the context, of one law or of eight mixed."""
    x = point(config)
    c = (COMPLICATED if complicated else NARROW).sample(nature(config, seed))
    peaks = ALPHA * np.exp(-(A6[:, :5] * (x - P6[:, :5]) ** 2).sum(axis=1))
    here = np.exp(-A6[:, 5] * (c - P6[:, 5]) ** 2)
    return {"value": float(peaks @ here), "expected": float(peaks @ mean_of_peaks(complicated)), **met(np.array([c]))}


# ---- what is known of them


@dataclass(frozen=True)
class Problem:
    """An objective under its settings, the maximum of its expectation and where it is taken."""

    objective: raybo.Objective
    optimum: float
    optimiser: tuple[float, ...]


PROBLEMS = {
    "ackley": Problem(ackley, -10.952271242, (0.5, 0.5)),
    "ackley_2_4": Problem(ackley_2_4, -16.19957, (0.5, 0.5)),
    "branin": Problem(branin, -9.603909838, (0.195551560, 0.178838705)),
    "hartmann": Problem(hartmann, 2.613564836, (0.197037, 0.149663, 0.483913, 0.272572, 0.313506)),
    "complicated_hartmann": Problem(
        hartmann.with_settings(complicated=True), 1.945150252, (0.200106, 0.154716, 0.486763, 0.274205, 0.312244)
    ),
}
