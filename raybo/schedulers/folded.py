"""What follows from all reports so far, updated with each report instead of recomputed for every verdict.

Only a cache: whether it is warm changes nothing but the time. Reports of trials that confirm a configuration are left
out: they are no rivals, as the best ones would be there several times.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any, Protocol, TypeVar

from raybo.record.history import History
from raybo.record.origin import confirms

KEPT = 8  # folds per thread, of which one is in use per study and rule


class Fold(Protocol):
    """Something that takes in reports one by one, in the journal's order."""

    def take(self, trial: int, step: int, y: float) -> None:
        """The report that follows."""
        ...


F = TypeVar("F", bound=Fold)
_of_thread = threading.local()


def folded(history: History, rule: Hashable, empty: type[F], *args: Any) -> F:
    """The fold of all reports of a history's search.

    Args:
        history: whose reports.
        rule: what the fold depends on beside them; an equal rule makes the same fold.
        empty, args: makes the fold of no reports.
    """
    kept: dict[Hashable, tuple[Any, int, Any]] = _of_thread.__dict__.setdefault("kept", {})
    reports = history.reports_in_order
    fold, seen, last = kept.pop((empty, rule), (None, 0, None))
    # a report is one object, which histories share as far as they are the same
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
