"""Measures of a run: curves over its evaluations, and single numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from raybo.common.errors import MethodError
from raybo.experiments.held_out import held_out_curve, read
from raybo.experiments.model_error import kept_model_errors
from raybo.experiments.plan import Curve, Measure, Problem
from raybo.experiments.run import Run
from raybo.record.events import Kind
from raybo.record.pareto import hypervolume, non_dominated
from raybo.record.states import COUNTED, State
from raybo.record.trial import Trial
from raybo.space import Array
from raybo.study.study import Study

EARLY_SHARE = 0.2  # of a run's trials


def values(study: Study, metric: str | None = None, floor: float = math.nan) -> Array:  # (n,)
    """The values of a run's ended trials in order, or another metric's; with a scheduler by steps, see `by_budget`.

    A trial that failed or breaks a constraint counts as the worst value that the run has seen; where none has finished
    and keeps them, each as the floor.
    """
    slots = by_budget(study)

    def best(trials: Sequence[Trial]) -> float:
        return study.goal.best_of([value_of(trial, metric) for trial in trials]) if trials else math.nan

    seen = np.array([best([trial for trial in slot if trial.state is State.FINISHED]) for slot in slots])
    found = np.array([best([trial for trial in slot if trial.feasible]) for slot in slots])
    if np.isnan(found).all():
        return np.full(len(slots), floor)
    return cast(Array, np.where(np.isnan(found), study.goal.worst_of(seen), found))


def by_budget(study: Study) -> list[list[Trial]]:
    """The trials that had ended after the first, the second, ... evaluation was spent, each once.

    With a scheduler an evaluation is as many steps as a whole run has, whichever trials spent them, and only those that
    finished are listed: so such a run is measured by what it spent, like one without a scheduler.
    """
    if study.steps is None or study.description.scheduler is None:
        return [[trial] for trial in study.trials if trial.state in COUNTED]
    found: dict[int, list[Trial]] = {}
    spent, reported = 0, [0] * len(study.trials)
    for event in study.events:
        number = event.trial
        if number is None:
            continue
        if event.report is not None:
            spent += event.report[0] - reported[number]
            reported[number] = event.report[0]
        elif event.kind is Kind.TOLD:
            found.setdefault(max(0, -(-spent // study.steps) - 1), []).append(study.trials[number])
    return [found.get(slot, []) for slot in range(max(1, -(-spent // study.steps)))]


def value_of(trial: Trial, metric: str | None) -> float:
    """Return a trial's value, or another metric that it returned; NaN if it has none."""
    value = trial.value
    if metric is not None and value is not None:
        value = trial.details["metrics"][metric]
    return math.nan if value is None else value


def optimum(problem: Problem, studies: Mapping[Run, Study]) -> float:
    """Return the problem's optimum, or if it is unknown the best value of any run; NaN if no run has one."""
    if problem.optimum is not None:
        return problem.optimum
    found = _with_results(problem, studies)
    return (
        found[0].goal.best_of(np.concatenate([values(study, problem.metric) for study in found])) if found else math.nan
    )


def floor(problem: Problem, studies: Mapping[Run, Study]) -> float:
    """Return the worst value that any run has seen, which a run without a result counts as; NaN if no run has one."""
    if not (found := _with_results(problem, studies)):
        return math.nan
    seen = [
        value_of(trial, problem.metric) for study in found for trial in study.trials if trial.state is State.FINISHED
    ]
    return found[0].goal.worst_of(seen)


def _with_results(problem: Problem, studies: Mapping[Run, Study]) -> list[Study]:
    """The problem's studies in which a trial has finished and keeps all constraints."""
    return [study for run, study in studies.items() if run.problem == problem and any(t.feasible for t in study.trials)]


def worst_seen(problem: Problem, studies: Mapping[Run, Study]) -> Mapping[str, float]:
    """The worst of each metric that a feasible trial of any run has shown: above it the volume of all of them counts.

    Empty if no run has a feasible trial.
    """
    found = [study for run, study in studies.items() if run.problem == problem and study.front]
    goals = next(study.goals for run, study in studies.items() if run.problem == problem)
    references = [study.reference() for study in found]
    return {
        name: goal.worst_of([reference[name] for reference in references])
        for name, goal in zip(goals.names, goals.each, strict=True)
        if references
    }


def hypervolumes(study: Study, reference: Mapping[str, float]) -> Array:  # (n,)
    """Return the front's hypervolume after each evaluation, above a reference; 0 while the front is empty."""
    goals, slots = study.goals, by_budget(study)
    if not reference:
        return np.zeros(len(slots))
    at, Y, found = goals.maximised(reference), np.empty((0, goals.k)), list[float]()
    for slot in slots:
        new = [goals.maximised(trial.values) for trial in slot if trial.feasible]
        if new:
            Y = np.vstack([Y, *new])
            Y = Y[non_dominated(Y)]
        found.append(hypervolume(Y, at) if new or not found else found[-1])
    return np.array(found)


def curve(
    kind: Curve,
    study: Study,
    problem: Problem,
    best_possible: float,
    reference: Mapping[str, float] | None = None,
    worst: float = math.nan,
) -> Array:  # (n,) or (n - initial,)
    """A run's best value, simple regret, cumulative regret, held-out value or the best of these, after each trial.

    Cumulative regret, and the inexactness of the solver, leave the initial design out. The hypervolume of several
    metrics is above `reference`, which is shared by the runs that are compared; a run without a result has the value
    `worst` throughout.
    """
    if kind == "hypervolume":
        return hypervolumes(study, reference or {})
    if kind == "held_out":
        return held_out_curve(study)
    if kind == "best_held_out":
        return study.goal.best_so_far(held_out_curve(study))
    if kind == "model_error":
        return kept_model_errors(study)
    if kind == "inexactness":
        return accumulated_inexactness(study)
    found = values(study, problem.metric, worst)
    if kind == "best_value":
        return study.goal.best_so_far(found)
    regret = study.goal.gap(found, best_possible)
    if kind == "simple_regret":
        return np.minimum.accumulate(regret)
    return np.cumsum(regret[problem.initial :])


def measure(
    kind: Measure,
    study: Study,
    problem: Problem,
    best_possible: float,
    reference: Mapping[str, float] | None = None,
    worst: float = math.nan,
) -> float:
    """One number of a run.

    `processor_seconds` is what all its suggestions took of a processor; trials are not counted. It leaves out the
    waiting, and still varies with what shares the caches and cores: the same computations took 0.75 to 1.42 times as
    long on another day. NaN if a journal of 0.1 does not hold it.
    """
    if kind == "final_hypervolume":
        return float(hypervolumes(study, reference or {})[-1])
    if kind == "final_value":
        return float(curve("best_value", study, problem, best_possible, worst=worst)[-1])
    if kind == "final_regret":
        return float(curve("simple_regret", study, problem, best_possible, worst=worst)[-1])
    if kind == "missed":
        if problem.found_within is None:
            raise MethodError(
                f"{problem.name}: it does not say how small the regret must be for its optimum to count as found"
            )
        regret = curve("simple_regret", study, problem, best_possible, worst=worst)[-1]
        return float(not regret <= problem.found_within)  # a run without a result has missed it
    if kind == "final_inexactness":
        found = accumulated_inexactness(study)
        return float(found[-1]) if len(found) else math.nan
    if kind == "final_model_error":
        return float(kept_model_errors(study)[-1])
    if kind == "cumulative_regret":
        return float(curve("cumulative_regret", study, problem, best_possible, worst=worst)[-1])
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

    Steps at which it was not measured are interpolated linearly; NaN if it never was. Kim, Liu, Chen (2025),
    section 3; what is measured is one realisation of what the theory bounds.
    """
    shares = [study.method.share_reached(trial.tags) for trial in study.trials]
    eta = np.array([share for share in shares if share is not None], dtype=np.float64)
    known = np.flatnonzero(np.isfinite(eta))
    if not len(known):
        return np.full(len(eta), np.nan)
    return cast(Array, np.cumsum(1.0 - np.interp(np.arange(len(eta)), known, eta[known])))
