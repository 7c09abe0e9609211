"""Studies of hundreds and thousands of trials: regret of `auto` beside exact `auto`, turbo, Sobol, random.

Six functions of 6 to 20 axes, two of them with noise, whose optimum lies elsewhere for every seed. `exact` is `auto`
with one Gaussian process of all observations, however many; it is run as far as that can be done. Twenty workers:
every ask is followed by the result of the trial asked for twenty asks before. Regret is that of the best trial so far,
without its noise. Runs are paired by seed. A run's regrets are appended to `--out`, and what is there is not run again.

Problems with several metrics or constraints are run where they are named (`--problems vehicle_safety,gardner1`). There
regret is the hypervolume that is missing, or how far the best feasible value is from the best known.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, at_most, command
from benchmarks.searches import Array, unit_space
from raybo.common.threads import limit_threads
from raybo.methods.parts import local_models
from raybo.record.goals import Goals
from raybo.record.pareto import hypervolume
from trials.constrained import CONSTRAINED
from trials.several_goals import FRONTS
from trials.synthetic import PROBLEMS as KNOWN

QUICK = {"problems": "levy10,ellipsoid20", "sizes": "500", "seeds": 1, "exact": 0}
IN_BRIEF = {"seeds": 1, "sizes": "500"}
WORKERS = 20
EXACT = "exact"


@dataclass(frozen=True)
class Problem:
    """A function of d numbers of [0, 1] to be minimised, 0 at its optimum, and the noise on its values."""

    d: int
    value: Callable[[Array], float]
    noise: float = 0.0

    def at(self, x: Array, shift: Array) -> float:  # (d,), (d,)
        """The value without noise, the optimum moved by a shift of at most a fifth of the cube."""
        return self.value(x - shift)


def _levy(x: Array) -> float:
    w = 1.0 + 5.0 * (x - 0.5)
    inner = (w[:-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(math.pi * w[:-1] + 1.0) ** 2)
    return float(
        math.sin(math.pi * w[0]) ** 2 + inner.sum() + (w[-1] - 1.0) ** 2 * (1.0 + math.sin(2.0 * math.pi * w[-1]) ** 2)
    )


def _ackley(x: Array) -> float:
    z = 20.0 * (x - 0.5)
    return float(
        20.0 + math.e - 20.0 * math.exp(-0.2 * math.sqrt(np.mean(z**2))) - math.exp(np.mean(np.cos(2.0 * math.pi * z)))
    )


def _rosenbrock(x: Array) -> float:
    z = 1.0 + 4.0 * (x - 0.5)
    return float((100.0 * (z[1:] - z[:-1] ** 2) ** 2 + (1.0 - z[:-1]) ** 2).sum())


def _ellipsoid(x: Array) -> float:
    scales = np.logspace(0.0, 2.0, len(x))
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((len(x), len(x))))[0]
    return float((scales * (rotation @ (x - 0.5)) ** 2).sum())


def _hartmann(x: Array) -> float:
    known = KNOWN["hartmann6"]
    config = dict(zip(known.objective.space.names, np.clip(x, 0.0, 1.0).tolist(), strict=True))
    result = known.objective(config)
    value = result[known.objective.metric] if isinstance(result, dict) else result
    return abs(float(value) - known.optimum)


PROBLEMS = {
    "hartmann6": Problem(6, _hartmann),
    "rosenbrock8": Problem(8, _rosenbrock),
    "levy10": Problem(10, _levy, noise=0.5),
    "levy12": Problem(12, _levy),
    "ackley15": Problem(15, _ackley, noise=0.2),
    "ellipsoid20": Problem(20, _ellipsoid),
}


@dataclass(frozen=True)
class Run:
    """A study, what gives a trial its result, and the regret so far."""

    searcher: raybo.Searcher
    tell: Callable[[raybo.Trial], None]
    regret: Callable[[], float]


@contextmanager
def only_exact(method: str) -> Iterator[str]:
    """The method to make, and for `exact` no history that counts as large."""
    kept = local_models.LARGE
    local_models.LARGE = 10**9 if method == EXACT else kept
    try:
        yield "auto" if method == EXACT else method
    finally:
        local_models.LARGE = kept


def with_goals(name: str, method: str, seed: int, trials: int) -> Run:
    """A study of a problem with several metrics or constraints."""
    if name in FRONTS:
        front = FRONTS[name]
        metrics = dict.fromkeys(front.metrics, "min")
        searcher = raybo.Searcher(unit_space(front.d), method, metrics=metrics, seed=seed, trials=trials)
        goals = Goals.of(metrics)
        at = goals.maximised(dict(zip(front.metrics, front.reference, strict=True)))
        found: list[Array] = []

        def tell(trial: raybo.Trial) -> None:
            values = front.function(np.array(list(trial.config.values())))
            searcher.tell(trial, dict(zip(front.metrics, values.tolist(), strict=True)))
            found.append(-values)

        return Run(searcher, tell, lambda: front.best - hypervolume(np.array(found), at))
    problem = CONSTRAINED[name]
    searcher = raybo.Searcher(
        problem.space, method, "min", constraints=problem.rules, metric="value", seed=seed, trials=trials
    )
    feasible = [math.inf]

    def tell_numbers(trial: raybo.Trial) -> None:
        numbers = problem(trial.config)
        if searcher.tell(trial, numbers).feasible:
            feasible.append(numbers["value"])

    return Run(searcher, tell_numbers, lambda: min(feasible) - problem.best)


def of_function(problem: Problem, method: str, seed: int, trials: int) -> Run:
    """A study of a function, moved aside by the seed."""
    rng = np.random.default_rng(seed)
    shift = rng.uniform(-0.2, 0.2, problem.d) if problem.value is not _hartmann else np.zeros(problem.d)
    searcher = raybo.Searcher(unit_space(problem.d), method, "min", seed=seed, trials=trials)
    best = [(math.inf, math.inf)]  # as measured, and as it is

    def tell(trial: raybo.Trial) -> None:
        true = problem.at(np.array(list(trial.config.values())), shift)
        measured = true + problem.noise * float(rng.standard_normal())
        searcher.tell(trial, measured)
        best[0] = min(best[0], (measured, true))

    return Run(searcher, tell, lambda: best[0][1])


def run(problem: str, method: str, seed: int, sizes: list[int]) -> dict[str, list[float]]:
    """Regret after so many results, and the processor seconds of the asks up to then."""
    regrets, spent, seconds = [], [], 0.0
    with limit_threads(1), only_exact(method) as name:
        if problem in PROBLEMS:
            study = of_function(PROBLEMS[problem], name, seed, max(sizes))
        else:
            study = with_goals(problem, name, seed, max(sizes))
        waiting: deque[raybo.Trial] = deque()
        for told in range(1, max(sizes) + 1):
            while len(waiting) < WORKERS:
                begun = time.thread_time()
                waiting.append(study.searcher.ask())
                seconds += time.thread_time() - begun
            study.tell(waiting.popleft())
            if told in sizes:
                regrets.append(study.regret())
                spent.append(seconds)
    return {"regret": regrets, "seconds": spent}


def figures(
    problems: str = ",".join(PROBLEMS),
    methods: str = "auto,exact,turbo,sobol,random",
    sizes: str = "500,1000,3000",
    seeds: int = 3,
    exact: int = 1_000,
    out: str = "",
) -> Figures:
    """For each number of results a figure for each rival: the median over functions and seeds of regret over its."""
    wanted = [int(size) for size in sizes.split(",")]
    known = [json.loads(line) for line in Path(out).read_text().splitlines()] if out and Path(out).exists() else []
    found = {(row["problem"], row["method"], row["seed"]): row for row in known}
    for seed in range(seeds):
        for problem in problems.split(","):
            for method in methods.split(","):
                these = [size for size in wanted if method != EXACT or size <= exact]
                if not these or (problem, method, seed) in found:
                    continue
                row = {"problem": problem, "method": method, "seed": seed, "sizes": these}
                row |= run(problem, method, seed, these)
                found[problem, method, seed] = row
                if out:
                    with Path(out).open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps(row) + "\n")
    for size in wanted:
        for rival in methods.split(",")[1:]:
            ratios = []
            for (problem, method, seed), row in found.items():
                ours = found.get((problem, "auto", seed))
                if method == rival and ours is not None and size in row["sizes"] and size in ours["sizes"]:
                    a, b = (each["regret"][each["sizes"].index(size)] for each in (ours, row))
                    ratios.append((a + 1e-9) / (b + 1e-9))
            if ratios:
                below = sum(ratio <= 1.0 for ratio in ratios)
                what = f"regret of auto over {rival}'s, {size:,} trials, median"
                yield at_most(1.0, float(np.median(ratios)), what, note=f"lower in {below} of {len(ratios)} runs")
    for problem in problems.split(","):
        for method in methods.split(","):
            rows = [row for (name, m, _), row in found.items() if (name, m) == (problem, method)]
            if rows:
                regret = np.median([row["regret"] for row in rows], axis=0)
                told = ", ".join(
                    f"{value:.3g} at {size:,}" for size, value in zip(rows[0]["sizes"], regret, strict=True)
                )
                spent = np.median([row["seconds"][-1] for row in rows])
                yield Figure(f"{problem}, {method}", f"{told} ({spent:.0f} s of a processor, {len(rows)} runs)")


if __name__ == "__main__":
    command(figures)
