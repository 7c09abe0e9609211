"""Measures what weighing cost is worth: `auto` with a budget of time beside the same `auto` without, at equal seconds.

The clock is simulated: one trial after another, each takes the seconds that its problem says, a proposal takes none,
and what would end after the budget is cut off. The budget is 20 times the mean cost of a uniform point.

lcbench    LCBench's accuracy after a whole run, and its own training times
boosting   a loss and seconds as boosting has them, by rounds, depth, rate and subsample; constants drawn by number
equal      LCBench's accuracy, where every trial takes the same
rows       training jobs that are cheaper on fewer rows, as they were measured: see `benchmarks.rows`
stops      the problems of `boosting` and `lcbench`, and when a search of them should end: see `benchmarks.stops`

Regret is 0 at the best that is known and 1 where random search is after 40 trials, and 5 at most. Reported: the mean
regret as a share of that of `auto` without cost, with a 90 % interval over problems, each the mean of its seeds.

The rule was chosen on the problems of `development`; those of `validation` are for judging it. Runs are kept, a row
each, and not made again. Rivals need `pip install flaml smac`; FLAML's CFO is told the cheapest values of what costs.
"""

from __future__ import annotations

import importlib.util
import json
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import raybo
from benchmarks import stops
from benchmarks.budget_problems import Problem, problems_of
from benchmarks.figures import Figure, Figures, command, missing
from benchmarks.rows import figures as rows_figures
from raybo.record.events import Planned, Told
from raybo.searcher import Searcher
from raybo.space import Config

TARGETS = {"lcbench": 0.8, "boosting": 0.8, "equal": 1.05}
RIVALS = {"flaml": "flaml", "smac": "smac"}  # and the packages that they need
QUICK = {"seeds": 1, "kinds": "boosting", "rows": "", "problems": 1}
IN_BRIEF = {"seeds": 1, "kinds": "boosting", "rows": "", "problems": 3}

Row = dict[str, Any]


def figures(
    part: str = "development",
    seeds: int = 2,
    first_seed: int = 0,
    kinds: str = "lcbench,boosting,equal,rows,stops",
    rivals: str = "",
    problems: int = 100,
    rows: str = "budget.jsonl",
) -> Figures:
    """Regret with cost as a share of that without, by kind of problem."""
    path = Path(rows) if rows else None
    kept = [json.loads(line) for line in path.read_text().splitlines()] if path is not None and path.exists() else []
    known = {(row["arm"], row["kind"], row["problem"], row["seed"]): row for row in kept}
    for kind in kinds.split(","):
        if kind == "rows" and part not in ("development", "validation"):
            yield Figure("rows", "no jobs are fresh")
            continue
        if kind == "rows":
            yield from rows_figures(part, seeds, first_seed, problems, path)
            continue
        if kind == "stops":
            yield from _stops(part, range(first_seed, first_seed + seeds), problems, path)
            continue
        if kind != "boosting" and importlib.util.find_spec("onnxruntime") is None:
            yield missing(kind, "onnxruntime")
            continue
        for arm in ["cost", *filter(None, rivals.split(","))]:
            if arm in RIVALS and importlib.util.find_spec(RIVALS[arm]) is None:
                yield missing(f"{kind}: {arm}", RIVALS[arm])
                continue
            pairs: dict[str, list[list[float]]] = {}
            for problem in list(problems_of(kind, part))[:problems]:
                for seed in range(first_seed, first_seed + seeds):
                    pair = []
                    for name in (arm, "plain"):
                        key = name, kind, problem.name, seed
                        if key not in known:
                            known[key] = made = run_of(name, problem, seed)
                            if path is not None:
                                with path.open("a") as file:
                                    file.write(json.dumps(made) + "\n")
                        pair.append(known[key]["regret"])
                    pairs.setdefault(problem.name, []).append(pair)
            yield _share(kind, arm, np.array([np.mean(each, axis=0) for each in pairs.values()]), seeds)


def _stops(part: str, seeds: range, problems: int, path: Path | None) -> Figures:
    """When a search should end, on the problems whose trials differ in cost."""
    for kind in ("boosting", "lcbench"):
        if kind == "lcbench" and importlib.util.find_spec("onnxruntime") is None:
            yield missing(f"{kind}: stops", "onnxruntime")
            continue
        yield from stops.figures(kind, list(problems_of(kind, part))[:problems], seeds, path)


def _share(kind: str, arm: str, means: np.ndarray, seeds: int) -> Figure:
    """The mean regret as a share of that without cost, and its interval over problems."""
    drawn = means[np.random.default_rng(0).integers(len(means), size=(4_000, len(means)))].mean(axis=1)
    low, high = np.quantile(drawn[:, 0] / np.maximum(drawn[:, 1], 1e-9), (0.05, 0.95))
    mean, plain = means.mean(axis=0)
    share = float(mean / max(plain, 1e-9))
    target = TARGETS[kind] if arm == "cost" else None
    return Figure(
        f"{kind}: regret of {'auto with cost' if arm == 'cost' else arm}, as a share of auto without",
        f"{share:.2f} ({low:.2f} to {high:.2f}; {mean:.3f} and {plain:.3f}, {seeds * len(means)} pairs)",
        "" if target is None else f"at most {target:g}",
        None if target is None else share <= target,
    )


def run_of(arm: str, problem: Problem, seed: int) -> Row:
    """Run one search until the budget is used."""
    start = zlib.crc32(repr((problem.kind, problem.name, seed)).encode())
    search = {"flaml": _flaml, "smac": _smac}.get(arm, _raybo)(problem, start, arm)
    clock, trials, best = 0.0, 0, -np.inf
    config = next(search)
    while True:
        value, seconds = problem.of(config)
        clock += seconds
        if clock > problem.budget:
            break
        trials, best = trials + 1, max(best, value)
        config = search.send((value, seconds, clock))
    regret = float(np.clip((problem.best - best) / (problem.best - problem.chance), 0.0, 5.0))
    row = {"arm": arm, "kind": problem.kind, "problem": problem.name, "seed": seed}
    return {**row, "regret": round(regret, 4), "trials": trials}


Search: TypeAlias = Generator[Config, tuple[float, float, float], None]  # given value, seconds, and the clock


def _raybo(problem: Problem, seed: int, arm: str) -> Search:
    searcher = Searcher(problem.space, mode="max", seed=seed)
    clock = None
    if arm == "cost":
        searcher.apply(Planned(budget=problem.budget))
        clock = 0.0
    while True:
        asked = searcher.apply(searcher.propose(searcher.history, spent=clock))
        value, seconds, now = yield searcher.trials[asked.trial].config
        clock = now if arm == "cost" else None
        searcher.apply(Told(asked.trial, value=value, seconds=seconds))


def _flaml(problem: Problem, seed: int, arm: str) -> Search:
    """FLAML's CFO, which is told the cost of each trial."""
    from flaml import CFO, tune

    def domain(parameter: Any) -> Any:
        is_whole, is_log = isinstance(parameter, raybo.Integer), parameter.log
        low, high = parameter.low, parameter.high + is_whole
        name = ("lograndint" if is_log else "randint") if is_whole else ("loguniform" if is_log else "uniform")
        return getattr(tune, name)(low, high)

    space = {name: domain(parameter) for name, parameter in problem.space.template.items()}
    search = CFO(
        metric="value",
        mode="max",
        space=space,
        low_cost_partial_config=problem.cheap,
        cost_attr="cost",
        seed=seed % 2**31,
    )
    number = 0
    while True:
        config = search.suggest(str(number))
        if config is None:  # it wants another trial to end first, and none runs
            number += 1
            continue
        value, seconds, _ = yield config
        search.on_trial_complete(
            str(number), {**{f"config/{k}": v for k, v in config.items()}, "value": value, "cost": seconds}
        )
        number += 1


def _smac(problem: Problem, seed: int, arm: str) -> Search:
    """SMAC's facade for hyperparameters, as it comes."""
    import tempfile

    from ConfigSpace import ConfigurationSpace, Float, Integer
    from smac import HyperparameterOptimizationFacade, Scenario
    from smac.runhistory.dataclasses import TrialValue

    space = ConfigurationSpace(seed=seed % 2**31)
    for name, parameter in problem.space.template.items():
        kind = Integer if isinstance(parameter, raybo.Integer) else Float
        space.add(kind(name, (parameter.low, parameter.high), log=parameter.log))
    with tempfile.TemporaryDirectory() as place:
        scenario = Scenario(space, n_trials=10_000, seed=seed % 2**31, deterministic=True, output_directory=Path(place))
        smac = HyperparameterOptimizationFacade(
            scenario,
            lambda config, seed=0: 0.0,
            initial_design=HyperparameterOptimizationFacade.get_initial_design(scenario, n_configs=10),
            logging_level=40,
            overwrite=True,
        )
        while True:
            info = smac.ask()
            value, seconds, _ = yield dict(info.config)
            smac.tell(info, TrialValue(cost=-value, time=seconds))


if __name__ == "__main__":
    command(figures)
