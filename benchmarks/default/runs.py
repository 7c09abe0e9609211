"""One run of a variant on a problem, and the table that keeps every run.

A row of the table is a run: what was run, and the best value found after some numbers of trials and in the mean over
all. What counts is the true value of the trial with the best value told, as a user would take it; before any has a
value, the worst of all. Where a problem has other splits, the best and the recommended configuration are judged there
too. Rows are added as runs end, so that the same command goes on where it was stopped. A row of each problem is its
optimum, so that a table can be read where the problem's package is missing.
"""

from __future__ import annotations

import csv
import math
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import raybo
from benchmarks.default.problem import Task
from benchmarks.default.sets import PROBLEMS
from benchmarks.default.variants import Asks, searcher, with_workers
from raybo.common.threads import limit_threads
from raybo.space import Config

AFTER = (5, 10, 20, 40, 60, 100)  # trials after which the best is kept, beside the last
NOISE = 1  # a stream of a run's seed
OPTIMUM = "optimum"  # in place of a variant: the least value, NaN if nobody knows it


@dataclass(frozen=True)
class Run:
    """The outcome of a run.

    Attributes:
        mean, final: the best value, in the mean over all trials and after the last.
        after: the best values after the numbers of AFTER; those beyond the budget are the final one.
        milliseconds: of processor time per proposal, without the trials.
        best_elsewhere, recommended_elsewhere: what the best and the recommended configuration are worth on other splits
            and seeds; None if the problem has none. A peer recommends its best.
    """

    problem: str
    variant: str
    seed: int
    final: float
    mean: float
    after: tuple[float, ...]
    milliseconds: float
    best_elsewhere: float | None = None
    recommended_elsewhere: float | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """The key that tells it from other runs."""
        return self.problem, self.variant, self.seed


def task_of(name: str, seed: int = 0) -> Task:
    """A problem's task, made once a process: that of a seed, where every seed is another instance."""
    return _made(name, seed if PROBLEMS[name].is_seeded else 0)


@cache
def _made(name: str, seed: int) -> Task:
    return PROBLEMS[name].task(seed)


def method_seed(problem: str, seed: int) -> int:
    """The seed of the method in a run: of equal seeds, each problem has other first points, so that pairs differ."""
    return int(np.random.SeedSequence([seed, zlib.crc32(problem.encode())]).generate_state(1)[0])


def run(problem: str, variant: str, seed: int) -> Run:
    """Run a variant on a problem; the seed is that of the noise, and makes the method's.

    With several workers all have a trial as long as any is left, and the one that was asked first ends first.
    """
    task, trials = task_of(problem, seed), PROBLEMS[problem].trials
    if variant == OPTIMUM:
        least = math.nan if task.optimum is None else task.optimum
        return Run(problem, OPTIMUM, seed, least, least, (least,) * len(AFTER), 0.0)
    alone, workers = with_workers(variant)
    rng = np.random.default_rng([seed, NOISE])
    running: deque[tuple[Any, float, float]] = deque()  # trial, value, what it will tell
    best: list[float] = []
    lowest, truth, seconds, winner = math.inf, math.nan, 0.0, None
    with limit_threads(1):
        begun = time.process_time()
        asking = searcher(alone, task.space, method_seed(problem, seed), trials)
        seconds += time.process_time() - begun
        while len(best) < trials:
            while len(running) < min(workers, trials - len(best)):
                begun = time.process_time()
                trial = asking.ask()
                seconds += time.process_time() - begun
                value = task.value(trial.config)
                running.append((trial, value, task.told(value, rng)))
            trial, value, told = running.popleft()
            begun = time.process_time()
            if math.isfinite(told):
                asking.tell(trial, told)
            else:
                asking.fail(trial, "it failed")
            seconds += time.process_time() - begun
            if told < lowest:
                lowest, truth, winner = told, value, trial.config
            best.append(truth)
    found = np.array(best)
    found = np.where(np.isnan(found), np.nanmax(found), found)
    after = tuple(float(found[min(n, trials) - 1]) for n in AFTER)
    judged = _elsewhere(task, asking, winner)
    return Run(problem, variant, seed, float(found[-1]), float(found.mean()), after, 1e3 * seconds / trials, *judged)


def _elsewhere(task: Task, asked: Asks, best: Config | None) -> tuple[float | None, float | None]:
    """The worth of the best and of the recommended configuration on other splits; None if there are none."""
    if task.elsewhere is None or best is None:
        return None, None
    recommended = asked.best_expected.config if isinstance(asked, raybo.Searcher) else best
    worth = task.elsewhere(best)
    return worth, worth if recommended == best else task.elsewhere(recommended)


class Table:
    """The runs in a CSV file, which only grows.

    Args:
        path: made with its first run.
    """

    OTHERS = "best_elsewhere", "recommended_elsewhere"  # left out of tables that were begun without them
    HEADER = ("problem", "variant", "seed", "final", "mean", *(f"after_{n}" for n in AFTER), "milliseconds", *OTHERS)

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = {found.key: found for found in self._read()}

    def add(self, found: Run) -> None:
        """Keep a run."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = not self.path.exists()
        header = self.HEADER if fresh else self.path.read_text().partition("\n")[0].split(",")
        with self.path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if fresh:
                writer.writerow(self.HEADER)
            numbers = (found.final, found.mean, *found.after)
            texts = [f"{number:.9g}" for number in numbers]
            known = {name: getattr(found, name) for name in self.OTHERS if name in header}
            others = ["" if value is None else f"{value:.9g}" for value in known.values()]
            writer.writerow([*found.key, *texts, f"{found.milliseconds:.3g}", *others])
        self.runs[found.key] = found

    def missing(self, keys: Iterable[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
        """Return the runs that are not in the table."""
        return [key for key in keys if key not in self.runs]

    def _read(self) -> Iterator[Run]:
        if not self.path.exists():
            return
        text = self.path.read_bytes()
        if not text.endswith(b"\n"):  # a run that was killed as it wrote
            self.path.write_bytes(text[: text.rfind(b"\n") + 1])
        with self.path.open(newline="") as file:
            for row in csv.DictReader(file):
                after = tuple(float(row[f"after_{n}"]) for n in AFTER)
                final, mean, spent = (float(row[name]) for name in ("final", "mean", "milliseconds"))
                others = (float(row[name]) if row.get(name) else None for name in self.OTHERS)
                yield Run(row["problem"], row["variant"], int(row["seed"]), final, mean, after, spent, *others)
