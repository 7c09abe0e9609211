"""scikit-learn's parts of a search, used batch by batch: splits, callbacks, and the results of failed fits."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._validation import _fit_and_score, _warn_or_raise_about_fit_failures


class SplitOnce:
    """A splitter that splits once: one that shuffles would give each batch other folds."""

    def __init__(self, cv: Any) -> None:
        self.cv = cv
        self.splits: list[Any] | None = None

    def split(self, X: Any, y: Any = None, **params: Any) -> list[Any]:
        """Return the splits of the first call."""
        if self.splits is None:
            self.splits = list(self.cv.split(X, y, **params))
        return self.splits

    @property
    def count(self) -> int:
        """The number of splits."""
        return len(self.splits or ())


class OneSearch:
    """A context for scikit-learn's callbacks in which all batches are one search, whose fits are counted throughout.

    Args:
        search: the estimator that searches.
        root: scikit-learn's context of its whole `fit`.
        fits: how many the search will take.
    """

    def __init__(self, search: BaseSearchCV, root: Any, fits: int) -> None:
        self.search = search
        context = root.subcontext(task_name="search", max_subtasks=fits, sequential_subtasks=False)
        self.context = context.call_on_fit_task_begin(estimator=search)
        self.begun = 0

    def subcontext(self, *, task_name: str, task_id: int) -> Any:
        """Return the context of one fit; scikit-learn counts those of a batch from 0."""
        self.begun += 1
        return self.context.subcontext(task_name=task_name, task_id=self.begun - 1)

    def end(self) -> None:
        """Say that every fit is done."""
        self.context.call_on_fit_task_end(estimator=self.search)


def add_times(rows: list[dict[str, Any]], before: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Return the results of a trial's fits of a step, with the time that they took since the first step."""
    times = ("fit_time", "score_time")
    return [
        {**row, **{name: row[name] + earlier.get(name, 0.0) for name in times}}
        for row, earlier in zip(rows, before or [{}] * len(rows), strict=True)
    ]


def rows_of_failure(error: ValueError) -> list[dict[str, Any]]:
    """Return the results of a batch's fits if scikit-learn raised because all of them failed; [] for another error."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is _warn_or_raise_about_fit_failures.__code__:
            return list(frame.f_locals["results"])
    return []


def failed_fits(calls: Sequence[Any], why: str) -> list[dict[str, Any]] | None:
    """Return scikit-learn's results of failed fits for fits that lost their workers; None for other calls."""
    results = []
    for call, arguments, named in calls:
        if getattr(call, "function", None) is not _fit_and_score:
            return None
        estimator = arguments[0]
        estimator.fit = _Fails(why)
        results.append(call(*arguments, **named))
    return results


class _Fails:
    """Stands in for the `fit` of an estimator whose worker ended.

    Args:
        why: the reason for which it ended.
    """

    def __init__(self, why: str) -> None:
        self.why = why

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(self.why)
