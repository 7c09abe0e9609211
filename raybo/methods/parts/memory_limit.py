"""Running out of memory as a constraint of its own: a configuration that needs too much is infeasible, not bad.

Trials that finished have shown that their memory suffices (a margin of 1), those that ran out of it that theirs does
not (-1). Of the metrics these say nothing. Other failures count as the worst value seen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raybo.record.goals import Constraint
from raybo.record.history import History
from raybo.record.record_table import RecordTable
from raybo.record.states import State
from raybo.record.trial import Record

LIMIT = Constraint("memory limit", is_upper=False, bound=0.0)
ENOUGH, TOO_LITTLE = 1.0, -1.0


def with_memory_limit(history: History) -> History:
    """Return a history in which trials that ran out of memory broke a constraint; the same one if there are none."""
    lacking = [n for n in history.records.numbers(State.FAILED).tolist() if history.records[n].lacked_memory]
    if not lacking:
        return history
    other = history.copy()
    other.goals = replace(history.goals, constraints=(*history.goals.constraints, LIMIT))
    unknown = np.full(len(history.goals.constraints), np.nan)

    def of(record: Record) -> Record:
        if record.curves:
            record = replace(record, curves=(*record.curves, ()))
        if record.early is not None or record.lacked_memory:
            early = unknown if record.early is None else record.early
            record = replace(record, early=np.append(early, TOO_LITTLE if record.lacked_memory else np.nan))
        if record.y is None:
            return record
        Y = np.array([record.y]) if record.Y is None else record.Y
        margins = np.append(() if record.margins is None else record.margins, ENOUGH)
        return replace(record, Y=Y, margins=margins)

    other.records = RecordTable(history.d, map(of, history.records))
    return other
