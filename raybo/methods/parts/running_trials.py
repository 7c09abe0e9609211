"""Predictions for trials that have reported but not finished, from the trials that were as far.

A trial that was pruned, is paused or is still running counts as one observation: the value of its last step, predicted
from its last report by a monotone regression over the trials that have both a report at that step and an end. How far
such predictions miss is added to the noise of that observation. The last report itself is not a result, as curves rise;
nor is the trial a failure.

The regression is isotonic (Barlow et al., 1972), linear between the points of the trials that it was fitted to. Its
error is measured by predicting each of those trials from the others. With fewer than three, nothing is predicted.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np
from scipy import linalg
from scipy.optimize import isotonic_regression

from raybo.record.goals import within_reach
from raybo.record.history import History
from raybo.record.states import State
from raybo.record.trial import Record
from raybo.space import Array

UNFINISHED = (State.PENDING, State.PAUSED, State.PRUNED, State.STOPPED)
FEWEST = 3  # trials that a prediction is made from
MISSES = 100  # of them at most are left out in turn

# A cache only: of each trial its record, by what it was predicted, and the record as methods see it. Most trials that
# wait are the same from one proposal to the next.
_of_thread = threading.local()


@dataclass(frozen=True, eq=False)
class Regression:
    """The most likely increasing function through points, with equally large errors.

    Attributes:
        x: (k,), going up. y: (k,), not going down. miss: standard deviation of its errors at points left out.
    """

    x: Array
    y: Array
    miss: float

    @classmethod
    def of(cls, x: Array, y: Array) -> Regression:
        """Fitted to points (n,), n >= 2."""
        n = len(x)
        left_out = np.unique(np.linspace(0, n - 1, min(n, MISSES)).astype(int))
        errors = [y[i] - np.interp(x[i], *_isotonic(np.delete(x, i), np.delete(y, i))) for i in left_out]
        return cls(*_isotonic(x, y), float(linalg.norm(errors, check_finite=False) / math.sqrt(len(errors))))

    def at(self, x: float) -> float:
        """Its value; beyond its points that of the last one."""
        return float(np.interp(x, self.x, self.y))


def predicted(history: History) -> History:
    """The history with a value for every unfinished trial that one can be predicted for; itself where there is none.

    Such a trial looks finished in it, with `error` saying how uncertain its value is, and `is_open` whether it goes on.
    """
    records = history.records
    unfinished = [number for number in records.numbers(*UNFINISHED).tolist() if records[number].reports]
    if not unfinished:
        return history
    finished = [records[number] for number in records.numbers(State.FINISHED).tolist()]
    seen, regressions = history.copy(), dict[int, Regression | None]()
    known, now = _of_thread.__dict__.get("known", {}), dict[int, tuple[Record, Regression, Record]]()
    for number in unfinished:
        record = records[number]
        step, reported = record.reports[-1]
        if step not in regressions:
            regressions[step] = regression(finished, step)
        by = regressions[step]
        if by is not None:
            before = known.get(number)
            if before is not None and before[0] is record and before[1] is by:
                made = before[2]
            else:
                y, is_open = by.at(within_reach(reported)), not record.has_ended
                made = replace(record, state=State.FINISHED, y=y, error=by.miss, is_open=is_open)
            now[number] = record, by, made
            seen.records[number] = made
            seen.predicted_open += made.is_open
    _of_thread.known = now
    return seen


def regression(finished: Iterable[Record], step: int) -> Regression | None:
    """From what finished trials had come to by a step to their values; None where too few tell, or too wildly."""
    return _fitted(
        tuple(
            (within_reach(record.reports[place - 1][1]), cast(float, record.y))
            for record in finished
            if (place := bisect_right(record.reports, step, key=_step)) > 0
        )
    )


@lru_cache(maxsize=64)  # a cache only: one for each step at which trials wait, until another has finished
def _fitted(pairs: tuple[tuple[float, float], ...]) -> Regression | None:
    if len(pairs) < FEWEST:
        return None
    x, y = np.array(pairs, dtype=np.float64).T
    found = Regression.of(x, y)
    return found if math.isfinite(found.miss) else None


def _step(report: tuple[int, float]) -> int:
    return report[0]


def _isotonic(x: Array, y: Array) -> tuple[Array, Array]:  # (n,), (n,) -> (k,), (k,)
    """Distinct x, and the increasing values nearest to y in squares; equal x share one."""
    distinct, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=y) / counts
    return distinct, np.asarray(isotonic_regression(means, weights=counts.astype(np.float64)).x)
