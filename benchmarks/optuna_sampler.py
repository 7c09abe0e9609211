"""RayboSampler beside Optuna's own samplers, in studies whose spaces Optuna learns only by running them.

Three define-by-run objectives with branches, the shapes of `conditional` that were looked at while `auto` was made, on
other seeds, and three functions without branches. All samplers are as they come; the studies of one seed search the
same objective. Reported is the regret: by how much the best of all trials is worse than the best that there is, the
median and the quartiles over the seeds. RayboSampler's should be no worse than that of TPE, nor than that of GPSampler,
in Wilcoxon's signed-rank test of the pairs (p < 0.05, one-sided). With `--out FILE.csv` studies are kept, and the same
command goes on where it was stopped.
"""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from benchmarks.conditional import BEST, SEEN, Score, suggested
from benchmarks.figures import Figure, Figures, command, missing
from raybo.common.threads import limit_threads
from raybo.space import Array
from trials.synthetic import PROBLEMS

QUICK = {"seeds": 2, "trials": 12, "problems": "nested"}
IN_BRIEF = {"seeds": 2, "problems": "nested,five,hartmann6"}
OURS, RIVALS = "RayboSampler", ("TPESampler", "GPSampler", "RandomSampler")
FUNCTIONS = ("branin", "hartmann6", "rosenbrock")
Objective = Callable[[Any], float]  # of an Optuna trial
Key = tuple[str, str, int]  # problem, sampler, seed


def sampler(name: str, seed: int) -> Any:
    """Return a sampler by its name."""
    import optuna

    from raybo.integrations.optuna import RayboSampler

    return RayboSampler(seed=seed) if name == OURS else getattr(optuna.samplers, name)(seed=seed)


def regret_at(problem: str, seed: int) -> Objective:
    """Return the regret of what an Optuna trial suggests for a problem."""
    if problem in SEEN:
        score = Score(problem, seed)
        return lambda trial: BEST - score(suggested(trial, score.space.template, ()))
    known = PROBLEMS[problem]

    def function(trial: Any) -> float:
        result = known.objective(suggested(trial, known.objective.space.template, ()))
        value = result[known.objective.metric] if isinstance(result, dict) else result
        return float(value - known.optimum if known.mode == "min" else known.optimum - value)

    return function


def regret(problem: str, name: str, seed: int, trials: int) -> float:
    """Return the regret of one study."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with limit_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of experimental features
        study = optuna.create_study(sampler=sampler(name, seed))
        study.optimize(regret_at(problem, seed), n_trials=trials)
    return float(study.best_value)


def kept(out: Path) -> dict[Key, float]:
    """Return the studies of a file."""
    if not out.is_file():
        return {}
    with out.open(encoding="utf-8", newline="") as file:
        return {(row[0], row[1], int(row[2])): float(row[3]) for row in csv.reader(file)}


def figures(
    seeds: int = 10, first: int = 40, trials: int = 50, problems: str = ",".join((*SEEN, *FUNCTIONS)), out: str = ""
) -> Figures:
    """Each problem's regrets, and then RayboSampler beside each rival over all of them."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        yield missing(f"{OURS} beside Optuna's samplers", "optuna")
        return
    runs, found = kept(Path(out)) if out else {}, dict[tuple[str, str], Array]()
    rivals = list(RIVALS)
    for seed in range(first, first + seeds):
        for problem in problems.split(","):
            for name in (OURS, *RIVALS):
                if (key := (problem, name, seed)) in runs or (name not in rivals and name != OURS):
                    continue
                try:
                    runs[key] = regret(problem, name, seed, trials)
                except ImportError:  # GPSampler needs torch
                    rivals.remove(name)
                    continue
                if out:
                    with Path(out).open("a", encoding="utf-8", newline="") as file:
                        csv.writer(file).writerow([*key, runs[key]])
    for problem in problems.split(","):
        for name in (OURS, *RIVALS):
            what = f"{problem}, {name}, regret after {trials} trials, median of {seeds}"
            if name not in rivals and name != OURS:
                yield missing(what, "torch")
                continue
            values = np.array([runs[problem, name, seed] for seed in range(first, first + seeds)])
            found[problem, name] = values
            low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
            yield Figure(what, f"{median:.2g} [{low:.2g}, {high:.2g}]")
    for name in rivals:
        pairs = [np.log((found[p, name] + 1e-6) / (found[p, OURS] + 1e-6)) for p in problems.split(",")]
        yield beside(name, np.concatenate(pairs))


def beside(name: str, gains: Array) -> Figure:
    """Return how much lower our regret is than a rival's, given the logarithms of their ratios in pairs."""
    worse = float(wilcoxon(gains, alternative="less").pvalue) if gains.any() else 1.0
    better = float(wilcoxon(gains, alternative="greater").pvalue) if gains.any() else 1.0
    text = f"{math.exp(-float(np.median(gains))):.2g} times, {(gains > 0).sum()} won, {(gains < 0).sum()} lost"
    what = f"{OURS}'s regret beside {name}'s, median of all pairs"
    return Figure(what, f"{text}, p better {better:.2g}, worse {worse:.2g}", "not worse, p 0.05", bool(worse >= 0.05))


if __name__ == "__main__":
    command(figures)
