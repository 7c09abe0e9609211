"""Searches over learning curves with a budget in steps, by one or several simulated workers.

A step of a trial takes the time that its configuration's steps take, drawn once per trial; whoever is free asks at
once. Every search goes through ask, report and tell, as a user's would.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

import raybo
from benchmarks.conditional import suggested

SPREAD = 0.3  # of the logarithms of the trials' seconds per step


class Curve(Protocol):
    """The values of a configuration after every step, maximised; some are only found once they are looked at."""

    def __getitem__(self, place: int, /) -> float:
        """The value after a step, of which the first is at place 0, and the last at -1."""
        ...


@dataclass(frozen=True, eq=False)
class Problem:
    """Learning curves.

    Attributes:
        name: as tables call it. space: of the configurations. steps: of a whole run.
        curve: of a configuration.
        best: the best known last value. chance: what random search comes to after 40 whole runs, in the mean.
    """

    name: str
    space: raybo.Space
    steps: int
    curve: Callable[[dict[str, Any]], Curve]
    best: float
    chance: float

    def regret(self, value: float) -> float:
        """0 for the best known value, 1 for chance."""
        return (self.best - value) / (self.best - self.chance)


class Search(Protocol):
    """Something that asks for configurations and is given their reports."""

    def ask(self) -> tuple[Any, dict[str, Any], int]:
        """A trial to run, its configuration, and how many of its steps are behind it."""
        ...

    def report(self, trial: Any, step: int, value: float) -> bool:
        """True if the trial is to continue."""
        ...

    def tell(self, trial: Any, value: float) -> None:
        """Note that the trial has run to its last step."""
        ...


@dataclass
class Running:
    """A trial on a worker."""

    trial: Any
    config: dict[str, Any]
    curve: Curve
    step: int
    seconds: float  # per step


@dataclass
class AttemptInfo:
    """The recommendations of a search over time.

    Attributes:
        changes: steps, and the curve of the configuration recommended from then on.
    """

    changes: list[tuple[int, Curve]] = field(default_factory=list)

    @property
    def spent(self) -> list[tuple[int, float]]:
        """Steps, and from then on the last value of the configuration recommended, at every change."""
        return [(at, curve[-1]) for at, curve in self.changes]

    def after(self, steps: int) -> float | None:
        """The last value of the configuration that is recommended after so many steps; None if there is none."""
        return next((curve[-1] for at, curve in reversed(self.changes) if at <= steps), None)


def run(problem: Problem, search: Search, budget: int, seed: int, workers: int = 1) -> AttemptInfo:
    """A search with so many steps in all.

    What is recommended is the best configuration that has finished; until one has, the one with the best last report.
    """
    rng = np.random.default_rng([seed, 1])
    course, queue, spent, order = AttemptInfo(), list[tuple[float, int, Running]](), 0, 0
    best, leading = -np.inf, -np.inf

    def start(now: float) -> None:
        nonlocal order
        trial, config, step = search.ask()
        running = Running(trial, config, problem.curve(config), step, float(np.exp(SPREAD * rng.standard_normal())))
        heapq.heappush(queue, (now + running.seconds, order, running))
        order += 1

    for _ in range(workers):
        start(0.0)
    while spent < budget:
        now, place, running = heapq.heappop(queue)
        running.step += 1
        spent += 1
        value = float(running.curve[running.step - 1])
        goes_on = search.report(running.trial, running.step, value)
        if best == -np.inf and value > leading:
            leading = value
            course.changes.append((spent, running.curve))
        if running.step == problem.steps:
            search.tell(running.trial, value)
            if value > best:
                best = value
                course.changes.append((spent, running.curve))
            start(now)
        elif goes_on:
            heapq.heappush(queue, (now + running.seconds, place, running))
        else:
            start(now)
    return course


class RayboSearch:
    """A `raybo.Searcher`, maybe with earlier studies; paused trials continue from their last step."""

    def __init__(
        self, problem: Problem, seed: int, method: str, scheduler: str | None, prior: Any = (), **options: Any
    ) -> None:
        self.searcher = raybo.Searcher(
            problem.space,
            method,
            seed=seed,
            steps=problem.steps,
            scheduler=scheduler,
            scheduler_options=options or None,
            prior=prior,
        )

    def ask(self) -> tuple[Any, dict[str, Any], int]:
        """A promoted trial, or a new one."""
        promoted = self.searcher.promoted()
        if promoted is not None:
            return promoted, promoted.config, promoted.reports[-1][0]
        trial = self.searcher.ask()
        return trial, trial.config, 0

    def report(self, trial: Any, step: int, value: float) -> bool:
        """Carry out the scheduler's verdict."""
        verdict = self.searcher.report(trial, value, step)
        if verdict.prune:
            self.searcher.prune(trial)
        elif verdict.pause:
            self.searcher.pause(trial)
        return verdict.action == "go"

    def tell(self, trial: Any, value: float) -> None:
        """Its last value is its result."""
        self.searcher.tell(trial, value)


class LooksThenBest:
    """The simple thing: random configurations, a thirteenth of the steps each; then the best eight in full.

    With a budget of b whole runs there are as many looks as b - 8 of them pay for, at least half of all. The best are
    run on from where they were left. Of several workers, one that is free while looks are under way goes on with the
    best of those that are done, or looks once more.
    """

    def __init__(self, problem: Problem, seed: int, budget: int) -> None:
        self.problem, self.rng = problem, np.random.default_rng([seed, 2])
        self.look = max(1, round(problem.steps / 13))
        full = 8 * (problem.steps - self.look)
        self.looks = max(budget // 2, budget - full) // self.look
        self.seen: list[tuple[float, dict[str, Any]]] = []  # and not yet run on
        self.asked = 0

    def ask(self) -> tuple[Any, dict[str, Any], int]:
        """The next look, or the next best."""
        self.asked += 1
        if self.asked <= self.looks or not self.seen:
            (config,) = self.problem.space.decode(self.problem.space.snap(self.rng.random((1, self.problem.space.d))))
            return config, config, 0
        value, config = max(self.seen, key=lambda pair: pair[0])
        self.seen.remove((value, config))
        return None, config, self.look

    def report(self, trial: Any, step: int, value: float) -> bool:
        """True if it is beyond its look."""
        if trial is not None and step == self.look:
            self.seen.append((value, trial))
            return False
        return True

    def tell(self, trial: Any, value: float) -> None:
        """Nothing is learnt."""


class OptunaSearch:
    """Optuna's TPE with one of its pruners, each with its defaults."""

    def __init__(self, problem: Problem, seed: int, pruner: str | None) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        made: dict[str | None, Callable[[], Any]] = {
            None: optuna.pruners.NopPruner,
            "median": optuna.pruners.MedianPruner,
            "hyperband": lambda: optuna.pruners.HyperbandPruner(max_resource=problem.steps),
            "halving": optuna.pruners.SuccessiveHalvingPruner,
        }
        sampler = optuna.samplers.TPESampler(seed=seed)
        name = f"{problem.name}-{seed}"  # Hyperband's brackets depend on it
        self.study = optuna.create_study(study_name=name, direction="maximize", sampler=sampler, pruner=made[pruner]())
        self.space = problem.space

    def ask(self) -> tuple[Any, dict[str, Any], int]:
        """Return TPE's suggestion."""
        trial = self.study.ask()
        return trial, suggested(trial, self.space.template, ()), 0

    def report(self, trial: Any, step: int, value: float) -> bool:
        """Return the pruner's verdict."""
        import optuna

        trial.report(value, step)
        if not trial.should_prune():
            return True
        self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        return False

    def tell(self, trial: Any, value: float) -> None:
        """Its last value is its result."""
        import optuna

        if self.study.trials[trial.number].state == optuna.trial.TrialState.RUNNING:
            self.study.tell(trial, value)
