"""The proposals of `auto` in studies that end trials early, with the model of `parts.learning_curves`.

- The next point maximises an upper bound of two standard deviations at the last step: early steps make the model surer
  than it should be.
- A pruned configuration that is expected to beat every finished one is run again instead.
- Beside that, pruned trials are believed to end as expected: if the model were unsure of them, the bound would lead to
  their neighbours, which would be pruned too, over and over.
"""

from __future__ import annotations

import math

import numpy as np

from raybo.methods.parts.fitted_model import Transform, prediction_in_words
from raybo.methods.parts.initial_design import design_size, sobol_proposal
from raybo.methods.parts.learning_curves import (
    MANY,
    THETA,
    FittedCurves,
    believing_ends,
    final_means,
    fit_curves,
    reported,
)
from raybo.methods.parts.next_point import solve_apart
from raybo.methods.parts.trial_costs import costs_that_matter, per_cost
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.record.states import State

DESIGN = 10  # points
OPTIMISM = 2.0  # standard deviations


def propose_for_last_step(
    history: History, rng: np.random.Generator, initial: int | None, transform: Transform
) -> Proposal:
    """Return the next point of the design, a pruned configuration to run again, or the point of the highest bound.

    Args:
        history: with curves.
        rng: for the search.
        initial: points of the design; None for the usual number.
        transform: makes the transform of the values.
    """
    if len(history) < design_size(history, DESIGN, initial):
        return sobol_proposal(history, rng)
    fit = fit_curves(history, transform)
    if (again := worth_running_again(history, fit)) is not None:
        x = history.records[again].x
        return Proposal(x, {"again": again, **fit.prediction(x), **fit.tags})
    fit = believing_ends(fit, history, history.points(State.PENDING))
    size, starts = (1_000, 8) if len(history) < MANY else (300, 4)
    name, worth = "ucb", fit.bound(OPTIMISM)
    if fit.incumbent > -math.inf and costs_that_matter(history) is not None:
        name, worth = "log-ei", per_cost(fit.improvement(), history)
    solution = solve_apart("lbfgsb", worth, history, rng, size=size, starts=starts, near=fit.near)
    return Proposal(solution.x, {"acquisition": name, **fit.prediction(solution.x), **fit.tags})


def worth_running_again(history: History, fit: FittedCurves) -> int | None:
    """Return the pruned trial that is expected to beat whatever has finished; None if there is none.

    No trial is run again twice, and none at all once one that was run again has been pruned: the rule that pruned it
    does not look at final values. Until a trial has finished, only one at a time is run again.
    """
    again = [record for record in history.records if "again" in record.tags]
    if any(record.state is State.PRUNED for record in again):
        return None
    if fit.incumbent == -math.inf and any(record.state is State.PENDING for record in again):
        return None
    known = {record.x.tobytes() for record in history.records if record.state is not State.PRUNED}
    numbers, means = reported(history), final_means(fit.gp, history)
    places = [
        place
        for place, number in enumerate(numbers)
        if history.records[number].state is State.PRUNED and history.records[number].x.tobytes() not in known
    ]
    best = max(places, key=lambda place: means[place], default=None)
    return None if best is None or means[best] <= fit.incumbent else numbers[best]


def explain_curves(tags: Tags) -> str:
    """Return why a point was proposed; empty if these are not the tags of a proposal for the last step."""
    if THETA not in tags:
        return ""
    expects = f"at the last step, {prediction_in_words(tags)}"
    if "again" in tags:
        return f"trial {tags['again']} again, which was pruned and looks best by now: {expects}"
    name = "expected improvement" if tags.get("acquisition") == "log-ei" else "upper confidence bound"
    return f"{name}: {expects}"
