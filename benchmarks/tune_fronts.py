"""The same trials under three fronts: Ray Tune with RayboSearch, Ray Tune with OptunaSearch, and `raybo tune`.

The objective sleeps 50 ms. Wall time begins when the front is called, with Ray already running, and ends with its
result; Tune reuses its processes and writes no logs. Then what a suggestion and the other callbacks of RayboSearch
take, by themselves, in a study as long.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import raybo
from benchmarks.figures import Figure, Figures, at_most, command, missing
from raybo.engine.ray.connection import ray_for_study

QUICK = {"trials": 30}
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


def under_tune(tune: Any, search: Any, trials: int, workers: int) -> Callable[[], float]:
    """A run of a Tuner with a search algorithm; its best value."""

    def run() -> float:
        with tempfile.TemporaryDirectory() as directory:
            tuner = tune.Tuner(
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
            )
            return float(tuner.fit().get_best_result().metrics["loss"])

    return run


def best_of(study: raybo.Study) -> float:
    """Its best value."""
    value = study.best.value
    assert value is not None
    return value


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


def figures(trials: int = 60, workers: int = 2, method: str = "auto") -> Figures:
    """A figure per front, and one per callback."""
    if importlib.util.find_spec("pyarrow") is None:  # without which Tune is not imported
        yield missing("trials under Ray Tune", "ray[tune]")
        return
    os.environ.update(RAY_AIR_NEW_OUTPUT="0", TUNE_DISABLE_AUTO_CALLBACK_LOGGERS="1")
    work = f"{trials} trials of {1e3 * SECONDS:g} ms, {workers} workers"
    with ray_for_study(None, workers) as ray, tempfile.TemporaryDirectory() as directory:
        from ray import tune  # not before its environment is set

        from raybo.integrations.ray_tune import RayboSearch

        ray.get([ray.remote(loss).remote(dict.fromkeys(NAMES, 0.0)) for _ in range(workers)])  # the workers are up
        fronts = {"Ray Tune, RayboSearch": under_tune(tune, RayboSearch(method=method, seed=0), trials, workers)}
        if importlib.util.find_spec("optuna"):
            import optuna
            from ray.tune.search.optuna import OptunaSearch

            optuna.logging.set_verbosity(optuna.logging.ERROR)
            fronts["Ray Tune, OptunaSearch"] = under_tune(tune, OptunaSearch(seed=0), trials, workers)
        under_tune(tune, None, workers, workers)()  # what the first run loads and starts is nobody's cost
        storage = Path(directory, "study.db")
        fronts["raybo tune"] = lambda: best_of(
            raybo.tune(sleeper, trials=trials, method=method, seed=0, workers=workers, storage=storage)
        )
        for name, run in fronts.items():
            begun = time.perf_counter()
            best = run()
            yield Figure(f"{work}, {name}", f"{time.perf_counter() - begun:.1f} s, best {best:.2g}")
        if "Ray Tune, OptunaSearch" not in fronts:
            yield missing(f"{work}, Ray Tune, OptunaSearch", "optuna")
    for name, taken in callbacks(method, trials).items():
        what, note = f"RayboSearch.{name}, median of {trials}", f"longest {max(taken):.2f} ms"
        found = at_most(1, statistics.median(taken), what, "ms", note)
        yield Figure(what, found.measured) if name == "suggest" else found


if __name__ == "__main__":
    command(figures)
