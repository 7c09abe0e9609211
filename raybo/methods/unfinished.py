"""What methods see of trials that have reported but not finished: what other trials came to from the same place.

A trial that was pruned, is paused or is still running counts as one observation: the value of its last step, predicted
from its last report by a monotone regression over the trials that have both a report at that step and an end. How far
such predictions miss is added to the noise of that observation. The last report itself is not a result, as curves rise;
nor is the trial a failure.

The regression is isotonic (Barlow et al., 1972), linear between the points of the trials that it was fitted to. Its
error is measured by predicting each of those trials from the others. With fewer than three, nothing is predicted.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg
from scipy.optimize import isotonic_regression

from raybo.events import State
from raybo.history import History, Record
from raybo.space import Array

UNFINISHED = (State.PENDING, State.PAUSED, State.PRUNED, State.STOPPED)
FEWEST = 3  # trials that a prediction is made from
MISSES = 100  # of them at most are left out in turn


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
        with np.errstate(over="ignore"):
            errors = [y[i] - np.interp(x[i], *_isotonic(np.delete(x, i), np.delete(y, i))) for i in left_out]
        return cls(*_isotonic(x, y), float(linalg.norm(errors, check_finite=False) / math.sqrt(len(errors))))

    def at(self, x: float) -> float:
        """Its value; beyond its points that of the last one."""
        return float(np.interp(x, self.x, self.y))


def predicted(history: History) -> History:
    """The history with a value for every unfinished trial that one can be predicted for; itself where there is none.

    Such a trial looks finished in it, with `error` saying how uncertain its value is, and `is_open` whether it goes on.
    """
    open_ends = [
        number for number, record in enumerate(history.records) if record.state in UNFINISHED and record.reports
    ]
    if not open_ends:
        return history
    seen, regressions = history.copy(), dict[int, Regression | None]()
    for number in open_ends:
        record = history.records[number]
        if record.step not in regressions:
            regressions[record.step] = regression(history.records, record.step)
        by = regressions[record.step]
        if by is not None:
            y = by.at(record.reports[-1][1])
            is_open = not record.has_ended
            seen.records[number] = replace(record, state=State.FINISHED, y=y, error=by.miss, is_open=is_open)
            seen.predicted_open += is_open
    return seen


def regression(records: Iterable[Record], step: int) -> Regression | None:
    """From what the finished trials had come to by a step to their values; None where too few tell, or too wildly."""
    pairs = [
        (record.reports[place - 1][1], record.y)
        for record in records
        if record.y is not None and (place := bisect_right(record.reports, step, key=_step)) > 0
    ]
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
