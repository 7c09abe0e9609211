"""The same trials under three fronts: Ray Tune with RayboSearch, Ray Tune with OptunaSearch, and `raybo tune`.

python -m benchmarks.tune_fronts [--trials 60] [--workers 2] [--method auto]

The objective sleeps 50 ms. Wall time begins when the front is called, with Ray already running, and ends with its
result. Below it: what a callback of RayboSearch takes, and what a suggestion does, measured beside a study as long.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import raybo

NAMES = ("a", "b", "c", "d")
SPACE = raybo.Space({name: raybo.Float(0, 1) for name in NAMES})
SECONDS = 0.05


def loss(config: dict[str, float]) -> float:
    """A parabola that takes its time."""
    time.sleep(SECONDS)
    return sum((value - 0.3) ** 2 for value in config.values())


@raybo.objective(space=SPACE, metric="loss", mode="min", num_cpus=1)
def sleeper(config: dict[str, float]) -> dict[str, float]:
    """The same, for raybo."""
    return {"loss": loss(config)}


def under_tune(search: Any, trials: int, workers: int) -> Callable[[], float]:
    """A run of a Tuner with a search algorithm; its best value."""

    def run() -> float:
        from ray import tune

        with tempfile.TemporaryDirectory() as directory:
            results = tune.Tuner(
                lambda config: {"loss": loss(config)},
                param_space={name: tune.uniform(0, 1) for name in NAMES},
                tune_config=tune.TuneConfig(
                    search_alg=search,
                    metric="loss",
                    mode="min",
                    num_samples=trials,
                    max_concurrent_trials=workers,
                    reuse_actors=True,
                ),
                run_config=tune.RunConfig(storage_path=directory, verbose=0),
            ).fit()
        return float(results.get_best_result().metrics["loss"])

    return run


def callbacks(method: str, trials: int) -> dict[str, list[float]]:
    """Milliseconds of each call, by name, of a search driven as Tune drives it."""
    from raybo.integrations.ray_tune import RayboSearch

    search = RayboSearch(SPACE, metric="loss", mode="min", method=method, seed=0)
    taken: dict[str, list[float]] = {"suggest": [], "on_trial_result": [], "on_trial_complete": [], "save": []}

    def timed(name: str, *arguments: Any) -> Any:
        begun = time.perf_counter()
        answer = getattr(search, name)(*arguments)
        taken[name].append(1e3 * (time.perf_counter() - begun))
        return answer

    with tempfile.TemporaryDirectory() as directory:
        for i in range(trials):
            config = timed("suggest", f"{i:08x}")
            flat = {f"config/{name}": value for name, value in config.items()}
            report = {"loss": sum((value - 0.3) ** 2 for value in config.values()), "training_iteration": 1, **flat}
            timed("on_trial_result", f"{i:08x}", report)
            timed("on_trial_complete", f"{i:08x}", report)
            timed("save", str(Path(directory, "state")))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--method", default="auto")
    given = parser.parse_args()
    os.environ.update(RAY_AIR_NEW_OUTPUT="0", TUNE_DISABLE_AUTO_CALLBACK_LOGGERS="1")

    import ray

    from raybo.integrations.ray_tune import RayboSearch

    with tempfile.TemporaryDirectory(prefix="rb-", dir="/tmp") as directory:
        ray.init(
            address="local",
            num_cpus=given.workers,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _temp_dir=directory,
        )
        try:
            ray.get([ray.remote(loss).remote({}) for _ in range(given.workers)])  # the workers are up
            fronts = {
                "Ray Tune, RayboSearch": under_tune(
                    RayboSearch(method=given.method, seed=0), given.trials, given.workers
                )
            }
            if importlib.util.find_spec("optuna"):
                from ray.tune.search.optuna import OptunaSearch

                fronts["Ray Tune, OptunaSearch"] = under_tune(OptunaSearch(seed=0), given.trials, given.workers)
            fronts["raybo tune"] = lambda: float(
                raybo.tune(
                    sleeper,
                    trials=given.trials,
                    method=given.method,
                    seed=0,
                    workers=given.workers,
                    storage=Path(directory, "study.db"),
                ).best.value
                or 0.0
            )
            print(f"{given.trials} trials of {1e3 * SECONDS:g} ms, {given.workers} workers, {given.method}\n")
            print(f"{'front':<24} {'seconds':>8} {'best':>9}")
            for name, run in fronts.items():
                begun = time.perf_counter()
                best = run()
                print(f"{name:<24} {time.perf_counter() - begun:>8.1f} {best:>9.5f}")
        finally:
            ray.shutdown()
    print(f"\n{'RayboSearch, ms':<24} {'median':>8} {'longest':>9}")
    for name, taken in callbacks(given.method, given.trials).items():
        print(f"{name:<24} {statistics.median(taken):>8.3f} {max(taken):>9.3f}")


if __name__ == "__main__":
    main()
