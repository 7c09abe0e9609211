"""Simple regret of methods on the papers' functions after the papers' budgets, over seeds, beside random and Sobol.

python -m benchmarks.quality [--seeds 10] [--methods random,sobol,gp-ucb,auto] [--problems branin,hartmann6,levy5]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import raybo
from raybo.engine.connection import ray_for_study
from trials.synthetic import PROBLEMS

BUDGETS = {"branin": 100, "hartmann6": 260, "levy5": 200}  # initial design and iterations of the UAI 2025 experiments


def one_run(problem: str, method: str, options: dict[str, Any], seed: int, trials: int) -> tuple[float, float]:
    """Simple regret after the budget, and seconds of one suggestion."""
    known = PROBLEMS[problem]
    searcher = raybo.Searcher(
        known.objective.space, method=method, mode=known.objective.mode, seed=seed, trials=trials, **options
    )
    seconds = 0.0
    for _ in range(trials):
        begun = time.perf_counter()
        trial = searcher.ask()
        seconds += time.perf_counter() - begun
        result = known.objective(trial.config)
        searcher.tell(trial, result[known.objective.metric] if isinstance(result, dict) else result)
    value = searcher.best.value
    assert value is not None
    return abs(value - known.optimum), seconds / trials


def parse_method(text: str) -> tuple[str, dict[str, Any]]:
    """METHOD or METHOD:key=value:key=value."""
    name, *pairs = text.split(":")
    return name, dict(pair.split("=", 1) for pair in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--methods", default="random,sobol,gp-ucb,gp-ucb:solver=lbfgsb,auto")
    parser.add_argument("--problems", default="branin,hartmann6,levy5")
    arguments = parser.parse_args()
    print("simple regret, median [quartiles] over seeds; random's median over it; ms a suggestion")
    with ray_for_study(None, None) as ray:
        run = ray.remote(num_cpus=1)(one_run)
        for problem in arguments.problems.split(","):
            baseline = None
            for method in arguments.methods.split(","):
                name, options = parse_method(method)
                runs = [run.remote(problem, name, options, seed, BUDGETS[problem]) for seed in range(arguments.seeds)]
                results = ray.get(runs)
                low, median, high = np.quantile([regret for regret, _ in results], [0.25, 0.5, 0.75])
                baseline = median if baseline is None else baseline
                print(
                    f"{problem:10s} {method:24s} {median:9.2e} [{low:.2e}, {high:.2e}]  x{baseline / median:9.1f}  "
                    f"{1_000 * np.mean([seconds for _, seconds in results]):7.1f} ms",
                    flush=True,
                )


if __name__ == "__main__":
    main()
