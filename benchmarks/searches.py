"""Whole searches with a bare `raybo.Searcher`, and one search a seed in as many processes as there are cores."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import raybo
from raybo.experiments import Entry, Problem
from raybo.experiments.run import bound_objective
from trials.synthetic import PROBLEMS

Array = NDArray[np.float64]
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Search:
    """Return the trials' values, the processor seconds of each ask, and the number of the best trial."""

    results: list[dict[str, float]]
    seconds: list[float]
    best: int

    def metric(self, name: str) -> Array:  # (n,)
        """One of the returned numbers, of every trial."""
        return np.array([result[name] for result in self.results])


def search(
    objective: raybo.Objective,
    method: str,
    seed: int,
    trials: int,
    options: Mapping[str, Any] | None = None,
    context: bool = True,
) -> Search:
    """Ask, evaluate and tell to the end.

    Args:
        options: the method's.
        context: whether the searcher is told the context where the objective declares one.
    """
    declared = objective.context if context else None
    searcher = raybo.Searcher(objective.space, method, objective.mode, seed, trials, declared, **(options or {}))
    results, seconds = [], []
    for _ in range(trials):
        begun = time.process_time()
        trial = searcher.ask()
        seconds.append(time.process_time() - begun)
        result = objective(trial.config)
        results.append(result if isinstance(result, dict) else {objective.metric: result})
        met = None if declared is None else {name: results[-1][name] for name in declared.names}
        searcher.tell(trial, results[-1][objective.metric], met)
    return Search(results, seconds, searcher.best.number)


def simple_regret(problem: str, method: str, trials: int, options: Mapping[str, Any], seed: int) -> float:
    """Return the simple regret of a search on a problem of trials/synthetic.py."""
    known = PROBLEMS[problem]
    found = search(known.objective, method, seed, trials, options)
    return abs(found.results[found.best][known.objective.metric] - known.optimum)


def published(problem: Problem, entry: Entry, seed: int, trials: int | None = None) -> Search:
    """A search as an experiment of trials/papers/ has it, or the beginning of one."""
    settings = {} if problem.seeded is None else {problem.seeded: seed}
    objective = bound_objective(problem, ROOT).with_settings(**settings)
    return search(objective, entry.method, seed, trials or problem.trials, entry.options_for(problem))


def parse_method(text: str) -> tuple[str, dict[str, Any]]:
    """METHOD or METHOD:key=value:key=value."""
    name, *pairs = text.split(":")
    return name, dict(pair.split("=", 1) for pair in pairs)


@contextmanager
def processes() -> Iterator[ProcessPoolExecutor]:
    """As many processes as there are cores, one thread in each; what runs there must be a module's own function."""
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), spawning, initializer=_one_thread) as pool:
        yield pool


def _one_thread() -> None:
    threadpool_limits(1)


def unit_space(d: int) -> raybo.Space:
    """d numbers of [0, 1]."""
    return raybo.Space({f"x{i}": raybo.Float(0, 1) for i in range(d)})


def ripples(X: Array) -> Array:  # (n, d) -> (n,)
    """A smooth function with an inner optimum and some ripple, whose values take no time."""
    return np.asarray(-np.sum((X - 0.4) ** 2, axis=1) + 0.1 * np.sum(np.cos(7.0 * X), axis=1))


def value_of(config: Mapping[str, float]) -> float:
    """The function of ripples at a configuration of the unit space."""
    return float(ripples(np.array([list(config.values())]))[0])


def told_of(method: str, n: int, d: int) -> raybo.Searcher:
    """A searcher over the unit space that knows n uniform points and the ripples there."""
    space = unit_space(d)
    searcher = raybo.Searcher(space, method, "max", seed=0, initial=1)
    for config in space.decode(np.random.default_rng(0).random((n, d))):
        searcher.add(config, value_of(config))
    return searcher


def ask_seconds(searcher: raybo.Searcher, asks: int) -> list[float]:
    """Return the processor seconds of so many asks, each told in turn."""
    seconds = []
    for _ in range(asks):
        begun = time.process_time()
        trial = searcher.ask()
        seconds.append(time.process_time() - begun)
        searcher.tell(trial, value_of(trial.config))
    return seconds
