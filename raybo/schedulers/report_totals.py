"""Caches totals of all reports so far, updated with each report instead of recomputed for every verdict.

Only a cache: whether it is warm changes nothing but the time. Reports of trials that confirm a configuration are left
out: they are no rivals, as the best ones would be there several times.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any, Protocol, TypeVar

from raybo.record.history import History
from raybo.record.origin import confirms

KEPT = 8  # cached folds per thread; a study needs one per rule


class Fold(Protocol):
    """A total that is updated by one report at a time, in the journal's order."""

    def take(self, trial: int, step: int, y: float) -> None:
        """Add the next report."""
        ...


F = TypeVar("F", bound=Fold)
_of_thread = threading.local()


def folded(history: History, rule: Hashable, empty: type[F], *args: Any) -> F:
    """Return the fold of all reports of a history's search.

    Args:
        history: has the reports.
        rule: what the fold depends on beside them; an equal rule makes the same fold.
        empty, args: make the fold of no reports.
    """
    kept: dict[Hashable, tuple[Any, int, Any]] = _of_thread.__dict__.setdefault("kept", {})
    reports = history.reports_in_order
    fold, seen, last = kept.pop((empty, rule), (None, 0, None))
    # histories of one study share their report objects
    if fold is None or len(reports) < seen or (seen > 0 and reports[seen - 1] is not last):
        fold, seen = empty(*args), 0
    for i in range(seen, len(reports)):
        if not confirms(history.records[reports[i][0]].tags):
            fold.take(*reports[i])
    kept[empty, rule] = fold, len(reports), reports[-1] if len(reports) > 0 else None
    while len(kept) > KEPT:
        del kept[next(iter(kept))]
    result: F = fold
    return result
