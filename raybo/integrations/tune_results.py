"""A trial's steps and its end, as Ray Tune reports them, in events of the study; the event names no trial.

    Tune says                                               recorded    with
    ended by itself or by a scheduler, metric finite        finished    the last value that it reported
    likewise, the last report lacks the metric              finished    the last finite value before; failed without one
    likewise, the metric is NaN, infinite or no number      failed      what was reported
    error                                                   failed
    stopped while it waited or was paused                   finished    the last finite value; stopped without one

So a trial that ASHA stops early counts with the value at which it was stopped, which is also what Tune's own results
show for it: the scheduler stopped it for being worse than others were at that age, and the model learns just that. If
the search is told how many iterations a whole run has (`steps=`), such a trial is recorded as pruned, with its curve,
and every method learns from it as from any pruned trial.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from raybo.common.arguments import number_in
from raybo.common.errors import MethodError, TrialError
from raybo.common.messages import shown
from raybo.record.contexts import context_data
from raybo.record.events import AttemptEvent, EventData, Failed, Pruned, Stopped, Told
from raybo.record.goals import Goals
from raybo.record.history import ONE
from raybo.record.results import finite, told
from raybo.record.trial import Trial
from raybo.space import Space, read_context

TRAINING_ITERATION = "training_iteration"  # Tune's name for a step
TIME_TOTAL = "time_total_s"  # Tune's name for the seconds that a trial has run
UNKNOWN = -1  # the number of a trial that is yet to get one


def is_finite(value: object) -> bool:
    """True if it is a finite number."""
    try:
        return math.isfinite(finite(value, 0))
    except TrialError:
        return False


def ended(value: object, failure: str = "", goals: Goals = ONE) -> AttemptEvent:
    """Return the end of a trial with this value, or with several goals these values, or with this failure."""
    if failure:
        return Failed(UNKNOWN, reason=failure)
    if not goals.is_plain:
        reported = value if isinstance(value, Mapping) else {}
        for name in goals.needed:
            if not is_finite(reported.get(name)):
                what = (
                    f"{shown(reported[name])} for {name}, which is not a finite number"
                    if name in reported
                    else f"no {name}"
                )
                return Failed(UNKNOWN, reason=f"it reported {what}")
        return Told(UNKNOWN, **told({name: reported[name] for name in goals.needed}, 0, goals))
    if not is_finite(value):
        return Failed(UNKNOWN, reason=f"it reported {shown(value)}, which is not a finite number")
    return Told(UNKNOWN, value=finite(value, 0))


def read_end(
    result: Mapping[str, Any] | None, error: bool, latest: AttemptEvent | None, goals: Goals, context: Space | None
) -> tuple[AttemptEvent, str]:
    """Return the event that ends a trial, by the table above.

    Args:
        result: its last report; None if Tune gives none.
        error: True if Tune says that it failed.
        latest: its last report with a finite value.
        goals: what counts.
        context: the space of the contexts; None if none is declared.
    Returns:
        the event; and the reason if it has a value, but lacks its context.
    """
    if error:
        return Failed(UNKNOWN, reason="Ray Tune reported an error"), ""
    if not result:
        return latest or Stopped(UNKNOWN, reason="it was stopped before it reported a value"), ""
    if latest is not None and any(result.get(name) is None for name in goals.needed):
        return latest, ""
    return _read_report(result, goals, context)


def _read_report(result: Mapping[str, Any], goals: Goals, context: Space | None) -> tuple[AttemptEvent, str]:
    metric = goals.names[0]
    if goals.is_plain:
        end = ended(result.get(metric), "" if metric in result else f"it reported no {metric}")
    else:
        end = ended(result, "", goals)
    if context is None:
        return end, ""
    reading = read_context(context, result)
    lacking = ""
    if reading.values is None and isinstance(end, Told):
        lacking = reading.note or f"context {reading.missing[0]}: it was not reported"
    return replace(end, **context_data(context, reading)), lacking


def seconds_of(result: Mapping[str, Any] | None) -> float | None:
    """Return how long a trial has run by its last report; None if that does not say it."""
    seconds = (result or {}).get(TIME_TOTAL)
    return float(cast(float, seconds)) if is_finite(seconds) and cast(float, seconds) >= 0 else None


def read_step(result: Mapping[str, Any], end: AttemptEvent, goals: Goals, steps: int | None) -> EventData | None:
    """Return the step that a report is of, for models and for constraints that must hold at every step.

    Args:
        result: the report.
        end: what `read_end` makes of it.
        goals: what counts.
        steps: how many a whole run has; None if it is not declared.
    Returns:
        the data of an event; None if steps do not count, this is none of them, or its value is not finite.
    """
    step = result.get(TRAINING_ITERATION)
    counts = steps is not None or any(constraint.at_every_step for constraint in goals.constraints)
    if not counts or not isinstance(step, int) or step < 1 or (steps is not None and step > steps):
        return None
    first, *others = goals.needed
    value = end.value if isinstance(end, Told) else result.get(first)
    if not is_finite(value):
        return None
    data: EventData = {"step": step, "value": float(cast(float, value))}
    if metrics := {name: float(result[name]) for name in others if is_finite(result.get(name))}:
        data["metrics"] = metrics
    return data


def pruned_early(
    trial: Trial, result: Mapping[str, Any], end: AttemptEvent, goals: Goals, steps: int | None
) -> AttemptEvent:
    """Return the end of a trial: as pruned if it has not run all steps, where steps are declared.

    Such a trial may lack a number, such as a metric that is only measured at the end.
    """
    has_value = isinstance(end, Told) or any(result.get(name) is None for name in goals.needed[1:])
    if steps is None or not 0 < trial.step < steps or not has_value:
        return end
    reason = f"Ray Tune ended it after iteration {trial.step} of {steps}"
    data = {key: value for key, value in end.data.items() if key != "value"}
    data |= {"reason": reason, "rule": "ray tune", "step": trial.step}
    return Pruned.of(trial.number, data)


def require_each(value: Any, goals: Goals) -> None:
    """MethodError if a known result lacks a number that is needed, and would be taken for a failure."""
    if goals.is_plain:
        return
    if not isinstance(value, Mapping) or not all(name in value for name in goals.needed):
        raise MethodError(f"a known value must be a dict with {', '.join(goals.needed)}, got {shown(value)}")
    for name in goals.needed:
        require_number(value[name], f"a known value: {name}")


def require_number(value: Any, name: str) -> None:
    """MethodError if a known result is neither a number, finite or not, nor None for a failure."""
    if value is not None and number_in(value) is None:
        raise MethodError(f"{name} must be a number, got {shown(value)}")
