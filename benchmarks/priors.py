"""Measure the worth of earlier studies: searches with and without priors, one data set left out at a time.

Tasks are those of LCBench, or small jobs of `rows_jobs` (boosting, forests, support vector machines), whose priors are
studies of the same kind of job. Priors are studies of 40 trials:

like        of other tasks, by `auto`; of those of all parts, if more are wanted than the part has
random      the same by random search
pruned      the same by `auto` under `asha`, which prunes most of them
half-known  the same over every other parameter, with the others held in the middle
but-one     the same over all parameters but one
misleading  the same with all values turned round
same        of the task itself, with another seed
entered     that study entered as known results, as `--from` does
curve       like ones, for searches under `curve`, whose trials are the steps of so many whole runs

Regret is 0 at the best that is known and 1 where random search is after 40 trials, and 5 at most. Reported: the mean
regret as a share of that without priors, with a 90 % interval over tasks, each the mean of its seeds. The design is
that of the seed and the task, with and without priors. Runs are kept, a row each, and not made again.

The rule was chosen on the tasks of `development` and `validation`; those of `fresh` and `small` are for judging it.
Rows by an earlier rule (`prior_points.RULE`) are kept in files of their own.
"""

from __future__ import annotations

import importlib.util
import json
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import lcbench, rows_jobs
from benchmarks.early_runs import Problem, RayboSearch
from benchmarks.early_runs import run as run_in_steps
from benchmarks.figures import Figure, Figures, command, missing
from raybo.record.events import Event, Reported, Told
from raybo.searcher import Searcher
from raybo.space import Config, Space
from raybo.study.study import Study

OLD_TRIALS = 40
PARTS = {
    "development": lcbench.INSTANCES,
    "validation": lcbench.OTHERS,
    "fresh": lcbench.LEFT,
    "small": tuple(f"{kind} {number}" for kind in rows_jobs.KINDS for number in rows_jobs.NUMBERS),
}
ARMS = "like:1,like:3,like:9,misleading:1,misleading:3,same:1,entered:1,random:3,pruned:3,half-known:3"
TARGETS = {  # of the share after so many trials
    "like:9": {5: 0.35, 10: 0.45, 40: 1.0},
    "like:3": {5: 0.7, 10: 0.8, 40: 1.0},
    "like:1": {5: 1.0, 10: 1.0, 20: 1.0, 40: 1.0},
    "misleading:1": {10: 1.1, 20: 1.05, 40: 1.0},
    "misleading:3": {10: 1.1, 20: 1.05, 40: 1.0},
}
QUICK = {"seeds": 1, "arms": "like:3", "budgets": "5,8", "rows": ""}
IN_BRIEF = {"seeds": 2, "arms": "like:3,misleading:3", "budgets": "5,10", "rows": ""}

Row = dict[str, Any]


def figures(
    part: str = "development",
    seeds: int = 5,
    first_seed: int = 0,
    arms: str = ARMS,
    budgets: str = "5,10,20,40",
    rows: str = "priors.jsonl",
) -> Figures:
    """Regret with priors as a share of that without, by kind and number of priors."""
    if importlib.util.find_spec("onnxruntime") is None:
        yield missing("LCBench", "onnxruntime")
        return
    after = [int(budget) for budget in budgets.split(",")]
    path = Path(rows) if rows else None
    kept = [json.loads(line) for line in path.read_text().splitlines()] if path is not None and path.exists() else []
    known = {_key(row): row for row in kept if len(row["regret"]) >= max(after)}
    for arm in arms.split(","):
        shares = []
        for task in PARTS[part]:
            for seed in range(first_seed, first_seed + seeds):
                pair = []
                for name in (arm, "curve:0" if arm.startswith("curve") else "none:0"):
                    if (name, task, seed) not in known:
                        known[name, task, seed] = made = run_of(name, task, seed, PARTS[part], max(after))
                        if path is not None:
                            with path.open("a") as file:
                                file.write(json.dumps(made) + "\n")
                    pair.append(known[name, task, seed]["regret"][: max(after)])
                shares.append((task, np.array(pair)))
        for budget in after:
            yield share_of(arm, budget, [(task, pair[:, budget - 1]) for task, pair in shares])


def _key(row: Row) -> tuple[str, str, int]:
    return row["arm"], row["task"], row["seed"]


def share_of(arm: str, budget: int, pairs: Sequence[tuple[str, NDArray[np.float64]]]) -> Figure:
    """The mean regret with priors as a share of that without, and its interval over tasks."""
    tasks = list(dict.fromkeys(task for task, _ in pairs))
    means = np.array([np.mean([pair for each, pair in pairs if each == task], axis=0) for task in tasks])
    drawn = means[np.random.default_rng(0).integers(len(tasks), size=(4_000, len(tasks)))].mean(axis=1)
    low, high = np.quantile(drawn[:, 0] / np.maximum(drawn[:, 1], 1e-9), (0.05, 0.95))
    mean, without = means.mean(axis=0)
    share = float(mean / max(without, 1e-9))
    kind, count = arm.split(":")
    target = TARGETS.get(arm, {}).get(budget)
    return Figure(
        f"regret after {budget}, {count} {kind}, as a share of that without",
        f"{share:.2f} ({low:.2f} to {high:.2f}; {mean:.2f} and {without:.2f}, {len(pairs)} pairs)",
        "" if target is None else f"at most {target:g}",
        None if target is None else share <= target,
    )


def run_of(arm: str, task: str, seed: int, tasks: Sequence[str], trials: int) -> Row:
    """Run one search, with the priors of an arm."""
    kind, count = arm.split(":")
    it, own = problem(task), ("same", "entered")
    pool = tasks if int(count) < len(tasks) else tuple(lcbench.REFERENCES)  # more than there are in the part
    others = [task] if kind in own else [each for each in pool if each != task and problem(each).space is it.space]
    order = np.random.default_rng(seed_of("order", task, seed)).permutation(len(others))[: int(count)]
    made = "like" if kind in (*own, "curve") else kind
    priors = [old_study(made, others[i], 100 + seed % 2) for i in order]
    start = seed_of("new", task, seed)
    if kind == "curve":
        search = RayboSearch(it, start, "auto", "curve", prior=priors)
        course = run_in_steps(it, search, trials * it.steps, start)
        values = [course.after(it.steps * (k + 1)) or -np.inf for k in range(trials)]
    else:
        given = () if kind == "entered" else priors
        searcher = Searcher(it.space, mode="max", seed=start, trials=trials, prior=given)
        if kind == "entered":
            for trial in priors[0].trials:
                assert trial.value is not None
                searcher.add(trial.config, trial.value)
        told = searched(searcher, lambda config: it.curve(config)[-1], trials)[1::2]
        values = np.maximum.accumulate([event.value for event in told]).tolist()
    regret = np.clip([it.regret(value) for value in values], 0.0, 5.0)
    return {"arm": arm, "task": task, "seed": seed, "regret": np.round(regret, 4).tolist()}


@lru_cache(maxsize=64)
def problem(task: str) -> Problem:
    """Return a task of LCBench, or a small job on one of its data sets."""
    if task in lcbench.REFERENCES:
        best, chance = lcbench.REFERENCES[task]
        return Problem(task, lcbench.space, lcbench.EPOCHS, lambda config: _curve(task, config), best, chance)
    kind, number = task.split()
    job = rows_jobs.job(kind, int(number))
    space, rng = job.kind.space, np.random.default_rng(0)
    y = job.values(space.snap(rng.random((20_000, space.d))))
    chance = float(np.mean([rng.choice(y, OLD_TRIALS).max() for _ in range(4_000)]))
    return Problem(task, space, 1, lambda config: [job.result(config, job.kind.rows.high)[0]], float(y.max()), chance)


def _curve(task: str, config: Config) -> list[float]:
    values: list[float] = lcbench.curves(task, [config])[0].tolist()
    return values


def seed_of(*parts: object) -> int:
    """Return a seed that depends on all parts."""
    return zlib.crc32(repr(parts).encode())


def searched(searcher: Searcher, job: Callable[[Config], float], trials: int) -> list[Any]:
    """Run a search; returns its events, `asked` and `told` in turn."""
    events: list[Event] = []
    for _ in range(trials):
        asked = searcher.apply(searcher.propose(searcher.history))
        told = Told(asked.trial, value=job(searcher.trials[asked.trial].config))
        events += [asked, searcher.apply(told)]
    return events


def searched_in_steps(searcher: Searcher, task: str, trials: int) -> list[Event]:
    """Run a search under its scheduler; returns its events."""
    events: list[Event] = []
    for _ in range(trials):
        asked = searcher.apply(searcher.propose(searcher.history))
        events.append(asked)
        curve = _curve(task, searcher.trials[asked.trial].config)
        for step, value in enumerate(curve, 1):
            verdict = searcher.report(asked.trial, value, step)
            events.append(Reported(asked.trial, step=step, value=value, number=searcher.ledger.last_event))
            if verdict.prune:
                searcher.prune(asked.trial)
                ended = searcher.history.records[asked.trial].outcome
                assert ended is not None
                events.append(ended)
                break
        else:
            events.append(searcher.apply(Told(asked.trial, value=curve[-1])))
    return events


@lru_cache(maxsize=256)
def old_study(kind: str, task: str, seed: int) -> Study:
    """Return an earlier study of a task."""
    name = seed_of("old", kind, task, seed)
    if kind == "pruned":
        searcher = Searcher(lcbench.space, mode="max", seed=name, steps=lcbench.EPOCHS, scheduler="asha")
        return Study(searcher.description, searched_in_steps(searcher, task, OLD_TRIALS))
    it = problem(task)
    space, held = it.space, dict[str, Any]()
    if (known := _known(kind, space.names, seed)) is not None:
        middle = space.decode(np.full((1, space.d), 0.5))[0]
        held = {name: middle[name] for name in space.names if name not in known}
        space = Space({name: space.template[name] for name in known})
    sign = -1.0 if kind == "misleading" else 1.0
    method = "random" if kind == "random" else "auto"
    searcher = Searcher(space, method, "max", name, trials=OLD_TRIALS)
    events = searched(searcher, lambda config: sign * it.curve({**config, **held})[-1], OLD_TRIALS)
    return Study(searcher.description, events)


def _known(kind: str, names: Sequence[str], seed: int) -> list[str] | None:
    """Return the parameters that an earlier study varies; None if all."""
    if kind == "half-known":
        return list(names[::2])
    return [name for i, name in enumerate(names) if i != seed % len(names)] if kind == "but-one" else None


if __name__ == "__main__":
    command(figures)
