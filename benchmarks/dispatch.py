"""Trials per second through a whole study, journal included, beside a bare loop over the same number of Ray tasks.

python -m benchmarks.dispatch [--trials 1000] [--workers 2] [--rounds 3]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import raybo
from raybo.engine.connection import ray_for_study

SPACE = raybo.Space({f"x{i}": raybo.Float(0, 1) for i in range(5)})


@raybo.objective(space=SPACE, metric="value", mode="max")
def no_op(config: dict[str, float]) -> float:
    """Does nothing."""
    return 0.0


def bare_loop(ray: Any, trials: int, workers: int) -> float:
    """Seconds for the same number of no-op tasks, as many in flight, with `ray.wait`."""
    task = ray.remote(num_cpus=1, max_retries=0)(lambda config: 0.0)
    config = {name: 0.5 for name in SPACE.names}
    ray.get([task.remote(config) for _ in range(workers)])
    begun = time.perf_counter()
    running = [task.remote(config) for _ in range(workers)]
    submitted = workers
    while running:
        done, running = ray.wait(running)
        ray.get(done)
        if submitted < trials:
            running.append(task.remote(config))
            submitted += 1
    return time.perf_counter() - begun


def study(trials: int, workers: int) -> float:
    """Seconds from the first proposal to the last result of a study with `random`, by its journal's clock."""
    with tempfile.TemporaryDirectory() as directory:
        found = raybo.tune(
            no_op, trials=trials, method="random", seed=0, workers=workers, storage=Path(directory, "study.db")
        )
    asked = [event for event in found.events if event.trial is not None]
    return seconds_between(asked[0].at, asked[-1].at)


def seconds_between(begin: str, end: str) -> float:
    """Seconds between two instants in ISO 8601."""
    from datetime import datetime

    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    rows = []
    with ray_for_study(None, arguments.workers) as ray:
        study(50, arguments.workers)
        for _ in range(arguments.rounds):
            bare = arguments.trials / bare_loop(ray, arguments.trials, arguments.workers)
            ours = arguments.trials / study(arguments.trials, arguments.workers)
            rows.append((bare, ours, ours / bare))
            print(f"bare loop {bare:7.0f} /s    study {ours:7.0f} /s    ratio {ours / bare:.2f}", flush=True)
    print(f"median ratio {statistics.median(row[2] for row in rows):.2f} over {arguments.rounds} rounds")


if __name__ == "__main__":
    main()
