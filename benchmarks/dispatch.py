"""Trials per second through a whole study, journal included, beside a bare loop over Ray tasks and beside Ray Tune.

The trials do nothing and the method is `random`. The rounds of the study and of the bare loop, `ray.wait` over as many
tasks, take turns on one Ray, whose workers have the priority that Ray gives them by itself; then both again beside a
process that keeps a core busy. Ray Tune runs the same function from the same space by its random search on the same
Ray, fewer of them as it is slow: as it comes, and with reuse_actors, without which every trial starts a process.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import raybo
from benchmarks.figures import Figure, Figures, at_least, command, missing
from benchmarks.searches import unit_space
from raybo.engine.ray.connection import ray_for_study
from raybo.engine.ray.priority import lower_priority

QUICK = {"trials": 500, "rounds": 1, "tune_trials": 10}
SPACE = unit_space(5)
TUNES_DEFAULTS = "study over Ray Tune as it comes"


@raybo.objective(space=SPACE, metric="value", mode="max")
def no_op(config: dict[str, float]) -> float:
    """Does nothing."""
    return 0.0


def bare_loop(ray: Any, trials: int, workers: int) -> float:
    """Trials a second of the same number of no-op tasks, as many in flight, with `ray.wait`."""

    def nothing(config: dict[str, float]) -> float:
        lower_priority()  # to the niceness that Ray gives its workers by itself: in this Ray each trial does that
        return 0.0

    task = ray.remote(num_cpus=1, max_retries=0)(nothing)
    config = dict.fromkeys(SPACE.names, 0.5)
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
    return trials / (time.perf_counter() - begun)


def study(trials: int, workers: int) -> float:
    """Trials a second of a study, from the first proposal to the last result by its journal's clock."""
    with tempfile.TemporaryDirectory() as directory:
        storage = Path(directory, "study.db")
        found = raybo.tune(no_op, trials=trials, method="random", seed=0, workers=workers, storage=storage)
    at = [datetime.fromisoformat(event.at) for event in found.events if event.trial is not None]
    return trials / (at[-1] - at[0]).total_seconds()


def ray_tune(trials: int, workers: int, reuse_actors: bool) -> float:
    """Trials a second of Ray Tune's function API, from `fit` to its end, after a short run that loads it."""
    from ray import tune

    def run(trials: int) -> float:
        with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(io.StringIO()):
            tuner = tune.Tuner(
                lambda config: {"value": 0.0},
                param_space={name: tune.uniform(0, 1) for name in SPACE.names},
                tune_config=tune.TuneConfig(num_samples=trials, reuse_actors=reuse_actors),
                run_config=tune.RunConfig(storage_path=directory, verbose=0),
            )
            begun = time.perf_counter()
            results = tuner.fit()
        assert not results.errors
        return trials / (time.perf_counter() - begun)

    run(workers)
    return run(trials)


def _burn() -> None:
    while True:
        pass


@contextlib.contextmanager
def core_burnt() -> Iterator[None]:
    """Something else keeps a core busy meanwhile."""
    other = multiprocessing.get_context("spawn").Process(target=_burn, daemon=True)
    other.start()
    try:
        yield
    finally:
        other.kill()
        other.join()


def figures(trials: int = 1_000, workers: int = 2, rounds: int = 3, tune_trials: int = 40) -> Figures:
    """The study over the bare loop, and over Ray Tune unless that is to run no trials."""
    with ray_for_study(None, workers) as ray:
        study(50, workers)
        rates = []
        for target, where in ((0.8, contextlib.nullcontext()), (0.6, core_burnt())):
            bare, ours = [], []
            with where:
                for _ in range(rounds):
                    bare.append(bare_loop(ray, trials, workers))
                    ours.append(study(trials, workers))
            rates.append(statistics.median(ours))
            ratio = statistics.median(a / b for a, b in zip(ours, bare, strict=True))
            note = f"{rates[-1]:.0f} and {statistics.median(bare):.0f} trials per second, median of {rounds} rounds"
            beside = "" if target == 0.8 else ", beside a process that burns a core"
            yield at_least(target, ratio, f"study over a bare loop of Ray tasks{beside}", note=note)
        if not tune_trials:
            return
        rate = rates[0]
        try:
            slow, fast = (ray_tune(tune_trials, workers, reuse_actors) for reuse_actors in (False, True))
        except ImportError:
            yield missing(TUNES_DEFAULTS, "ray[tune]")
            return
        yield at_least(30, rate / slow, TUNES_DEFAULTS, note=f"it runs {slow:.2g} trials per second")
        note = f"{rate / fast:.3g} times (it runs {fast:.2g} trials per second)"
        yield Figure("study over Ray Tune with reuse_actors", note)


if __name__ == "__main__":
    command(figures)
