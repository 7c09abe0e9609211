"""Problems for `benchmarks.budget` and `benchmarks.stops`: something to maximise, whose evaluations take their time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import raybo
from benchmarks import lcbench
from raybo.space import Config, Space

BUDGET = 20.0  # of the mean cost of a uniform point
PARTS = {
    "development": (lcbench.INSTANCES[:5], range(5)),
    "validation": (lcbench.OTHERS[:10], range(100, 110)),
    "left": (lcbench.LEFT, range(300, 310)),  # for what cost is worth on tasks that nothing was tried on
    "all": ((*lcbench.INSTANCES, *lcbench.OTHERS, *lcbench.LEFT), range(600, 630)),  # for when to stop, with new seeds
    "further": ((*lcbench.INSTANCES, *lcbench.OTHERS, *lcbench.LEFT), range(700, 730)),  # the same
}


@dataclass(frozen=True)
class Problem:
    """Something to maximise, whose evaluations take their time.

    Attributes:
        kind, name: which.
        space: where.
        of: value and seconds of a configuration.
        best, chance: the best value known, and what random search comes to after 40 trials, in the mean.
        mean_seconds: of a uniform point.
        cheap: the cheapest values of the parameters that cost.
    """

    kind: str
    name: str
    space: Space
    of: Callable[[Config], tuple[float, float]]
    best: float
    chance: float
    mean_seconds: float
    cheap: Config

    @property
    def budget(self) -> float:
        """The seconds of a search."""
        return BUDGET * self.mean_seconds


def problems_of(kind: str, part: str) -> Iterator[Problem]:
    """Yield the problems of a kind, for development or for validation."""
    tasks, numbers = PARTS[part]
    if kind == "boosting":
        yield from map(boosting, numbers)
    else:
        yield from (network(task, is_equal=kind == "equal") for task in tasks)


@lru_cache(maxsize=64)
def network(task: str, *, is_equal: bool) -> Problem:
    """Return a task of LCBench."""

    def of(config: Config) -> tuple[float, float]:
        accuracy, seconds = lcbench.finals_and_seconds(task, [config])
        return float(accuracy[0]), 1.0 if is_equal else float(seconds[0])

    best, chance = lcbench.REFERENCES[task]
    cheap = {"batch_size": 512, "num_layers": 1, "max_units": 64}
    kind = "equal" if is_equal else "lcbench"
    return Problem(kind, task, lcbench.space, of, best, chance, _mean_seconds(lcbench.space, of), cheap)


BOOSTING = raybo.Space(
    {
        "rounds": raybo.Integer(10, 1_000, log=True),
        "depth": raybo.Integer(1, 12),
        "rate": raybo.Float(0.01, 0.5, log=True),
        "subsample": raybo.Float(0.3, 1.0),
    }
)


@lru_cache(maxsize=64)
def boosting(number: int) -> Problem:
    """Return a problem whose cost grows with rounds and depth, and which is best at some of both."""
    rng = np.random.default_rng(number)
    total, depth, subsample = rng.uniform(0.6, 1.6), rng.uniform(2, 9), rng.uniform(0.5, 1.0)
    slow = rng.uniform(0.02, 0.1)

    def of(config: Config) -> tuple[float, float]:
        learnt = np.log10(config["rounds"] * config["rate"])
        loss = 0.12 * np.tanh(np.square(learnt - total)) + 0.08 * np.tanh(np.square(config["depth"] - depth) / 20)
        loss += 0.05 * np.square(config["subsample"] - subsample) + slow * config["rate"]
        seconds = 0.01 * config["rounds"] * config["depth"] * (0.3 + config["subsample"])
        return -float(loss), float(seconds)

    points = BOOSTING.decode(BOOSTING.snap(np.random.default_rng(0).random((20_000, BOOSTING.d))))
    values = np.array([of(config)[0] for config in points])
    chance = float(np.mean(values.reshape(500, 40).max(axis=1)))
    best = _climbed(of, points[int(np.argmax(values))], float(values.max()))
    cheap = {"rounds": 10, "depth": 1}
    return Problem("boosting", str(number), BOOSTING, of, best, chance, _mean_seconds(BOOSTING, of), cheap)


def _climbed(of: Callable[[Config], tuple[float, float]], config: Config, value: float) -> float:
    """Return the best value near a configuration, by steps that shrink."""
    rng = np.random.default_rng(1)
    x = BOOSTING.points([BOOSTING.pack(config)])[0]
    for sd in np.geomspace(0.1, 0.003, 12):
        X = BOOSTING.snap(np.clip(x + sd * rng.standard_normal((300, BOOSTING.d)), 0.0, 1.0))
        values = [of(each)[0] for each in BOOSTING.decode(X)]
        if max(values) > value:
            value, x = max(values), X[int(np.argmax(values))]
    return value


def _mean_seconds(space: Space, of: Callable[[Config], tuple[float, float]]) -> float:
    points = space.decode(space.snap(np.random.default_rng(7).random((300, space.d))))
    return float(np.mean([of(config)[1] for config in points]))
