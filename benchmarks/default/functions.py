"""Functions that are written down: classics moved aside, draws of Gaussian processes, and shapes that jobs have.

Every optimum is known. The classics are shifted within their box, so that no method finds an optimum by symmetry: what
is searched is the box of the same size around another centre.

Classics: Surjanovic and Bingham, "Virtual Library of Simulation Experiments", sfu.ca/~ssurjano.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

import raybo
from benchmarks.conditional import BEST, Score
from benchmarks.default.problem import Task
from benchmarks.searches import Array, unit_space
from raybo.space import Config
from trials.synthetic import PROBLEMS

SHIFT = 0.12  # of a side, at most


def shifted(name: str, seed: int, noise: float = 0.0, **settings: int) -> Task:
    """A function of trials/synthetic.py in a box moved at random by up to SHIFT of each side, less its optimum."""
    known = PROBLEMS[name]
    objective = known.objective.with_settings(**settings) if settings else known.objective
    low, high = (np.array([getattr(p, end) for p in objective.space.parameters.values()]) for end in ("low", "high"))
    move = np.random.default_rng(seed).uniform(-SHIFT, SHIFT, len(low)) * (high - low)
    sign = 1.0 if known.mode == "min" else -1.0

    def value(config: Config) -> float:
        found = objective({f"x{i}": v for i, v in enumerate(point_of(config) * (high - low) + low + move, start=1)})
        return sign * float(found[objective.metric] if isinstance(found, dict) else found)

    return Task(unit_space(len(low)), value, sign * known.optimum, noise)


def point_of(config: Config) -> Array:  # (d,)
    """The point of the unit cube that a configuration of `unit_space` is."""
    return np.array(list(config.values()), dtype=np.float64)


def written(function: Callable[[Array], float], d: int, low: float, high: float, at: Array, seed: int) -> Task:
    """A function of [low, high]^d with its minimum at the given point, moved as `shifted` moves it."""
    move = np.random.default_rng(seed).uniform(-SHIFT, SHIFT, d) * (high - low)
    space = unit_space(d)
    return Task(space, lambda config: function(low + (high - low) * point_of(config) + move), function(at))


def styblinski_tang(d: int, seed: int) -> Task:
    """Separable: two wells an axis, 2^d in all."""
    return written(lambda x: float(np.sum(x**4 - 16 * x**2 + 5 * x)) / 2, d, -5, 5, np.full(d, -2.9035340), seed)


def levy(d: int, seed: int) -> Task:
    """A bowl with waves, steep along the first axis; one of its hollows is the least."""

    def value(x: Array) -> float:
        w = 1.0 + (x - 1.0) / 4.0
        inner = (w[:-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(np.pi * w[:-1] + 1.0) ** 2)
        end = (w[-1] - 1.0) ** 2 * (1.0 + np.sin(2.0 * np.pi * w[-1]) ** 2)
        return float(np.sin(np.pi * w[0]) ** 2 + inner.sum() + end)

    return written(value, d, -10, 10, np.ones(d), seed)


def cosine_mixture(d: int, seed: int) -> Task:
    """Separable: a bowl with bumps, 0.1 sum cos(5 pi x) in it."""
    return written(lambda x: float(x @ x - 0.1 * np.cos(5 * np.pi * x).sum()), d, -1, 1, np.zeros(d), seed)


def griewank(d: int, seed: int) -> Task:
    """A bowl with fine waves that hang together."""
    waves = np.sqrt(np.arange(1, d + 1))
    return written(lambda x: float(x @ x / 4000 - np.prod(np.cos(x / waves))), d, -10, 10, np.zeros(d), seed)


def michalewicz(d: int) -> Task:
    """Separable: narrow valleys in flat land, one well per valley; at its own place, as its box is."""
    # the minimum of each summand, found on a grid fine enough for eight digits, as the sum is separable
    grid = np.linspace(0.0, np.pi, 2_000_001)
    orders = np.arange(1, d + 1)
    least = sum(float(np.min(-np.sin(grid) * np.sin(i * grid**2 / np.pi) ** 20)) for i in orders)

    def value(config: Config) -> float:
        x = np.pi * point_of(config)
        return -float(np.sum(np.sin(x) * np.sin(orders * x**2 / np.pi) ** 20))

    return Task(unit_space(d), value, least)


def shekel(seed: int, wells: int = 7, d: int = 4) -> Task:
    """Narrow wells in flat land, drawn by the seed: their places, and how deep they are."""
    rng = np.random.default_rng(seed)
    places, widths = rng.uniform(0.1, 0.9, (wells, d)), np.sort(rng.uniform(0.1, 0.6, wells))

    def at(x: Array) -> float:
        return -float(np.sum(1.0 / (100.0 * np.sum((x - places) ** 2, axis=1) + widths)))

    # the least value lies within a hair of one of the centres
    near = np.concatenate([place + 0.01 * rng.standard_normal((4000, d)) for place in places])
    return Task(unit_space(d), lambda config: at(point_of(config)), min(at(x) for x in (*places, *near)))


def draw(d: int, lengthscale: float, seed: int, noise: float = 0.0, additive: bool = False) -> Task:
    """A draw of a Gaussian process by 400 random waves (Rahimi and Recht 2007), with its minimum found by search.

    Args:
        lengthscale: in sides of the cube.
        noise: standard deviation, in those of the function.
        additive: whether it is a sum of functions of one axis each.
    """
    rng = np.random.default_rng(seed)
    waves = 400
    # Matern-5/2: normal frequencies over the root of a chi-square of 5 degrees of freedom over 5
    size = np.sqrt(5.0 / rng.chisquare(5, waves))[:, None] / lengthscale
    frequencies = rng.standard_normal((waves, d)) * size
    if additive:
        frequencies *= np.eye(d)[rng.integers(d, size=waves)]
    phases = rng.uniform(0, 2 * np.pi, waves)
    scale = math.sqrt(2.0 / waves)

    def values(X: Array) -> Array:  # (m, d) -> (m,)
        return np.asarray(scale * np.cos(X @ frequencies.T + phases).sum(axis=1))

    return Task(unit_space(d), lambda config: float(values(point_of(config)[None])[0]), lowest(values, d, rng), noise)


def lowest(values: Callable[[Array], Array], d: int, rng: np.random.Generator, points: int = 10_000) -> float:
    """The least value in the unit cube by a random search that narrows around its 20 best points."""
    X = np.concatenate([rng.random((1000, d)) for _ in range(points // 1000)])
    y = np.concatenate([values(X[i : i + 1000]) for i in range(0, len(X), 1000)])
    order = np.argsort(y)[:20]
    best, lows = X[order], y[order]
    width = 0.1
    while width > 1e-6:
        for _ in range(6):
            near = np.clip(best[:, None] + width * rng.standard_normal((20, 20, d)), 0.0, 1.0)
            y = values(near.reshape(-1, d)).reshape(20, 20)
            k = y.argmin(axis=1)
            better = y[np.arange(20), k] < lows
            best[better], lows[better] = near[np.arange(20), k][better], y[np.arange(20), k][better]
        width *= 0.6
    return float(lows.min())


def undeclared_logs(d: int, seed: int) -> Task:
    """A valley in the logarithms of rates that are declared as plain numbers from 1e-6 to 1."""
    at = np.random.default_rng(seed).uniform(-4.5, -1.5, d)
    space = raybo.Space({f"rate{i}": raybo.Float(1e-6, 1.0) for i in range(d)})

    def value(config: Config) -> float:
        away = np.log10(point_of(config)) - at
        return float(1.0 - np.exp(-0.15 * away @ away))

    return Task(space, value, 0.0)


def walled(d: int, seed: int) -> Task:
    """A bowl whose sides are walls: beyond a plane a penalty of a thousand times its height, and more further off."""
    rng = np.random.default_rng(seed)
    at, normal = rng.uniform(0.25, 0.75, d), rng.standard_normal(d)
    normal /= np.linalg.norm(normal)

    def value(config: Config) -> float:
        away = point_of(config) - at
        beyond = float(away @ normal) - 0.05
        bowl = float(away @ away) + 0.1 * float(np.sin(8 * away).sum() ** 2)
        return bowl if beyond < 0.0 else bowl + 1000.0 + 1e4 * beyond

    return Task(unit_space(d), value, 0.0)


def failing(d: int, seed: int) -> Task:
    """A rippled bowl whose best third of the cube fails beyond a curved border that runs past the optimum."""
    rng = np.random.default_rng(seed)
    at, centre = rng.uniform(0.3, 0.7, d), rng.uniform(0.0, 1.0, d)
    radius = float(np.linalg.norm(at - centre)) - 0.04

    def value(config: Config) -> float:
        x = point_of(config)
        if float(np.linalg.norm(x - centre)) < radius:
            return math.nan
        away = x - at
        return float(away @ away + 0.03 * np.sum(1 - np.cos(12 * away)))

    return Task(unit_space(d), value, 0.0)


def kinds(d: int, seed: int, noise: float = 0.0) -> Task:
    """Integers, a category that moves the optimum, one that adds, and numbers: as a job's space is mixed."""
    rng = np.random.default_rng(seed)
    numbers = d - 4
    at = rng.uniform(0.2, 0.8, (4, numbers))  # one place for each choice of `solver`
    cost, extra = rng.permutation([0.0, 0.15, 0.3, 0.6]), rng.permutation([0.0, 0.1, 0.4])
    depth, width = int(rng.integers(3, 9)), rng.uniform(math.log(16), math.log(256))
    space = raybo.Space(
        {
            **{f"x{i}": raybo.Float(0, 1) for i in range(numbers)},
            "solver": raybo.Categorical(["a", "b", "c", "d"]),
            "loss": raybo.Categorical(["p", "q", "r"]),
            "depth": raybo.Integer(1, 12),
            "units": raybo.Integer(8, 512, log=True),
        }
    )
    # the best width is an integer
    widths = np.arange(8, 513)
    least = 0.1 * float(np.min(np.abs(np.log(widths) - width)))

    def value(config: Config) -> float:
        solver, loss = "abcd".index(config["solver"]), "pqr".index(config["loss"])
        x = np.array([config[f"x{i}"] for i in range(numbers)])
        found = float(cost[solver] + extra[loss]) + 3.0 * float(np.sum((x - at[solver]) ** 2))
        return found + 0.02 * float(config["depth"] - depth) ** 2 + 0.1 * abs(math.log(config["units"]) - width)

    return Task(space, value, least, noise)


def plateaus(d: int, seed: int) -> Task:
    """An accuracy that knows 40 values only, and is at its worst in half of the cube."""
    rng = np.random.default_rng(seed)
    at, widths = rng.uniform(0.2, 0.8, d), rng.uniform(0.2, 0.6, d)

    def value(config: Config) -> float:
        away = (point_of(config) - at) / widths
        return round(40.0 * max(0.0, min(1.0, 0.5 * float(np.linalg.norm(away)) / math.sqrt(d)))) / 40.0

    return Task(unit_space(d), value, 0.0)


def branches(shape: str, seed: int) -> Task:
    """A score on a conditional space, see benchmarks.conditional."""
    score = Score(shape, seed)
    return Task(score.space, lambda config: -score(config), -BEST)


def tabled(space: raybo.Space, table: Array) -> Task:
    """A table with an axis per parameter of the space, whose values count along it."""
    return Task(space, lambda config: float(table[tuple(map(int, config.values()))]), float(table.min()))


def architectures(places: int, operations: int, seed: int) -> Task:
    """Choices alone, as a network's operations: each is worth something, pairs of them too, and most are bad.

    The first operation is that there is none: where it takes half of the places, nothing is learnt.
    """
    rng = np.random.default_rng(seed)
    chosen = np.indices((operations,) * places)
    worth = sum(rng.standard_normal(operations)[chosen[j]] for j in range(places))
    for i, j in itertools.combinations(range(places), 2):
        worth = worth + 0.5 * rng.standard_normal((operations, operations))[chosen[i], chosen[j]]
    error = np.exp((worth - worth.mean()) / worth.std())
    error[2 * (chosen == 0).sum(axis=0) >= places] = error.max()
    names = {f"place{j}": raybo.Categorical(list(range(operations))) for j in range(places)}
    return tabled(raybo.Space(names), error)


def cut(nodes: int, seed: int) -> Task:
    """Switches alone: which nodes of a graph, half of whose edges have a weight, to part from the first one.

    After Oh et al. (2019), "Combinatorial Bayesian Optimization using the Graph Cartesian Product", section 4.3.
    """
    rng = np.random.default_rng(seed)
    sides = [np.zeros((2,) * (nodes - 1), dtype=int), *np.indices((2,) * (nodes - 1))]
    weights = rng.random((nodes, nodes)) * (rng.random((nodes, nodes)) < 0.5)
    parted = sum(weights[i, j] * (sides[i] != sides[j]) for i, j in itertools.combinations(range(nodes), 2))
    return tabled(raybo.Space({f"node{i}": raybo.Categorical([False, True]) for i in range(1, nodes)}), -parted)


def lattice(counts: Sequence[int], lengthscale: float, seed: int) -> Task:
    """Integers alone, so many along each axis: a draw of a Gaussian process at the points of a grid."""
    drawn = draw(len(counts), lengthscale, seed).value
    grid = itertools.product(*(np.linspace(0.0, 1.0, count) for count in counts))
    table = np.array([drawn({f"x{j}": at for j, at in enumerate(point)}) for point in grid]).reshape(counts)
    return tabled(raybo.Space({f"x{j}": raybo.Integer(0, count - 1) for j, count in enumerate(counts)}), table)
