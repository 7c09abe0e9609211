"""What is measured of a run: curves over its evaluations, and single numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from raybo.experiments.plan import Measure, Problem
from raybo.experiments.run import Run
from raybo.history import State
from raybo.study import Study

Array: TypeAlias = NDArray[np.float64]


def values(study: Study) -> Array:  # (n,)
    """The values of a run's ended trials in order; a failed trial counts as the worst value that the run has seen."""
    ended = [trial for trial in study.trials if trial.state in (State.FINISHED, State.FAILED, State.LOST)]
    found = np.array([np.nan if trial.value is None else trial.value for trial in ended], dtype=np.float64)
    if np.isnan(found).all():
        return found
    worst = np.nanmin(found) if study.mode == "max" else np.nanmax(found)
    return cast(Array, np.where(np.isnan(found), worst, found))


def optimum(problem: Problem, studies: Mapping[Run, Study]) -> float:
    """The problem's optimum, or the best value of any run where it is not known."""
    if problem.optimum is not None:
        return problem.optimum
    bests = [
        study.best.value for run, study in studies.items() if run.problem == problem and study.count(State.FINISHED)
    ]
    return float(
        max(cast("list[float]", bests)) if _mode(problem, studies) == "max" else min(cast("list[float]", bests))
    )


def curve(kind: str, study: Study, problem: Problem, best_possible: float) -> Array:  # (n,) or (n - initial,)
    """A run's best value, simple regret or cumulative regret after each evaluation.

    Cumulative regret leaves the initial design out.
    """
    found = values(study)
    improving = np.maximum.accumulate(found) if study.mode == "max" else np.minimum.accumulate(found)
    if kind == "best_value":
        return improving
    regret = best_possible - found if study.mode == "max" else found - best_possible
    if kind == "simple_regret":
        return np.minimum.accumulate(regret)
    return np.cumsum(regret[problem.initial :])


def measure(kind: Measure, study: Study, problem: Problem, best_possible: float) -> float:
    """One number of a run.

    `seconds` is the time of all its suggestions, which is what methods differ in; trials are not counted.
    """
    if kind == "final_value":
        return float(curve("best_value", study, problem, best_possible)[-1])
    if kind == "final_regret":
        return float(curve("simple_regret", study, problem, best_possible)[-1])
    if kind == "cumulative_regret":
        return float(curve("cumulative_regret", study, problem, best_possible)[-1])
    return float(sum(trial.suggest_seconds for trial in study.trials))


def _mode(problem: Problem, studies: Mapping[Run, Study]) -> str:
    return next(study.mode for run, study in studies.items() if run.problem == problem)
