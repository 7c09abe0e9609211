"""What unknown hyperparameters cost: final regret and time of a suggestion, `uhe` and its rivals beside `map`.

python -m benchmarks.unknown [--seeds 10] [--after 60] [--methods map uhe] [--time map uhe mcmc]
                             [--problems h1 deceptive hartmann3 branin]

Every run is 3 d uniform points, the same for all methods under one seed, and then --after evaluations without noise, on
one thread. Regret is the mean over seeds with its standard error, and beside it how many seeds beat map's and the
paired difference to map in standard errors. Times are of the suggestions after the design, in one run a method and
problem of --time, each trial of all methods in turn, so that the machine's moods fall on all alike.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

import raybo
from raybo.threads import limit_threads
from trials.synthetic import PROBLEMS


def searcher_of(
    problem: str, method: str, seed: int, after: int, options: dict[str, Any]
) -> tuple[raybo.Searcher, int]:
    """A searcher, and its design's size."""
    objective = PROBLEMS[problem].objective
    design = 3 * len(objective.space.names)
    planned = design + after
    options = {"initial": design, **options}
    return raybo.Searcher(objective.space, method, objective.mode, seed, trials=planned, **options), design


def one_step(problem: str, searcher: raybo.Searcher) -> float:
    """Ask, evaluate, tell; the seconds of the asking."""
    begun = time.perf_counter()
    trial = searcher.ask()
    seconds = time.perf_counter() - begun
    searcher.tell(trial, PROBLEMS[problem].objective(trial.config))
    return seconds


def final_regret(problem: str, method: str, seed: int, after: int, options: dict[str, Any]) -> float:
    """Simple regret at the end of a run."""
    searcher, design = searcher_of(problem, method, seed, after, options)
    for _ in range(design + after):
        one_step(problem, searcher)
    value = searcher.best.value
    assert value is not None
    return abs(value - PROBLEMS[problem].optimum)


def suggestion_times(problem: str, methods: list[str], after: int) -> dict[str, list[float]]:
    """Seconds of every suggestion after the design, the methods taking turns."""
    runs = {}
    for text in methods:
        name, options = parse_method(text)
        runs[text], design = searcher_of(problem, name, 0, after, options)
    seconds: dict[str, list[float]] = {text: [] for text in methods}
    for step in range(design + after):
        for text, searcher in runs.items():
            taken = one_step(problem, searcher)
            if step >= design:
                seconds[text].append(taken)
    return seconds


def parse_method(text: str) -> tuple[str, dict[str, Any]]:
    """METHOD or METHOD:key=value:key=value."""
    name, *pairs = text.split(":")
    return name, dict(pair.split("=", 1) for pair in pairs)


def print_regrets(problems: list[str], methods: list[str], seeds: int, after: int) -> None:
    for problem in problems:
        base = None
        for text in methods:
            name, options = parse_method(text)
            regrets = np.array([final_regret(problem, name, seed, after, options) for seed in range(seeds)])
            base = regrets if base is None else base
            error = regrets.std(ddof=1) / np.sqrt(seeds)
            difference = regrets - base
            paired = difference.std(ddof=1) / np.sqrt(seeds)
            z = difference.mean() / paired if paired > 0.0 else 0.0
            print(
                f"{problem:10s} {text:24s} {regrets.mean():9.5f} ({error:.5f})  median {np.median(regrets):9.2e}  "
                f"x{regrets.mean() / base.mean():7.2f}  better on {int((difference < 0).sum()):2d} of {seeds}  "
                f"{z:+.1f} se",
                flush=True,
            )


def print_times(problems: list[str], methods: list[str], after: int) -> None:
    for problem in problems:
        seconds = suggestion_times(problem, methods, after)
        first = sum(seconds[methods[0]])
        for text in methods:
            print(
                f"{problem:10s} {text:24s} {1_000 * statistics.mean(seconds[text]):8.2f} ms a suggestion, "
                f"median {1_000 * statistics.median(seconds[text]):8.2f}  x{sum(seconds[text]) / first:.2f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--methods", nargs="*", default=["map", "uhe"])
    parser.add_argument("--problems", nargs="*", default=["h1", "deceptive", "hartmann3", "branin"])
    parser.add_argument("--after", type=int, default=60)
    parser.add_argument("--time", nargs="*", default=["map", "uhe", "mcmc"])
    arguments = parser.parse_args()
    with limit_threads(1):
        if arguments.time:
            print_times(arguments.problems, arguments.time, arguments.after)
        if arguments.methods:
            print_regrets(arguments.problems, arguments.methods, arguments.seeds, arguments.after)


if __name__ == "__main__":
    main()
