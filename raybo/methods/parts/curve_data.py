"""The data of a model of learning curves: the reports that it uses, and their steps on its axis.

The axis of steps is logarithmic, from 0 at the first step, or the lowest fidelity, to 1 at the last. Of each trial the
first report of each octave of steps counts, and the last: neighbouring reports repeat each other. A finished trial is
at the last step with its value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from raybo.record.goals import within_reach
from raybo.record.trial import Record
from raybo.space import Array

Span: TypeAlias = tuple[int, int]  # the first step and the last
Row: TypeAlias = tuple[Record, float, float]  # a trial, the place of a step on its axis, and the value there


def at_step(X: Array, place: float) -> Array:  # (m, d) -> (m, d + 1)
    """Return configurations with the place of a step on its axis."""
    return np.column_stack([X, np.full(len(X), place)])


def rows_of_curves(records: Sequence[Record], span: Span, at_most: int) -> list[Row]:
    """Return at most so many points of curves, in the order of the trials.

    The last point of each trial; then the earlier points of the trials with the most steps, of equals those with the
    best values.
    """
    lasts = [_last(record, span) for record in records]
    trials = chosen_trials(records, span, at_most)
    if len(trials) < len(records):
        return [(records[i], *lasts[i]) for i in trials]
    earlier = [list[tuple[float, float]]() for _ in records]
    left = at_most - len(records)
    for i in _by_progress(lasts):
        points = _before_last(records[i], span)
        left -= len(points)
        if left < 0:
            break
        earlier[i] = points
    return [(records[i], *point) for i in trials for point in [*earlier[i], lasts[i]]]


def chosen_trials(records: Sequence[Record], span: Span, at_most: int) -> list[int]:
    """Return the places of the trials that the model knows, ascending; at most so many.

    Of more, a third are those with the most steps, of equals those with the best values; a third the newest; and the
    rest evenly spread over all.
    """
    n = len(records)
    if n <= at_most:
        return list(range(n))
    furthest = _by_progress([_last(record, span) for record in records])[: at_most // 3]
    trials = {*furthest, *range(n - at_most // 3, n)}
    others = [i for i in range(n) if i not in trials]
    trials |= {others[j] for j in np.linspace(0, len(others) - 1, at_most - len(trials)).astype(int)}
    return sorted(trials)


def _by_progress(lasts: Sequence[tuple[float, float]]) -> list[int]:
    return sorted(range(len(lasts)), key=lasts.__getitem__, reverse=True)


def _last(record: Record, span: Span) -> tuple[float, float]:
    """Return the place of a trial's last step, and the value there."""
    return (_place(record.step, span), within_reach(record.reports[-1][1])) if record.y is None else (1.0, record.y)


def _before_last(record: Record, span: Span) -> list[tuple[float, float]]:
    """Return places and values of its first report from step 2 on, its first from twice as far, and so on."""
    due, points = 2, []
    for step, y in record.reports:
        if due <= step < record.step:
            points.append((_place(step, span), within_reach(y)))
            while due <= step:
                due *= 2
    return points


def _place(step: int, span: Span) -> float:
    """Return the place of a step between the first (0) and the last (1), on a logarithmic axis."""
    first, last = span
    return min(1.0, math.log(step / first) / math.log(last / first)) if last > first else 1.0
