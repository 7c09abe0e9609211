"""Runs of a problem at equal cost: each as far as it had come when it had cost what the cheapest of them cost."""

from __future__ import annotations

import math
from collections.abc import Mapping

from raybo.common.errors import MethodError
from raybo.experiments.run import Run
from raybo.record.budget import Budget, used_by_each
from raybo.study.study import Study

SECONDS = "seconds"  # of trials, if no number that they return is meant


def at_equal_cost(studies: Mapping[Run, Study], cost: str) -> dict[Run, Study]:
    """Return the runs, each without what happened after it had cost as much as the cheapest run of its problem.

    What an attempt cost is known at its end, if that has no result by what it reported last; the first counts in any
    case.

    Args:
        studies: the runs.
        cost: "seconds", of the trials, or the name of a number that each of them returns.
    Raises:
        MethodError: a run has no trial of which it is known what it cost.
    """
    counted = Budget(1.0, cost=None if cost == SECONDS else cost)
    known = {run: used_by_each(study.events, counted) for run, study in studies.items()}
    if lacking := next((run for run, costs in known.items() if not any(costs)), None):
        raise MethodError(
            f"{lacking.problem.name}, {lacking.entry.name}, seed {lacking.seed}: no trial says what it cost; return "
            f"{cost!r} with the result, above 0, or give --per {SECONDS}"
        )
    shared: dict[str, float] = {}
    for run, costs in known.items():
        shared[run.problem.name] = min(sum(costs), shared.get(run.problem.name, math.inf))
    return {run: _until(study, known[run], shared[run.problem.name]) for run, study in studies.items()}


def _until(study: Study, costs: list[float], shared: float) -> Study:
    """Return a study as it was before the event by which it cost more than this, with its first trial at least."""
    spent, count = 0.0, 0
    for cost in costs:
        if spent > 0.0 and spent + cost > shared * (1.0 + 1e-9):
            break
        spent += cost
        count += 1
    return Study(study.description, study.events[:count], study.path)
