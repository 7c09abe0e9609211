"""Held-out values: a method's recommendations along the way, evaluated beside its trials and outside its budget.

The best of many noisy values is too good to be true, and the more of them the better. So what a method would hand over
is evaluated again, on other seeds or without noise: the point that it recommends, where it has one (the centre of a
local search), from the trial on that brought it; the best trial so far, by the values that it saw, where it has none.

The results are kept beside the run's journal, and made again where the run or the plan has changed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from raybo.common.errors import JournalError
from raybo.common.files import write_file
from raybo.engine.ray.pickling import pickled, unpickled
from raybo.engine.ray.resources import resources_of
from raybo.engine.trial.task import run_trial
from raybo.experiments.plan import HeldOut
from raybo.job.objective import Objective
from raybo.record.trial import Trial
from raybo.space import Array
from raybo.study.study import Study


@dataclass(frozen=True)
class Evaluated:
    """A run's recommendations.

    Attributes:
        plan: what was asked for, as JSON.
        trials: the number of the trial from which on each recommendation stands.
        values: their held-out values; None if the evaluation failed.
        last: the last one's, under its own settings.
    """

    plan: Mapping[str, Any]
    trials: list[int]
    values: list[float | None]
    last: float | None


def recommendations(study: Study) -> list[tuple[int, dict[str, Any]]]:
    """Return the method's recommendations in order, each with the trial from which on it stands."""
    best: Trial | None = None
    points = [(trial.number, study.method.recommendation(trial.tags)) for trial in study.trials]
    found = [(number, study.space.decode(x[None, :])[0]) for number, x in points if x is not None]
    if found:
        return found
    for trial in study.trials:
        if trial.feasible and (best is None or _is_better(study, trial, best)):
            best = trial
            found.append((trial.number, trial.config))
    return found


def evaluate(
    study: Study,
    objective: Objective,
    plan: HeldOut,
    *,
    in_process: bool = False,
    before: Callable[[], None] = lambda: None,
) -> None:
    """Evaluate a complete run's recommendations, unless that is done, and keep the values.

    Args:
        study: the run.
        objective, plan: what is evaluated, and how.
        in_process: whether in this process; else on the connected Ray.
        before: called if there is something to evaluate, before it is.
    """
    recommended = recommendations(study)
    numbers = [number for number, _ in recommended]
    wanted = json.loads(json.dumps({**asdict(plan), "of": dict(objective.settings)}))
    file = _file(study)
    if file.exists():
        known = read(study)
        if known.trials == numbers and known.plan == wanted:
            return
    before()
    configs = [config for _, config in recommended]
    evaluated = partial(_evaluated, objective, in_process)
    values = evaluated(configs, plan.settings, plan.metric)
    last = values[-1:]
    if plan.last:
        last = evaluated(configs[-1:], {**plan.settings, **plan.last}, plan.metric)
    text = json.dumps(asdict(Evaluated(wanted, numbers, values, last[0] if last else None)))
    write_file(file, text + "\n")


def read(study: Study) -> Evaluated:
    """Read the held-out values of a run.

    Raises:
        JournalError: there is nothing, or it cannot be read.
    """
    file = _file(study)
    try:
        return Evaluated(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise JournalError(f"{file}: its held-out values cannot be read ({error}); run the experiment again") from error


def held_out_curve(study: Study) -> Array:  # (n,)
    """The held-out value of what was recommended after each trial.

    A recommendation whose evaluation failed counts as the worst one of the run, and what comes before the first
    recommendation as that.
    """
    kept = read(study)
    if not kept.trials:
        return np.full(len(study.trials), np.nan)
    found = np.array([np.nan if value is None else value for value in kept.values])
    found = np.where(np.isnan(found), study.goal.worst_of(found), found)
    standing = np.searchsorted(kept.trials, np.arange(len(study.trials)), side="right") - 1
    return np.asarray(found[np.maximum(standing, 0)])


def _is_better(study: Study, trial: Trial, best: Trial) -> bool:
    assert trial.value is not None
    assert best.value is not None
    return study.goal.is_better(trial.value, best.value)


def _file(study: Study) -> Path:
    assert study.path is not None
    return study.path.with_suffix(".held-out.json")


def _evaluated(
    objective: Objective,
    in_process: bool,
    configs: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    metric: str | None,
) -> list[float | None]:
    """In this process, or as one Ray task, with what a trial of the objective holds."""
    wanted = objective.with_settings(**settings).settings
    if in_process:
        return _values(objective.function, configs, wanted, objective.metric, metric)
    import ray

    by_value: Any = ray.cloudpickle.register_pickle_by_value
    by_value(sys.modules[objective.function.__module__])  # loaded by its path, which a worker cannot import
    task = ray.remote(**resources_of(objective))(_evaluated_here)
    found: list[float | None] = ray.get(
        task.remote(pickled(objective.function), list(configs), wanted, objective.metric, metric)
    )
    return found


def _evaluated_here(
    function: bytes, configs: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], tuned: str, metric: str | None
) -> list[float | None]:
    return _values(unpickled(function), configs, settings, tuned, metric)


def _values(
    function: Callable[..., Any],
    configs: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    tuned: str,
    metric: str | None,
) -> list[float | None]:
    """Of the metric that is tuned, or of another, which a job that reports as it goes may return at its end only."""
    outcomes = [run_trial(function, config, settings, tuned, 1)[1] for config in configs]
    if metric is None or metric == tuned:
        return [data.get("value") for data in outcomes]
    return [data.get("metrics", {}).get(metric) if "value" in data else None for data in outcomes]
