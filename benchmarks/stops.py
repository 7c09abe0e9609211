"""When to stop: `--stop-when-not-worth` beside the best fixed stops, for `benchmarks.budget`, which has the problems.

`auto` runs 60 trials without a budget, one after another. What a mean trial is worth is set: the share of the regret of
random search that would pay for it, from 0.003 to 0.1. A search that stops has its regret, and what it has spent until
then at that price; the sum is its cost-adjusted regret, in the mean over problems and seeds. Beside it the best of
all fixed stops, the same for all problems of a kind: after some number of trials, or after some number of seconds in
mean trials. It is chosen with the outcome known, for each price anew.

Xie et al. (2025), "Cost-aware Stopping for Bayesian Optimization", arXiv:2507.12453.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.budget_problems import Problem
from benchmarks.figures import Figure, Figures
from raybo.record.budget import HOUR
from raybo.record.events import Asked, Told
from raybo.record.goals import Goals
from raybo.record.stopping import Limits, Stopping
from raybo.searcher import Searcher

TRIALS = 60
PRICES = (0.003, 0.01, 0.03, 0.1)  # of a mean trial, as a share of the regret of random search
WITHIN = 1.1  # of the best fixed stop's cost-adjusted regret

Row: TypeAlias = dict[str, Any]


def figures(kind: str, problems: Sequence[Problem], seeds: range, path: Path | None) -> Figures:
    """Cost-adjusted regret of the stop as a share of that of the best fixed one, by price."""
    kept = [json.loads(line) for line in path.read_text().splitlines()] if path is not None and path.exists() else []
    known = {(row["arm"], row["kind"], row["problem"], row["seed"]): row for row in kept}
    rows = list[Row]()
    for problem in problems:
        for seed in seeds:
            key = "stop", problem.kind, problem.name, seed
            if key not in known:
                known[key] = made = run_of(problem, seed)
                if path is not None:
                    with path.open("a") as file:
                        file.write(json.dumps(made) + "\n")
            rows.append(known[key])
    for price in PRICES:
        after = np.array([stops_after(row, price) for row in rows])
        sums = np.array([sums_of(row, price) for row in rows])  # (runs, TRIALS), after each trial
        mine = sums[np.arange(len(rows)), after - 1]
        best = min(fixed_stops(rows, sums), key=lambda each: float(each.mean()))
        means = np.column_stack([mine, best]).reshape(len(problems), len(seeds), 2).mean(axis=1)
        drawn = means[np.random.default_rng(0).integers(len(means), size=(4_000, len(means)))].mean(axis=1)
        low, high = np.quantile(drawn[:, 0] / drawn[:, 1], (0.05, 0.95))
        share = float(mine.mean() / best.mean())
        yield Figure(
            f"{kind}: cost-adjusted regret of the stop, as a share of the best fixed one, if a trial costs {price:g}",
            f"{share:.2f} ({low:.2f} to {high:.2f}; {mine.mean():.3f} and {best.mean():.3f}; after "
            f"{after.mean():.0f} trials; {len(rows)} runs)",
            f"at most {WITHIN:g}",
            share <= WITHIN,
        )


def run_of(problem: Problem, seed: int) -> Row:
    """Run one search; of each trial its regret, value, cost in mean trials, and what was expected of it."""
    start = zlib.crc32(repr((problem.kind, problem.name, seed)).encode())
    searcher = Searcher(problem.space, mode="max", seed=start)
    regrets, costs, values = list[float](), list[float](), list[float]()
    gains, takes = list[float | None](), list[float | None]()
    scale, best = problem.best - problem.chance, -np.inf
    for _ in range(TRIALS):
        asked = searcher.apply(searcher.propose(searcher.history, with_gain=True))
        value, seconds = problem.of(searcher.trials[asked.trial].config)
        searcher.apply(Told(asked.trial, value=value, seconds=seconds))
        best = max(best, value)
        values.append(value / scale)
        regrets.append(round(float(np.clip((problem.best - best) / scale, 0.0, 5.0)), 5))
        costs.append(round(seconds / problem.mean_seconds, 5))
        gains.append(None if asked.gain is None else asked.gain / scale)
        takes.append(None if asked.takes is None else asked.takes / problem.mean_seconds)
    row = {"arm": "stop", "kind": problem.kind, "problem": problem.name, "seed": seed}
    found: dict[str, Sequence[float | None]] = {"gains": gains, "takes": takes, "values": values}
    rounded = {name: [x if x is None else float(f"{x:.5g}") for x in each] for name, each in found.items()}
    return {**row, "regrets": regrets, "costs": costs, **rounded}


def stops_after(row: Row, price: float) -> int:
    """Return after how many trials a search stops if a mean trial costs this: here an hour."""
    stopping = Stopping(Limits(stop_when_not_worth=price), Goals())
    for number, (gain, takes) in enumerate(zip(row["gains"], row["takes"], strict=True)):
        hours = None if takes is None else takes * HOUR
        stopping.hear(Asked(number, x=[0.0], values=[0.0], tags={}, gain=gain, takes=hours))
        if stopping.reason:
            return max(1, number)  # the last proposal does not run
        stopping.hear(Told(number, value=row["values"][number], seconds=row["costs"][number] * HOUR))
    return TRIALS


def sums_of(row: Row, price: float) -> np.ndarray:  # (TRIALS,)
    """Return regret and what was spent, after each trial."""
    return np.array(row["regrets"]) + price * np.cumsum(row["costs"])


def fixed_stops(rows: Sequence[Row], sums: np.ndarray) -> list[np.ndarray]:  # (runs,) each
    """Return what each run comes to by each fixed stop."""
    found = [sums[:, k] for k in range(TRIALS)]
    spent = np.cumsum([row["costs"] for row in rows], axis=1)
    for limit in np.arange(1.0, TRIALS + 1.0):
        last = np.clip((spent <= limit).sum(axis=1) - 1, 0, TRIALS - 1)
        found.append(sums[np.arange(len(rows)), last])
    return found
