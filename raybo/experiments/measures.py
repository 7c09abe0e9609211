"""What is measured of a run: curves over its evaluations, and single numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

import numpy as np

from raybo.errors import MethodError
from raybo.events import COUNTED, Kind, State, Trial
from raybo.experiments.held_out import held_out_curve, read
from raybo.experiments.model_error import kept_model_errors
from raybo.experiments.plan import Curve, Measure, Problem
from raybo.experiments.run import Run
from raybo.methods.story import Searches
from raybo.space import Array
from raybo.study import Study

EARLY_SHARE = 0.2  # of a run's trials
GREATER_IS_BETTER: frozenset[Measure] = frozenset(  # where the objective is maximised
    {"final_value", "final_held_out", "best_held_out", "mean_held_out", "early_held_out"}
)


def values(study: Study, metric: str | None = None) -> Array:  # (n,)
    """The values of a run's ended trials in order, or another metric's.

    A failed trial counts as the worst value that the run has seen.
    """
    if study.steps is not None and study.description.scheduler is not None:
        found = values_by_steps(study, study.steps, metric)
    else:
        ended = [trial for trial in study.trials if trial.state in COUNTED]
        found = np.array([value_of(trial, metric) for trial in ended], dtype=np.float64)
    if np.isnan(found).all():
        return found
    return cast(Array, np.where(np.isnan(found), study.goal.worst_of(found), found))


def values_by_steps(study: Study, steps: int, metric: str | None = None) -> Array:  # (n,)
    """The best value of those that finished while the steps of the first, second, ... whole run were spent; else NaN.

    So a run with a scheduler is measured by what it spent, like one without.
    """
    found: dict[int, float] = {}
    spent, reported = 0, [0] * len(study.trials)
    for event in study.events:
        number = event.trial
        if number is None:
            continue
        if event.report is not None:
            spent += event.report[0] - reported[number]
            reported[number] = event.report[0]
        elif event.kind is Kind.TOLD:
            value, slot = value_of(study.trials[number], metric), max(0, -(-spent // steps) - 1)
            found[slot] = study.goal.best_of([value, found.get(slot, value)])
    n = max(1, -(-spent // steps))
    return np.array([found.get(slot, math.nan) for slot in range(n)], dtype=np.float64)


def value_of(trial: Trial, metric: str | None) -> float:
    """A trial's value, or another metric that it returned; NaN where it has none."""
    value = trial.value
    if metric is not None and value is not None:
        value = trial.details["metrics"][metric]
    return math.nan if value is None else value


def optimum(problem: Problem, studies: Mapping[Run, Study]) -> float:
    """The problem's optimum, or the best value of any run where it is not known."""
    if problem.optimum is not None:
        return problem.optimum
    found = [
        values(study, problem.metric)
        for run, study in studies.items()
        if run.problem == problem and study.count(State.FINISHED)
    ]
    goal = next(study.goal for run, study in studies.items() if run.problem == problem)
    return goal.best_of(np.concatenate(found))


def curve(kind: Curve, study: Study, problem: Problem, best_possible: float) -> Array:  # (n,) or (n - initial,)
    """A run's best value, simple regret, cumulative regret, held-out value or the best of these, after each trial.

    Cumulative regret, and the inexactness of the solver, leave the initial design out.
    """
    if kind == "held_out":
        return held_out_curve(study)
    if kind == "best_held_out":
        return study.goal.best_so_far(held_out_curve(study))
    if kind == "model_error":
        return kept_model_errors(study)
    if kind == "inexactness":
        return accumulated_inexactness(study)
    found = values(study, problem.metric)
    if kind == "best_value":
        return study.goal.best_so_far(found)
    regret = study.goal.gap(found, best_possible)
    if kind == "simple_regret":
        return np.minimum.accumulate(regret)
    return np.cumsum(regret[problem.initial :])


def measure(kind: Measure, study: Study, problem: Problem, best_possible: float) -> float:
    """One number of a run.

    `processor_seconds` is what all its suggestions took of a processor, which a busy machine does not change; trials
    are not counted. NaN where a journal of 0.1 does not hold it.
    """
    if kind == "final_value":
        return float(curve("best_value", study, problem, best_possible)[-1])
    if kind == "final_regret":
        return float(curve("simple_regret", study, problem, best_possible)[-1])
    if kind == "missed":
        if problem.found_within is None:
            raise MethodError(
                f"{problem.name}: it does not say how small the regret must be for its optimum to count as found"
            )
        return float(curve("simple_regret", study, problem, best_possible)[-1] > problem.found_within)
    if kind == "final_inexactness":
        found = accumulated_inexactness(study)
        return float(found[-1]) if len(found) else math.nan
    if kind == "final_model_error":
        return float(kept_model_errors(study)[-1])
    if kind == "cumulative_regret":
        return float(curve("cumulative_regret", study, problem, best_possible)[-1])
    if kind == "recommended_regret":
        return study.goal.gap(value_of(study.best, problem.metric), best_possible)
    if kind == "final_held_out":
        last = read(study).last
        return float("nan") if last is None else last
    if kind in ("best_held_out", "mean_held_out", "early_held_out"):
        best = curve("best_held_out", study, problem, best_possible)
        if kind == "mean_held_out":
            return float(best.mean())
        return float(best[max(0, round(EARLY_SHARE * len(best)) - 1)] if kind == "early_held_out" else best[-1])
    spent = [trial.suggest_processor_seconds for trial in study.trials]
    return math.nan if None in spent else float(sum(seconds or 0.0 for seconds in spent))


def accumulated_inexactness(study: Study) -> Array:  # (T,)
    """M_t, the sum over the steps of 1 less the share of the acquisition's maximum that the solver reached.

    Steps at which it was not measured are interpolated linearly; NaN where it never was. Kim, Liu, Chen (2025),
    section 3; what is measured is one realisation of what the theory bounds.
    """
    method = study.method
    shares = [method.share_reached(trial.tags) for trial in study.trials] if isinstance(method, Searches) else []
    eta = np.array([share for share in shares if share is not None], dtype=np.float64)
    known = np.flatnonzero(np.isfinite(eta))
    if not len(known):
        return np.full(len(eta), np.nan)
    return cast(Array, np.cumsum(1.0 - np.interp(np.arange(len(eta)), known, eta[known])))
