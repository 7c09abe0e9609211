"""A study's own process with Ray replaced by a clock: what a thousand workers would see of it, on one processor.

Everything is the real thing but Ray: the study's loop, its searcher, its event log and its journal on disk. A trial is
a timer: it ends after a drawn duration with the objective's value. Time is virtual. It stands still but for two things:
the processor seconds that the study's process spends are added as they are spent, proposals included (one serial
server, as Python's lock makes of its threads), and where nothing is left to do it jumps to the next event. Ray's part
is RAY_SECONDS for every start and every result. How Ray itself would bear a thousand nodes is not simulated.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest import mock

import numpy as np

import raybo
from benchmarks.searches import Array
from raybo.common.threads import limit_threads
from raybo.engine.description import searcher_for
from raybo.engine.lifecycle import Occurrence
from raybo.engine.plan import Plan
from raybo.engine.run_options import RunOptions
from raybo.engine.study import loop as engine_loop
from raybo.engine.study import trial_runs
from raybo.engine.study.loop import StudyLoop
from raybo.engine.trial.task import PackedFunction
from raybo.job.objective import Objective

RAY_SECONDS = 0.001  # of the study's process for each start and each result: 0.5 to 1 ms were measured


class _Jumps(selectors.BaseSelector):
    """A selector that waits by moving the clock."""

    def __init__(self, loop: ClockLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("the study waits for something that no timer brings")
        self._loop.idle += max(0.0, timeout)
        self._loop.jumped += max(0.0, timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> Any:
        """Nothing is ever read here but what wakes the loop from other threads, of which there are none."""

    def unregister(self, fileobj: Any) -> Any: ...

    def get_map(self) -> Any:
        return {}

    def get_key(self, fileobj: Any) -> Any:
        raise KeyError(fileobj)


Loop = TypeVar("Loop", bound=asyncio.AbstractEventLoop)


class ClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is the processor seconds of its thread, and what it jumped over."""

    def __init__(self) -> None:
        self.jumped = 0.0
        self.idle = 0.0  # of which nothing was to do
        self._began = time.thread_time()
        super().__init__(_Jumps(self))

    def time(self) -> float:
        """Seconds since it was made."""
        return time.thread_time() - self._began + self.jumped

    def spend(self, seconds: float) -> None:
        """Seconds that something else keeps this process from its work."""
        self.jumped += seconds

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        """On the spot: the study has one processor."""
        future = self.create_future()
        future.set_result(func(*args))
        return future


@dataclass
class Simulation:
    """The outcome of a simulated study.

    Attributes:
        workers: how many there were.
        seconds: virtual, from the beginning to the last result. served: of which the study's process was at work.
        busy: seconds that trials ran, summed over the workers.
        ends: (n,), when each trial's result was taken in; values: (n,), its value.
        waits: seconds that results lay there before the study's process took them in.
        suggested: processor seconds of each proposal.
    """

    workers: int
    seconds: float = 0.0
    served: float = 0.0
    busy: float = 0.0
    ends: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    suggested: list[float] = field(default_factory=list)

    @property
    def busy_share(self) -> float:
        """Of the workers' seconds, in which trials ran; while there were trials for all of them.

        The last trials to end leave workers without any, however fast the study is.
        """
        return self.steady_busy / (self.workers * self.steady)

    steady: float = 0.0  # seconds until the last trial was started
    steady_busy: float = 0.0

    def best(self) -> Array:  # (n,)
        """The least value so far, after each result in the order of their coming."""
        return np.minimum.accumulate(np.array(self.values))


class _Trials:
    """Stands in for Ray: starts trials as timers."""

    def __init__(
        self,
        loop: ClockLoop,
        simulation: Simulation,
        objective: Objective,
        function: Callable[[dict[str, Any]], float],
        seconds: Callable[[int], float],
    ) -> None:
        self.loop, self.simulation, self.objective = loop, simulation, objective
        self.function, self.seconds = function, seconds
        self.runs: list[tuple[float, float]] = []

    def submit(self, dispatched: Any, config: dict[str, Any], *_: Any) -> None:
        """Start the trial's next attempt; a worker is free, or this would not be called."""
        self.loop.spend(RAY_SECONDS)
        number, began = dispatched.life.trial, self.loop.time()
        duration = self.seconds(number)
        future = self.loop.create_future()
        value = self.function(config)
        self.runs.append((began, duration))

        def end() -> None:
            self.simulation.waits.append(self.loop.time() - began - duration)
            self.loop.spend(RAY_SECONDS)
            self.simulation.busy += duration
            self.simulation.values.append(value)
            self.simulation.ends.append(self.loop.time())
            data = {"seconds": duration, "started": "2000-01-01T00:00:00.000+00:00", "host": "clock", "value": value}
            future.set_result((Occurrence.RETURNED, data, []))

        self.loop.call_later(duration, end)
        dispatched.task = future

    def renew(self) -> None:
        """No node is ever lost."""


def simulate(
    objective: Objective,
    method: str,
    workers: int,
    trials: int,
    seconds: Callable[[int], float],
    seed: int = 0,
    function: Callable[[dict[str, Any]], float] | None = None,
) -> Simulation:
    """Run a study on so many workers by the clock.

    Args:
        seconds: how long a trial of that number runs.
        function: what trials are worth, in place of the objective itself.
    """
    simulation = Simulation(workers)
    with tempfile.TemporaryDirectory() as directory, limit_threads(1), to_its_end(ClockLoop()) as loop:
        description = searcher_for(objective, method, seed, {}, None).description
        plan = Plan(
            description=description,
            path=Path(directory, "study.db"),
            trials=trials,
            workers=workers,
            options=RunOptions(retries=0, detach=True),
            driver=0,
            is_kept=False,
        )
        there: Any = SimpleNamespace(nodes=lambda: [{"Alive": True}])
        stand_in = _Trials(loop, simulation, objective, function or (lambda config: float(objective(config))), seconds)
        with (
            mock.patch.object(engine_loop, "ray", there),
            mock.patch.object(trial_runs, "Launcher", return_value=stand_in),
        ):
            study = StudyLoop(plan, objective, PackedFunction(b"", [], [], []))
            loop.run_until_complete(study.run())
        found = raybo.load(plan.path)
        simulation.suggested = [trial.suggest_processor_seconds or 0.0 for trial in found.trials]
        simulation.seconds = simulation.ends[-1]
        simulation.served = loop.time() - loop.idle
        simulation.steady = max(began for began, _ in stand_in.runs)
        simulation.steady_busy = sum(min(duration, simulation.steady - began) for began, duration in stand_in.runs)
    return simulation


async def _others_ended() -> None:
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)


@contextlib.contextmanager
def to_its_end(loop: Loop) -> Iterator[Loop]:
    """Close a loop after the block, once tasks that are left, such as commits that were cancelled, have ended."""
    try:
        yield loop
        loop.run_until_complete(_others_ended())
    finally:
        loop.close()


def log_normal(mean: float, sd: float, seed: int = 0) -> Callable[[int], float]:
    """Durations with that mean, whose logarithms have that standard deviation; the same for equal numbers."""

    def seconds(number: int) -> float:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        return float(mean * np.exp(sd * rng.standard_normal() - 0.5 * sd * sd))

    return seconds
