"""The gain of early stopping: regret after so many whole runs' steps, of methods with and without a scheduler.

What counts after a budget is the last value of the configuration recommended then: 0 for the best known, 1 for random
search after 40 whole runs; the mean over problems of the median over seeds. LCBench are its curves by their surrogate,
52 epochs each (see lcbench.py). boosting and network are jobs of `trials/`, really run; what counts of these is the log
loss and the share of rows told wrongly, and each is told by itself. --problems also takes groups: lcbench,
lcbench-others, jobs. An entry is METHOD or METHOD+SCHEDULER of raybo's, tpe or tpe+PRUNER of Optuna's, or "looks": a
thirteenth of the steps for random configurations, then the best eight in full, planned for each budget anew.
The settings of raybo's schedulers were tried on seeds below 100: those from there on are fresh.

Every run is kept as a line of --out, if there is one, and the same command goes on after them. `--processors` of them
are run at once.
"""

from __future__ import annotations

import csv
import importlib.util
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.early_problems import GROUPS, JOBS, PROBLEMS
from benchmarks.early_runs import LooksThenBest, OptunaSearch, Problem, RayboSearch, Search, run
from benchmarks.figures import Figure, Figures, at_most, command, missing

QUICK = {
    "seeds": 1,
    "problems": "lcbench-167149",
    "entries": "random,auto,auto+curve",
    "budgets": "2,4",
    "out": "",
}
ENTRIES = (
    "random,looks,tpe,tpe+median,tpe+hyperband,tpe+halving,auto,auto+median,auto+asha,auto+asha:variant=promote,"
    "auto+hyperband,auto+curve"
)
IN_BRIEF = {"seeds": 1, "entries": "random,tpe+hyperband,auto,auto+curve", "budgets": "8,16,40", "out": ""}
GOALS = {8: 0.6, 16: 0.12}
MORE_STEPS = 1.3  # of several workers beside one, to the same regret


class Key(NamedTuple):
    """The key of a run."""

    problem: str
    entry: str
    seed: int
    workers: int
    budget: int  # whole runs that were planned for


class Run(NamedTuple):
    """A run with what came of it."""

    key: Key
    values: dict[int, float]  # regret after so many whole runs' steps
    seconds: float


def figures(
    seeds: int = 5,
    first_seed: int = 100,
    problems: str = "lcbench",
    entries: str = ENTRIES,
    budgets: str = "5,8,10,16,20,40",
    workers: str = "1",
    processors: int = 1,
    out: str = "early.csv",
) -> Figures:
    """Regret by entry and budget; with goals for auto with its best scheduler."""
    if importlib.util.find_spec("onnxruntime") is None and "lcbench" in problems:
        yield missing("LCBench", "onnxruntime")
        return
    after = [int(budget) for budget in budgets.split(",")]
    named = [name for each in problems.split(",") for name in GROUPS.get(each, [each])]
    numbers = range(first_seed, first_seed + seeds)
    together = [name for name in named if name not in JOBS]
    for names in [together, *([name] for name in named if name in JOBS)]:  # jobs have units of their own
        if names:
            yield from _of_problems(names, numbers, entries, after, workers, processors, out)


def _of_problems(
    names: list[str], numbers: range, entries: str, after: list[int], workers: str, processors: int, out: str
) -> Figures:
    """The figures of problems whose regrets are in the same units."""
    of = f" of {names[0]}" if names[0] in JOBS else ""
    alone: dict[int, float] = {}  # regret of auto+curve by budget, with one worker
    for count in map(int, workers.split(",")):
        for entry in entries.split(","):
            if entry.startswith("tpe") and importlib.util.find_spec("optuna") is None:
                yield missing(entry, "optuna")
                continue
            planned = after if entry == "looks" else [max(after)]
            keys = [Key(name, entry, seed, count, budget) for name in names for seed in numbers for budget in planned]
            found = {done.key: done for done in runs(keys, after, out, processors)}
            means = {}
            for budget in after:
                at = budget if entry == "looks" else max(planned)
                values = [
                    [found[Key(name, entry, seed, count, at)].values[budget] for seed in numbers] for name in names
                ]
                means[budget] = float(np.mean(np.median(values, axis=1)))
            row = ", ".join(f"{budget}: {mean:.{4 if of else 2}f}" for budget, mean in means.items())
            seconds = np.mean([done.seconds for done in found.values()])
            what = f"{entry}{of}, {count} worker{'s' if count > 1 else ''}"
            yield Figure(f"{what}: regret after whole runs", f"{row} ({seconds:.1f} s per run)")
            if entry == "auto+curve" and not of:
                alone = means if count == 1 else alone
                yield from _beside_goals(what, means, count, alone)


def _beside_goals(what: str, means: dict[int, float], count: int, alone: dict[int, float]) -> Figures:
    """One worker beside the goals; several beside one, after at most 1.3 times the steps."""
    if count == 1:
        for budget, goal in GOALS.items():
            if budget in means:
                yield at_most(goal, means[budget], f"{what}: regret after {budget}", unit="")
        return
    for budget in GOALS:
        later = max((each for each in means if budget < each <= MORE_STEPS * budget), default=None)
        if later is not None and budget in alone:
            said = f"{what}: regret after {later}, one worker having had {budget}"
            yield at_most(round(alone[budget], 2), means[later], said, unit="")


def runs(keys: list[Key], after: list[int], out: str, processors: int) -> Iterator[Run]:
    """The runs, those that are kept first; the others are kept as they end."""
    kept = {done.key: done for done in _read(out) if set(after) <= set(done.values)}
    yield from (kept[key] for key in keys if key in kept)
    missing_keys = [key for key in keys if key not in kept]
    one = partial(_run, after=after)
    if processors == 1:
        ended: Iterator[Run] = map(one, missing_keys)
        yield from _kept(ended, out)
        return
    with ProcessPoolExecutor(processors, mp_context=get_context("spawn")) as pool:
        yield from _kept(pool.map(one, missing_keys), out)


def search_of(problem: Problem, key: Key) -> Search:
    """The search that an entry stands for."""
    method, _, rule = key.entry.partition("+")
    if key.entry == "looks":
        return LooksThenBest(problem, key.seed, key.budget * problem.steps)
    if method == "tpe":
        return OptunaSearch(problem, key.seed, rule or None)
    scheduler, _, options = rule.partition(":")
    given = dict(option.split("=", 1) for option in options.split(";")) if options else {}
    return RayboSearch(problem, key.seed, method, scheduler or None, **given)


def _run(key: Key, after: list[int]) -> Run:
    begun = time.process_time()
    problem = PROBLEMS[key.problem]()
    with threadpool_limits(1):
        course = run(problem, search_of(problem, key), key.budget * problem.steps, key.seed, key.workers)
    values = {}
    for budget in (budget for budget in after if budget <= key.budget):
        value = course.after(budget * problem.steps)
        assert value is not None
        values[budget] = problem.regret(value)
    if key.entry == "looks":
        values = {budget: values[key.budget] if budget == key.budget else np.nan for budget in after}
    return Run(key, values, time.process_time() - begun)


def _read(out: str) -> Iterator[Run]:
    if not out or not Path(out).exists():
        return
    with Path(out).open(newline="") as file:
        for problem, entry, seed, workers, budget, seconds, *values in csv.reader(file):
            pairs = (pair.split("=") for pair in values)
            key = Key(problem, entry, int(seed), int(workers), int(budget))
            yield Run(key, {int(at): float(value) for at, value in pairs}, float(seconds))


def _kept(ended: Iterator[Run], out: str) -> Iterator[Run]:
    for done in ended:
        if out:
            with Path(out).open("a", newline="") as file:
                pairs = [f"{at}={value:.6g}" for at, value in done.values.items()]
                csv.writer(file).writerow([*done.key, f"{done.seconds:.2f}", *pairs])
        yield done


if __name__ == "__main__":
    command(figures)
