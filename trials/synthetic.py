"""Test functions with known optima, to see how a method searches where the truth is known.

    raybo tune trials/synthetic.py:branin
    raybo tune trials/synthetic.py:ackley --set d=10 --set noise=0.1

Parameters are x1, ..., xd; where a function takes `d`, it is how many. Each is minimised or maximised as its literature
has it, and PROBLEMS holds its best value and where it is taken, both for the default settings. `noise` is the standard
deviation of a Gaussian error that belongs to the configuration: evaluated again, it has the same error again.

Sources: Surjanovic and Bingham, "Virtual Library of Simulation Experiments", sfu.ca/~ssurjano, for what has no other;
Kim, Liu and Chen (UAI 2025) for hartmann4; Ha et al., arXiv:2306.06844, for deceptive and h1; Wang and de Freitas,
arXiv:1406.7758, for trap; Jamil and Yang, arXiv:1308.4008, for alpine1; mixed is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, exp, log10, pi, sin, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import raybo

Array: TypeAlias = NDArray[np.float64]
Config: TypeAlias = dict[str, Any]


def box(*ranges: tuple[float, float]) -> raybo.Space:
    """x1, x2, ... in the given ranges."""
    return raybo.Space({f"x{i}": raybo.Float(low, high) for i, (low, high) in enumerate(ranges, start=1)})


def point(config: Config) -> Array:  # (d,)
    """x1, ..., xd as an array."""
    return np.array([config[f"x{i}"] for i in range(1, len(config) + 1)], dtype=np.float64)


def noisy(value: float, config: Config, noise: float) -> float:
    """The value with the error that belongs to this configuration."""
    if not noise:
        return float(value)
    text = ";".join(f"{name}={setting}" for name, setting in sorted(config.items()))
    return float(value + noise * np.random.default_rng(list(text.encode())).standard_normal())


# ---- two dimensions and fewer


@raybo.objective(space=box((-5, 10), (0, 15)), mode="min")
def branin(config: Config, *, noise: float = 0.0) -> float:
    """Three equal minima in a smooth valley; values to 308."""
    x1, x2 = point(config)
    value = (x2 - 5.1 / (4 * pi**2) * x1**2 + 5 / pi * x1 - 6) ** 2 + 10 * (1 - 1 / (8 * pi)) * cos(x1) + 10
    return noisy(value, config, noise)


@raybo.objective(space=box((-2, 2), (-2, 2)), mode="min")
def goldstein_price(config: Config, *, noise: float = 0.0) -> float:
    """A flat valley under walls of up to 1e6, with three minima besides the best."""
    x, y = point(config)
    a = 1 + (x + y + 1) ** 2 * (19 - 14 * x + 3 * x**2 - 14 * y + 6 * x * y + 3 * y**2)
    b = 30 + (2 * x - 3 * y) ** 2 * (18 - 32 * x + 12 * x**2 + 48 * y - 36 * x * y + 27 * y**2)
    return noisy(a * b, config, noise)


@raybo.objective(space=box((0, 1), (0, 1)), mode="max")
def deceptive(config: Config, *, noise: float = 0.0) -> float:
    """A needle at (1/3, 2/3), while the slopes lead to the corners, 0.64.

    The pieces are those of SciPy's benchmarks; as the paper prints them, two lack a term and the function is torn.
    """
    x, peak = point(config), np.array([1, 2]) / 3
    pieces = [0.8 - x / peak, 5 * x / peak - 4, 5 * (x - peak) / (peak - 1) + 1, (x - 1) / (1 - peak) + 0.8]
    g = np.select([x < 0.8 * peak, x < peak, x < (1 + 4 * peak) / 5], pieces[:3], pieces[3])
    return noisy(g.mean() ** 2, config, noise)


def h1_space(half_width: float) -> raybo.Space:
    """The square around the origin."""
    return box((-half_width, half_width), (-half_width, half_width))


@raybo.objective(space=h1_space, mode="max")
def h1(config: Config, *, half_width: float = 100.0, inside: bool = False, noise: float = 0.0) -> float:
    """A peak of 2 in a plain of ripples (van Soest and Casius 2003).

    `inside` puts the 1 under the root, as the paper prints it; `half_width` is the square's, 25 in the easier version.
    """
    x1, x2 = point(config)
    squares = (x1 - 8.6998) ** 2 + (x2 - 6.7665) ** 2
    distance = sqrt(squares + 1) if inside else sqrt(squares) + 1
    return noisy((sin(x1 - x2 / 8) ** 2 + sin(x2 + x1 / 8) ** 2) / distance, config, noise)


@raybo.objective(space=box((0, 1)), mode="max")
def trap(config: Config, *, noise: float = 0.0) -> dict[str, float]:
    """A broad hill of 2 at 0.1, and the peak of 4 at 0.9, a tenth as wide; the paper's noise is 0.01.

    It returns the value without its error too, as `noiseless`.
    """
    (x,) = point(config)
    value = 2 * exp(-((x - 0.1) ** 2) / (2 * 0.1**2)) + 4 * exp(-((x - 0.9) ** 2) / (2 * 0.01**2))
    return {"value": noisy(value, config, noise), "noiseless": value}


# ---- three to six dimensions

A3 = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
P3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
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


def hartmann(x: Array, A: Array, P: Array) -> float:  # (d,), (4, d), (4, d)
    """Four Gaussian dips of different depths and shapes."""
    return float(-np.array([1, 1.2, 3, 3.2]) @ np.exp(-(A * (x - P) ** 2).sum(axis=1)))


@raybo.objective(space=box(*[(0, 1)] * 3), mode="min")
def hartmann3(config: Config, *, noise: float = 0.0) -> float:
    """Hartmann's function in three dimensions."""
    return noisy(hartmann(point(config), A3, P3), config, noise)


@raybo.objective(space=box(*[(0, 1)] * 4), mode="min")
def hartmann4(config: Config, *, noise: float = 0.0) -> float:
    """The first four columns of Hartmann-6, without the scale that other versions have."""
    return noisy(hartmann(point(config), A6[:, :4], P6[:, :4]), config, noise)


@raybo.objective(space=box(*[(0, 1)] * 6), mode="min")
def hartmann6(config: Config, *, noise: float = 0.0) -> float:
    """Hartmann's function in six dimensions."""
    return noisy(hartmann(point(config), A6, P6), config, noise)


@raybo.objective(space=box(*[(-5.12, 5.12)] * 3), mode="min")
def rastrigin3(config: Config, *, noise: float = 0.0) -> float:
    """A bowl with 1,331 dips; the best is the middle of the box, which centred designs find for free."""
    x = point(config)
    return noisy(10 * x.size + (x**2 - 10 * np.cos(2 * pi * x)).sum(), config, noise)


@raybo.objective(space=box(*[(-10, 10)] * 5), mode="min")
def levy5(config: Config, *, noise: float = 0.0) -> float:
    """Ridges across a bowl."""
    w = 1 + (point(config) - 1) / 4
    head, tail = w[:-1], w[-1]
    ridges = ((head - 1) ** 2 * (1 + 10 * np.sin(pi * head + 1) ** 2)).sum()
    value = sin(pi * w[0]) ** 2 + ridges + (tail - 1) ** 2 * (1 + sin(2 * pi * tail) ** 2)
    return noisy(value, config, noise)


# ---- any number of dimensions


def cube(low: float, high: float) -> Any:
    """A space of d equal ranges, for the d that the objective is set to."""
    return lambda d: box(*[(low, high)] * d)


@raybo.objective(space=cube(-32.768, 32.768), mode="min")
def ackley(config: Config, *, d: int = 5, noise: float = 0.0) -> float:
    """A funnel in a rippled plain."""
    x = point(config)
    value = 20 - 20 * exp(-0.2 * sqrt((x**2).mean())) + exp(1) - exp(np.cos(2 * pi * x).mean())
    return noisy(value, config, noise)


@raybo.objective(space=cube(-5, 10), mode="min")
def rosenbrock(config: Config, *, d: int = 4, noise: float = 0.0) -> float:
    """A curved valley, easy to find and slow to follow."""
    x = point(config)
    return noisy((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(), config, noise)


@raybo.objective(space=cube(-5, 10), mode="min")
def zakharov(config: Config, *, d: int = 4, noise: float = 0.0) -> float:
    """A plate with steep walls."""
    x = point(config)
    slope = 0.5 * np.arange(1, x.size + 1) @ x
    return noisy((x**2).sum() + slope**2 + slope**4, config, noise)


@raybo.objective(space=cube(-10, 10), mode="min")
def dixon_price(config: Config, *, d: int = 5, noise: float = 0.0) -> float:
    """A chain in which each coordinate must fit the one before."""
    x = point(config)
    links = np.arange(2, x.size + 1) * (2 * x[1:] ** 2 - x[:-1]) ** 2
    return noisy((x[0] - 1) ** 2 + links.sum(), config, noise)


@raybo.objective(space=cube(-500, 500), mode="min")
def schwefel(config: Config, *, d: int = 3, noise: float = 0.0) -> float:
    """Waves that grow outwards; the best lies near a corner, far from the next best."""
    x = point(config)
    return noisy((418.98288727243374 - x * np.sin(np.sqrt(np.abs(x)))).sum(), config, noise)


@raybo.objective(space=cube(-10, 10), mode="min")
def alpine1(config: Config, *, d: int = 4, noise: float = 0.0) -> float:
    """Creased waves with 9 zeros along each coordinate, all of them best."""
    x = point(config)
    return noisy(np.abs(x * np.sin(x) + 0.1 * x).sum(), config, noise)


# ---- a logarithm, an integer and a choice

HILLS = {  # height, and where: log10(rate), depth; width in decades
    "linear": (0.80, -1.0, 2, 4.0),
    "kernel": (0.90, -2.0, 4, 2.0),
    "forest": (0.93, -3.0, 7, 1.0),
}


@raybo.objective(
    space=raybo.Space(
        {
            "model": raybo.Categorical(list(HILLS)),
            "rate": raybo.Float(1e-5, 1.0, log=True),
            "depth": raybo.Integer(1, 12),
        }
    ),
    metric="accuracy",
    mode="max",
)
def mixed(config: Config, *, noise: float = 0.0) -> dict[str, float]:
    """Three models, each with a hill of its own; the highest is the narrowest."""
    height, log_rate, depth, width = HILLS[config["model"]]
    squares = (log10(config["rate"]) - log_rate) ** 2 + ((config["depth"] - depth) / 3) ** 2
    return {"accuracy": noisy(height * exp(-squares / width**2), config, noise)}


# ---- what is known of them


@dataclass(frozen=True)
class Problem:
    """A test function, its best value, and the configurations that have it, under the default settings."""

    objective: raybo.Objective
    optimum: float
    optimisers: Sequence[Config]  # all of them; of alpine1's 6,561 one

    @property
    def mode(self) -> str:
        """ "max" or "min"."""
        return self.objective.mode


def at(*x: float) -> Config:
    """The configuration of a point."""
    return {f"x{i}": value for i, value in enumerate(x, start=1)}


DIXON_PRICE = [2.0 ** (2.0 ** (1 - i) - 1) for i in range(1, 6)]  # the last coordinate's sign is free

PROBLEMS = {
    problem.objective.name: problem
    for problem in (
        Problem(branin, 5 / (4 * pi), [at(-pi, 12.275), at(pi, 2.275), at(3 * pi, 2.475)]),
        Problem(goldstein_price, 3.0, [at(0, -1)]),
        Problem(deceptive, 1.0, [at(1 / 3, 2 / 3)]),
        Problem(h1, 2.0, [at(8.6998, 6.7665)]),
        Problem(trap, 4.0, [at(0.9)]),
        Problem(hartmann3, -3.862779787332663, [at(0.11458889, 0.5556489, 0.85254699)]),
        Problem(hartmann4, -3.729840584485593, [at(0.18739527, 0.19415153, 0.55791778, 0.26477962)]),
        Problem(
            hartmann6,
            -3.322368011415515,
            [at(0.20168951, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730054)],
        ),
        Problem(rastrigin3, 0.0, [at(0, 0, 0)]),
        Problem(levy5, 0.0, [at(1, 1, 1, 1, 1)]),
        Problem(ackley, 0.0, [at(0, 0, 0, 0, 0)]),
        Problem(rosenbrock, 0.0, [at(1, 1, 1, 1)]),
        Problem(zakharov, 0.0, [at(0, 0, 0, 0)]),
        Problem(dixon_price, 0.0, [at(*DIXON_PRICE), at(*DIXON_PRICE[:-1], -DIXON_PRICE[-1])]),
        Problem(schwefel, 0.0, [at(*[420.9687463599821] * 3)]),
        Problem(alpine1, 0.0, [at(0, 0, 0, 0)]),
        Problem(mixed, 0.93, [{"model": "forest", "rate": 1e-3, "depth": 7}]),
    )
}
