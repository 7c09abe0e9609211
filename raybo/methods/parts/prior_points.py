"""Judges the first points that earlier studies led to by this study's own results.

They hold if the best of them is better than the median of the design, which no result has chosen; where there is no
design, of the other trials. While they hold, they take the place of as many points of the design. Otherwise no more of
them follow, and the design is as long as it is without them: what misleads costs the trials that it has led to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from raybo.record.history import History
from raybo.record.origin import Origin
from raybo.record.states import FAILURES, State
from raybo.record.trial import Record

DESIGN = {"middle", "sobol"}  # tags of its points


def led(history: History) -> list[Record]:
    """Return the trials at points that earlier studies led to."""
    return [record for record in history.records if record.tags.get("origin") == Origin.PRIOR]


def hold(history: History) -> bool | None:
    """Return True if the points that earlier studies led to hold, None while that is not known."""
    if not history.priors:
        return None
    theirs = _values(led(history))
    own = [record for record in history.records if record.tags.get("origin") != Origin.PRIOR]
    others = _values([record for record in own if DESIGN & record.tags.keys()] or own)
    return max(theirs) > float(np.median(others)) if theirs and others else None


def misled(history: History) -> int:
    """Return how many points earlier studies have led to in vain."""
    return len(led(history)) if hold(history) is False else 0


def _values(records: Sequence[Record]) -> list[float]:
    """Return the trials' values, maximised: of those that failed or were ended early, the worst."""
    ended = [record for record in records if record.state in (State.FINISHED, State.PRUNED, *FAILURES)]
    return [-math.inf if record.y is None else record.y for record in ended]
