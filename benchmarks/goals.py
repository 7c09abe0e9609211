"""Several metrics, and constraints: raybo beside Optuna's samplers and BoTorch, after equal evaluations.

Fronts: the gap between the hypervolume found and the best known front's after `--trials` evaluations. Constraints: the
gap between the best feasible value and the best known after 40 and 80 evaluations; where nothing is feasible it is
infinite. Medians over the seeds; the target is raybo's `auto` beside the best of the others on the same seeds, and its
time beside BoTorch's. `auto` was made on other problems, but for two things that were chosen on other seeds of these:
see docs/goals.md.

Every run is kept in a CSV file (`--results`), so that the command can be stopped and goes on; what others need is only
measured where they are installed: pip install 'raybo[benchmarks]'.
"""

from __future__ import annotations

import csv
import importlib.util
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, at_most, command
from benchmarks.goal_rivals import RIVALS, searcher
from raybo.common.threads import limit_threads
from raybo.record.goals import Goals
from raybo.record.pareto import hypervolume
from trials.constrained import CONSTRAINED
from trials.fast_boosting import fast_boosting
from trials.several_goals import FRONTS

QUICK = {"seeds": 1, "trials": 15, "problems": "zdt1,gramacy", "methods": "auto,random", "results": ""}
IN_BRIEF = {"seeds": 1, "methods": "auto,Optuna TPE,NSGA-II", "results": ""}
RESULTS = Path(__file__).with_name("goals.csv")
CHECKED = (40, 80)  # evaluations of a constrained problem
JOB = "fast_boosting"
WORST = {"accuracy": 0.9, "milliseconds": 1.0}  # of the job: what volume is counted above
BEST = 0.06185267  # volume of its best known front: that of all runs made for the docs, on their machine
HEAD = ("problem", "method", "seed", "trials", "score", "seconds")


@dataclass(frozen=True)
class Run:
    """One study: which problem, by what, and the seed."""

    problem: str
    method: str
    seed: int
    trials: int


def figures(
    seeds: int = 10,
    first: int = 0,
    trials: int = 60,
    problems: str = ",".join([*FRONTS, JOB, *CONSTRAINED]),
    methods: str = ",".join(["auto", "ei", "gp-ucb", "random", *RIVALS]),
    results: str = str(RESULTS),
) -> Figures:
    """Run what has not been run, on seeds from the first, and compare."""
    known = _read(Path(results)) if results else {}
    for seed in range(first, first + seeds):
        for run in _runs(problems.split(","), methods.split(","), seed, trials):
            if run in known or not _is_installed(run.method):
                continue
            begun = time.process_time()
            with limit_threads(1):
                scores = _scores(run)
            seconds = time.process_time() - begun
            for n, score in scores.items():
                known[Run(run.problem, run.method, run.seed, n)] = score, seconds
                if results:
                    _append(Path(results), run, n, score, seconds)
    yield from _compared(known, range(first, first + seeds), trials, problems.split(","), methods.split(","))


def _runs(problems: list[str], methods: list[str], seed: int, trials: int) -> Iterator[Run]:
    for problem in problems:
        n = CHECKED[-1] if problem in CONSTRAINED else trials
        for method in methods:
            if method != "NSGA-II" if problem in CONSTRAINED else (problem, method) != (JOB, "BoTorch"):
                yield Run(problem, method, seed, n)


def _is_installed(method: str) -> bool:
    return method not in RIVALS or importlib.util.find_spec(RIVALS[method]) is not None


def _scores(run: Run) -> dict[int, float]:
    """The gaps of a run, by how many evaluations."""
    if run.problem in FRONTS:
        front = FRONTS[run.problem]
        goals = Goals.of(dict.fromkeys(front.metrics, "min"))
        space = raybo.Space({f"x{i + 1}": raybo.Float(0.0, 1.0) for i in range(front.d)})

        def evaluate(config: dict[str, Any]) -> dict[str, float]:
            return dict(zip(front.metrics, front.function(np.array(list(config.values()))).tolist(), strict=True))

        Y = np.array([goals.maximised(told) for told in _told(run, space, goals, front.reference, evaluate)])
        at = goals.maximised(dict(zip(front.metrics, front.reference, strict=True)))
        return {run.trials: front.best - hypervolume(Y, at)}
    if run.problem == JOB:
        goals = fast_boosting.goals
        found = _told(run, fast_boosting.space, goals, tuple(WORST.values()), fast_boosting)
        return {
            run.trials: BEST - hypervolume(np.array([goals.maximised(told) for told in found]), goals.maximised(WORST))
        }
    problem = CONSTRAINED[run.problem]
    goals = Goals.of(None, problem.rules, mode="min")
    told = _told(run, raybo.Space(problem.space), goals, (), problem)
    gaps = [one["value"] - problem.best if (goals.margins(one) >= 0.0).all() else math.inf for one in told]
    return {n: min(gaps[:n]) for n in CHECKED}


def _told(
    run: Run, space: raybo.Space, goals: Goals, reference: tuple[float, ...], evaluate: Callable[[Any], Any]
) -> list[dict[str, float]]:
    ask, tell = searcher(run.method, space, goals, reference, run.seed, run.trials)
    found = []
    for _ in range(run.trials):
        found.append(evaluate(ask()))
        tell(found[-1])
    return found


def _compared(
    known: dict[Run, tuple[float, float]], seeds: range, trials: int, problems: list[str], methods: list[str]
) -> Figures:
    for problem in problems:
        for n in CHECKED if problem in CONSTRAINED else (trials,):
            of = {name: _of(known, problem, name, n, seeds) for name in methods}
            of = {name: scores for name, scores in of.items() if scores}
            for name, scores in of.items():
                gaps, times = [score for score, _ in scores.values()], [spent for _, spent in scores.values()]
                yield Figure(
                    f"{problem}, {n} evaluations, {name}: median gap over {len(scores)} seeds",
                    f"{float(np.median(gaps)):.4g}, {float(np.median(times)):.1f} s",
                )
            yield from _beside(of, f"{problem}, {n} evaluations")


def _beside(of: dict[str, dict[int, tuple[float, float]]], what: str) -> Figures:
    """auto's median gap as a share of the least of the rivals', each pair on the seeds that both have run."""
    ratios = {}
    for name in RIVALS:
        shared = sorted(set(of.get("auto", {})) & set(of.get(name, {})))
        if shared:
            ours, theirs = (float(np.median([of[who][seed][0] for seed in shared])) for who in ("auto", name))
            ratios[name] = (1.0 if ours == theirs else ours / theirs if theirs else math.inf), len(shared)
    if ratios:
        worst = max(ratios, key=lambda name: ratios[name][0])
        note = f"{worst}, {ratios[worst][1]} seeds"
        yield at_most(0.8, ratios[worst][0], f"{what}: gap beside the best rival's", note=note)
    shared = sorted(set(of.get("auto", {})) & set(of.get("BoTorch", {})))
    if shared:
        ours, theirs = (sum(of[who][seed][1] for seed in shared) for who in ("auto", "BoTorch"))
        yield at_most(0.1, ours / theirs, f"{what}: time beside BoTorch's")


def _of(
    known: dict[Run, tuple[float, float]], problem: str, method: str, n: int, seeds: range
) -> dict[int, tuple[float, float]]:
    runs = {seed: Run(problem, method, seed, n) for seed in seeds}
    return {seed: known[run] for seed, run in runs.items() if run in known}


def _read(path: Path) -> dict[Run, tuple[float, float]]:
    if not path.exists():
        return {}
    with open(path, newline="") as file:
        return {
            Run(row["problem"], row["method"], int(row["seed"]), int(row["trials"])): (
                float(row["score"]),
                float(row["seconds"]),
            )
            for row in csv.DictReader(file)
        }


def _append(path: Path, run: Run, n: int, score: float, seconds: float) -> None:
    is_new = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(HEAD)
        writer.writerow([run.problem, run.method, run.seed, n, repr(float(score)), f"{seconds:.2f}"])


if __name__ == "__main__":
    command(figures)
