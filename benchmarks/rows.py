"""Searches over training jobs that are cheaper on fewer rows, for `benchmarks.budget`, which says how they are judged.

fidelity   `auto`, told of the rows and of the budget
whole      `auto`, told of the budget, on all rows
asha       `auto` with `asha` on the rows: a trial trains anew at each of them until it is ended
random     random search on all rows

Regret is 0 at the best that any of the runs found, and 1 if it is worse by as much as the median configuration of the
job's table is worse than the best there.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.figures import Figure, Figures
from benchmarks.rows_jobs import KINDS, job
from raybo.record.events import Planned, Pruned, Reported, Told
from raybo.searcher import Searcher
from raybo.space import Config

BUDGET = 20.0  # of the mean seconds of a run on all rows
ARMS = ("fidelity", "asha", "whole", "random")
PARTS = {"development": range(2), "validation": range(100, 103)}  # data sets of each kind of job
TARGETS = {"whole": 1.0, "asha": 1.0}

Row: TypeAlias = dict[str, Any]
Search: TypeAlias = Generator[tuple[Config, int], tuple[float, float, float], None]  # given value, seconds, the clock


def figures(part: str, seeds: int, first_seed: int, problems: int, path: Path | None) -> Figures:
    """Regret of the search that is told of the rows, as a share of the others'."""
    kept = [json.loads(line) for line in path.read_text().splitlines()] if path is not None and path.exists() else []
    known = {(row["arm"], row["kind"], row["problem"], row["seed"]): row for row in kept}
    jobs = [(kind, number) for number in PARTS[part] for kind in KINDS][:problems]
    regrets: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for kind, number in jobs:
        values: dict[str, list[float]] = {arm: [] for arm in ARMS}
        for seed in range(first_seed, first_seed + seeds):
            for arm in ARMS:
                key = arm, f"rows-{kind}", str(number), seed
                if key not in known:
                    known[key] = made = run_of(arm, kind, number, seed)
                    if path is not None:
                        with path.open("a") as file:
                            file.write(json.dumps(made) + "\n")
                values[arm].append(known[key]["value"])
        best, spread = max(map(max, values.values())), job(kind, number).spread
        for arm in ARMS:
            regrets[arm].append((best - float(np.mean(values[arm]))) / spread)
    mine = np.array(regrets["fidelity"])
    for arm in ARMS[1:]:
        pairs = np.column_stack([mine, regrets[arm]])
        drawn = pairs[np.random.default_rng(0).integers(len(pairs), size=(4_000, len(pairs)))].mean(axis=1)
        low, high = np.quantile(drawn[:, 0] / np.maximum(drawn[:, 1], 1e-9), (0.05, 0.95))
        share = float(pairs[:, 0].mean() / max(pairs[:, 1].mean(), 1e-9))
        better = int((pairs[:, 0] < pairs[:, 1]).sum())
        what = {"whole": "auto on all rows", "asha": "auto with asha on rows", "random": "random search"}[arm]
        target = TARGETS.get(arm)
        yield Figure(
            f"rows: regret of auto with a fidelity, as a share of {what}",
            f"{share:.2f} ({low:.2f} to {high:.2f}; better in {better} of {len(pairs)}; {seeds} seeds)",
            "" if target is None else f"below {target:g}",
            None if target is None else share < target,
        )


def run_of(arm: str, kind: str, number: int, seed: int) -> Row:
    """Run one search until the budget is used."""
    it = job(kind, number)
    budget = BUDGET * it.mean_seconds
    start = zlib.crc32(repr((kind, number, seed)).encode())
    search = {"asha": _asha, "fidelity": _fidelity, "whole": _whole, "random": _whole}[arm](kind, start, budget, arm)
    clock, trials, whole, best = 0.0, 0, 0, -np.inf
    config, rows = next(search)
    while True:
        value, seconds = it.result(config, rows)
        clock += seconds
        if clock > budget:
            break
        trials += 1
        if rows == KINDS[kind].rows.high:
            whole, best = whole + 1, max(best, value)
        config, rows = search.send((value, seconds, clock))
    row = {"arm": arm, "kind": f"rows-{kind}", "problem": str(number), "seed": seed}
    return {**row, "value": round(float(best), 6), "trials": trials, "whole": whole}


def _whole(kind: str, seed: int, budget: float, arm: str) -> Search:
    """Search on all rows."""
    searcher = Searcher(KINDS[kind].space, "random" if arm == "random" else "auto", seed=seed)
    searcher.apply(Planned(budget=budget))
    clock = 0.0
    while True:
        asked = searcher.apply(searcher.propose(searcher.history, spent=clock))
        value, seconds, clock = yield searcher.trials[asked.trial].config, KINDS[kind].rows.high
        searcher.apply(Told(asked.trial, value=value, seconds=seconds))


def _fidelity(kind: str, seed: int, budget: float, arm: str) -> Search:
    """Search at any number of rows."""
    searcher = Searcher(KINDS[kind].space, "auto", seed=seed, fidelity={"rows": KINDS[kind].rows})
    searcher.apply(Planned(budget=budget))
    clock = 0.0
    while True:
        asked = searcher.apply(searcher.propose(searcher.history, spent=clock))
        trial = searcher.trials[asked.trial]
        value, seconds, clock = yield trial.config, trial.fidelity["rows"]
        if asked.fidelity is None:
            searcher.apply(Told(asked.trial, value=value, seconds=seconds))
            continue
        searcher.apply(Reported(asked.trial, step=asked.fidelity, value=value, seconds=seconds))
        searcher.apply(Pruned(asked.trial, reason="", rule="job", seconds=seconds))


def _asha(kind: str, seed: int, budget: float, arm: str) -> Search:
    """Search with a scheduler whose steps are rows, in multiples of the fewest."""
    rows, rungs = KINDS[kind].rows, (1, 3, 9, 27)
    searcher = Searcher(
        KINDS[kind].space, "auto", seed=seed, steps=rungs[-1], scheduler="asha", scheduler_options={"eta": 3}
    )
    while True:
        trial = searcher.ask()
        for rung in rungs:
            value, _, _ = yield trial.config, rows.low * rung
            if searcher.report(trial, value, rung).prune:
                searcher.prune(trial)
                break
        else:
            searcher.tell(trial, value)
