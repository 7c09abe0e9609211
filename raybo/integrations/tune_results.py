"""How a trial ended, by what Ray Tune says of it, as an event of the study; the event names no trial.

    Tune says                                               recorded    with
    ended by itself or by a scheduler, metric finite        finished    the last value that it reported
    the same, the last report lacks the metric              finished    the last finite value before; failed without one
    the same, the metric is NaN, infinite or no number      failed      what was reported
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
from typing import Any

from raybo.common.errors import TrialError
from raybo.record.contexts import context_data
from raybo.record.events import AttemptEvent, Failed, Stopped, Told
from raybo.record.goals import Goals
from raybo.record.history import ONE
from raybo.record.results import finite, told
from raybo.space import Space, read_context

UNKNOWN = -1  # the number of a trial that is yet to get one


def is_finite(value: object) -> bool:
    """Whether it is a finite number."""
    try:
        return math.isfinite(finite(value, 0))
    except TrialError:
        return False


def ended(value: object, failure: str = "", goals: Goals = ONE) -> AttemptEvent:
    """How a trial ended that has this value, or with several goals these, or the failure where one is told."""
    if failure:
        return Failed(UNKNOWN, reason=failure)
    if not goals.is_plain:
        reported = value if isinstance(value, Mapping) else {}
        for name in goals.needed:
            if not is_finite(reported.get(name)):
                what = (
                    f"{reported[name]!r} for {name}, which is not a finite number" if name in reported else f"no {name}"
                )
                return Failed(UNKNOWN, reason=f"it reported {what}")
        return Told(UNKNOWN, **told({name: reported[name] for name in goals.needed}, 0, goals))
    if not is_finite(value):
        return Failed(UNKNOWN, reason=f"it reported {value!r}, which is not a finite number")
    return Told(UNKNOWN, value=finite(value, 0))


def read_end(
    result: Mapping[str, Any] | None, error: bool, latest: AttemptEvent | None, goals: Goals, context: Space | None
) -> tuple[AttemptEvent, str]:
    """How a trial ended, by the table above.

    Args:
        result: its last report; None where Tune gives none.
        error: whether Tune says that it failed.
        latest: its last report with a finite value.
        goals: what counts.
        context: the space of the contexts; None where none is declared.
    Returns:
        the event, and where it has a value and no context, why it has none.
    """
    if error:
        return Failed(UNKNOWN, reason="Ray Tune reported an error"), ""
    if not result:
        return latest or Stopped(UNKNOWN, reason="it was stopped before it reported a value"), ""
    if latest is not None and any(result.get(name) is None for name in goals.needed):
        return latest, ""
    return _read_report(result, goals, context)


def _read_report(result: Mapping[str, Any], goals: Goals, context: Space | None) -> tuple[AttemptEvent, str]:
    if not goals.is_plain:  # which goes without a context
        return ended(result, "", goals), ""
    metric = goals.names[0]
    end = ended(result.get(metric), "" if metric in result else f"it reported no {metric}")
    if context is None:
        return end, ""
    reading = read_context(context, result)
    lacking = ""
    if reading.values is None and isinstance(end, Told):
        lacking = reading.note or f"context {reading.missing[0]}: it was not reported"
    return replace(end, **context_data(context, reading)), lacking
