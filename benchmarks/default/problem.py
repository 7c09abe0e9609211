"""A problem of the laboratory, and what a method meets of it.

Lower is better, everywhere in the laboratory. What a trial is told may be noisy or fail; what it is judged by is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

import raybo
from raybo.space import Config

Group = Literal["synthetic", "jobs"]


@dataclass(frozen=True, eq=False)
class Task:
    """A problem that is ready to run.

    Attributes:
        space: what is searched.
        value: of a configuration, without noise; lower is better. NaN where its trial fails.
        optimum: the least value; None if nobody knows it.
        noise: standard deviation of what is added to the value that a method is told.
        elsewhere: what a configuration is worth on other splits and seeds than the search sees; None if there are none.
    """

    space: raybo.Space
    value: Callable[[Config], float]
    optimum: float | None = None
    noise: float = 0.0
    elsewhere: Callable[[Config], float] | None = None

    def told(self, value: float, rng: np.random.Generator) -> float:
        """Return the value that a method is told."""
        return value + self.noise * float(rng.standard_normal()) if self.noise else value


@dataclass(frozen=True)
class Problem:
    """A task by its name, with a budget.

    Attributes:
        name: unique.
        group: functions that are written down, or jobs that train something (or a table or model of such jobs).
        trials: the budget.
        make: the task; ImportError if a package is missing.
        is_seeded: whether `make` takes a run's seed, and every seed is another instance, of an equal optimum.
    """

    name: str
    group: Group
    trials: int
    make: Callable[..., Task]
    is_seeded: bool = False

    def task(self, seed: int) -> Task:
        """The task of the runs with a seed."""
        return self.make(seed) if self.is_seeded else self.make()
