"""`auto` as an optimiser of CARP-S, beside CARP-S's own, on those tasks of its subsets that need no downloads.

CARP-S (Benjamins et al., "carps: a framework for comparing n hyperparameter optimizers on m benchmarks", 2025) has two
subsets of 20 blackbox tasks, `dev` and `test`. Twelve of the forty are functions of BBOB; the others need tables or
surrogate models that are downloaded. CARP-S sets the number of trials, builds each optimiser from its own
configuration and calls it. It is heavy, so it has an environment of its own:

    pip install -e . carps==1.1.0 ioh optuna nevergrad

A score is CARP-S's own: the cost of the incumbent at the end, normalised by task to the range of all costs that all
kept runs have seen there (`trial_value__cost_inc_norm`), and the same of log(cost - least + 1e-10)
(`trial_value__cost_inc_log_norm`); an optimiser's rank on a task is that of its final cost in the mean over the seeds.
Intervals (95 %) are from a bootstrap over the tasks. SMAC takes 50 s of processor time for a run in two dimensions and
more in others, so it is run only if it is named (`--optimizers`, with the package smac). With `--out FILE.csv` runs are
kept, and the same command goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import csv
import io
import logging
import tempfile
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata, wilcoxon

import raybo
from benchmarks.figures import Figure, Figures, command, missing
from raybo.common.threads import limit_threads
from raybo.space import Array

QUICK = {"seeds": 1, "optimizers": "auto,RandomSearch", "tasks": "dev_2_12_0,dev_4_6_1"}
IN_BRIEF = {"seeds": 1}
TASKS = (  # subset, dimension, function, instance
    "dev_2_12_0,dev_2_12_1,dev_2_20_0,dev_4_6_1,"
    "test_2_6_1,test_2_9_0,test_2_12_2,test_8_22_0,test_16_1_1,test_16_11_0,test_32_9_0,test_32_11_0"
)
CONFIGURATIONS = {  # by CARP-S's name of the optimiser; ours has no file there
    "auto": "randomsearch=config",
    "RandomSearch": "randomsearch=config",
    "Optuna-TPE": "optuna=SO_TPE",
    "Nevergrad-CMA-ES": "nevergrad=cmaes",
    "SMAC3-BlackBoxFacade": "smac20=blackbox",
}
DEAR = "SMAC3-BlackBoxFacade"  # run only if it is asked for
USUAL = tuple(name for name in CONFIGURATIONS if name != DEAR)
DRAWS = 10_000


@dataclass(frozen=True)
class Run:
    """One optimiser on one task: its costs, all of them finite and to be minimised.

    Attributes:
        final: the least cost.
        worst: the highest, which CARP-S's normalisation needs.
        milliseconds: of processor time, per trial.
    """

    task: str
    optimizer: str
    seed: int
    trials: int
    final: float
    worst: float
    milliseconds: float


def run(task: str, name: str, seed: int) -> Run:
    """Have CARP-S run one optimiser on one task."""
    from carps.utils.running import make_optimizer
    from hydra import compose, initialize_config_module
    from hydra.utils import instantiate

    subset, function = task.split("_", 1)
    costs: list[float] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(limit_threads(1))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of what it and SMAC use
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(initialize_config_module("carps.configs", version_base=None))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        overrides = [f"+task/subselection/blackbox/{subset}=subset_bbob_{function}", f"seed={seed}", f"outdir={folder}"]
        cfg = compose("base", overrides=[*overrides, f"+optimizer/{CONFIGURATIONS[name]}"])
        one = instantiate(cfg.task)
        evaluate = one.objective_function.evaluate

        def noted(trial_info: Any) -> Any:
            value = evaluate(trial_info)
            costs.append(float(value.cost))
            return value

        one.objective_function.evaluate = noted
        optimizer = adapter()(one, seed) if name == "auto" else make_optimizer(cfg, one)
        logging.getLogger("smac").setLevel(logging.ERROR)
        begun = time.process_time()
        optimizer.run()
        seconds = time.process_time() - begun
    assert len(costs) == cfg.task.optimization_resources.n_trials
    return Run(task, name, seed, len(costs), min(costs), max(costs), 1000 * seconds / len(costs))


def adapter() -> Any:
    """The class that CARP-S calls for a proposal of `auto`, as it asks optimisers of others to be written."""
    from carps.optimizers.optimizer import Optimizer
    from carps.utils.trials import TrialInfo, TrialValue
    from ConfigSpace import Configuration

    class Raybo(Optimizer):  # type: ignore[misc]
        """`auto` through a `raybo.Searcher`."""

        def __init__(self, task: Any, seed: int) -> None:
            super().__init__(task)
            self.seed = seed
            self.configspace = task.objective_function.configspace
            self.asked: Any = None

        def convert_configspace(self, configspace: Any) -> raybo.Space:
            """The space, whose parameters are numbers."""
            return raybo.Space({hp.name: raybo.Float(hp.lower, hp.upper, log=hp.log) for hp in configspace.values()})

        def _setup_optimizer(self) -> raybo.Searcher:
            space, trials = self.convert_configspace(self.configspace), self.task.optimization_resources.n_trials
            return raybo.Searcher(space, "auto", mode="min", seed=self.seed, trials=trials)

        def convert_to_trial(self, config: dict[str, Any]) -> Any:
            return TrialInfo(config=Configuration(self.configspace, values=config))

        def ask(self) -> Any:
            self.asked = self.solver.ask()
            return self.convert_to_trial(self.asked.config)

        def tell(self, trial_info: Any, trial_value: Any) -> None:
            self.solver.tell(self.asked, float(trial_value.cost))

        def get_current_incumbent(self) -> Any:
            best = self.solver.best
            return self.convert_to_trial(best.config), TrialValue(cost=best.value)

    return Raybo


@dataclass(frozen=True)
class Scores:
    """Optimisers on the tasks that all of them were run on.

    Attributes:
        tasks: how many.
        linear: CARP-S's normalised cost, by optimiser and task, in the mean over the seeds.
        logarithmic: the same of the logarithm.
        ranks: by optimiser and task, 1 the best.
        milliseconds: per trial, the median run.
    """

    tasks: int
    linear: dict[str, Array]
    logarithmic: dict[str, Array]
    ranks: dict[str, Array]
    milliseconds: dict[str, float]


def scores(runs: Iterable[Run], names: Sequence[str]) -> Scores:
    """Return the scores of some optimisers, by the seeds that all of them have; a task's range is that of all runs."""
    by_task: dict[str, list[Run]] = {}
    for each in runs:
        by_task.setdefault(each.task, []).append(each)
    linear, logarithmic, ranks, times = ({name: list[float]() for name in names} for _ in range(4))
    tasks = 0
    for mine in by_task.values():
        found = {name: {each.seed: each for each in mine if each.optimizer == name} for name in names}
        seeds = sorted(set.intersection(*(set(of) for of in found.values())))
        if not seeds:
            continue
        tasks += 1
        low, high = min(each.final for each in mine), max(each.worst for each in mine)
        bottom, top = np.log(1e-10), np.log(high - low + 1e-10)
        for name, of in found.items():
            above = np.array([of[seed].final - low for seed in seeds])
            linear[name].append(float(np.mean(above)) / (high - low + 1e-8))
            logarithmic[name].append(float(np.mean(np.log(above + 1e-10) - bottom)) / (top - bottom + 1e-8))
            times[name] += [of[seed].milliseconds for seed in seeds]
        for name, rank in zip(names, rankdata([linear[name][-1] for name in names]), strict=True):
            ranks[name].append(float(rank))
    return Scores(
        tasks,
        {name: np.array(values) for name, values in linear.items()},
        {name: np.array(values) for name, values in logarithmic.items()},
        {name: np.array(values) for name, values in ranks.items()},
        {name: float(np.median(values)) for name, values in times.items()},
    )


def interval(values: Array, digits: int = 2) -> str:
    """The mean over the tasks, with its interval."""
    rng = np.random.default_rng(0)
    drawn = values[rng.integers(len(values), size=(DRAWS, len(values)))].mean(axis=1)
    mean, low, high = (
        f"{round(float(x), digits) + 0.0:.{digits}f}" for x in (values.mean(), *np.quantile(drawn, [0.025, 0.975]))
    )
    return f"{mean} ({low} to {high})"


def level(found: Scores, name: str) -> str:
    """An optimiser's row: normalised cost, that of the logarithm, rank, milliseconds."""
    cells = [interval(found.linear[name], 4), interval(found.logarithmic[name]), interval(found.ranks[name])]
    took = found.milliseconds[name]
    return f"{' | '.join(cells)} | {took:.{0 if took >= 1 else 1}f}"


def beside(found: Scores, rival: str) -> str:
    """`auto` less another in the normalised logarithm, the tasks won and lost, and Wilcoxon's p over the tasks."""
    less = found.logarithmic["auto"] - found.logarithmic[rival]
    p = float(wilcoxon(less[less != 0.0]).pvalue) if less.any() else 1.0
    return f"{interval(less)} | {(less < 0).sum()} and {(less > 0).sum()} (p {p:.2g})"


def kept(out: Path) -> list[Run]:
    """Return the runs of a file."""
    if not out.is_file():
        return []
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        Run(
            row["task"],
            row["optimizer"],
            int(row["seed"]),
            int(row["trials"]),
            *(float(row[key]) for key in ("final", "worst", "milliseconds")),
        )
        for row in rows
    ]


def figures(
    seeds: int = 3, first: int = 1, optimizers: str = ",".join(USUAL), tasks: str = TASKS, out: str = ""
) -> Figures:
    """Run what is not kept, and yield each optimiser's scores, and `auto` beside each."""
    try:
        import carps  # noqa: F401
        import ioh  # noqa: F401
    except ImportError as error:
        yield missing("optimisers of CARP-S", str(error.name))
        return
    path, names = Path(out), optimizers.split(",")
    runs = kept(path) if out else []
    known = {(each.task, each.optimizer, each.seed) for each in runs}
    for seed in range(first, first + seeds):
        for task in tasks.split(","):
            for name in names:
                if (task, name, seed) not in known:
                    runs.append(run(task, name, seed))
                    if out:
                        keep(path, runs[-1])
    found = scores(runs, names)
    for name in names:
        what = f"{name} on {found.tasks} tasks: normalised cost, of its logarithm, rank of {len(names)}, ms"
        yield Figure(what, level(found, name))
    for name in names if "auto" in names else ():
        if name != "auto":
            what = f"auto less {name}, {found.tasks} tasks: normalised logarithm, tasks won and lost"
            yield Figure(what, beside(found, name))


def keep(out: Path, one: Run) -> None:
    """Add a run to a file."""
    new = not out.is_file()
    with out.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow([field.name for field in fields(Run)])
        writer.writerow([getattr(one, field.name) for field in fields(Run)])


if __name__ == "__main__":
    command(figures)
