"""scikit-learn's estimators that learn step by step, as trials that report and go on from checkpoints."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from raybo.errors import MissingExtra, ObjectiveError, install_command
from raybo.reports import checkpoint, saving

try:
    from sklearn.base import is_classifier
except ImportError:
    raise MissingExtra(f"estimators in steps need scikit-learn: {install_command('sklearn')}") from None

ESTIMATOR = "estimator.pkl"  # in a checkpoint


def fit_in_steps(
    estimator: Any,
    X: Any,
    y: Any,
    steps: int,
    metrics: Callable[[Any], Mapping[str, Any]],
    *,
    grows: str | None = None,
    by: int = 1,
    save: bool = True,
) -> Iterator[Mapping[str, Any]]:
    """Train an estimator step by step, for an objective to yield what each step came to.

        yield from fit_in_steps(SGDClassifier(**config), X, y, 50, lambda model: {"accuracy": model.score(X2, y2)})

    Inside a trial it goes on from the trial's checkpoint.

    Args:
        estimator: not fitted yet. It is the one that is trained, unless there is a checkpoint.
        X, y: what it learns.
        steps: of a whole run.
        metrics: of the estimator after a step.
        grows: the parameter that counts what is learnt in all, and grows with each step under `warm_start`:
            "n_estimators", or "max_iter" of histogram-based boosting. None for `partial_fit`, a pass over the data.
        by: how much it grows with a step; passes over the data.
        save: whether each step is saved.
    Raises:
        ObjectiveError: the estimator learns in neither way.
    """
    if grows is None and not hasattr(estimator, "partial_fit"):
        raise ObjectiveError(
            f"{type(estimator).__name__} has no partial_fit; if it has warm_start, say what grows: grows='n_estimators'"
        )
    if grows is not None and not {"warm_start", grows} <= set(estimator.get_params()):
        raise ObjectiveError(f"{type(estimator).__name__} does not have both warm_start and {grows}")
    done, kept = 0, checkpoint()
    if kept is not None:
        estimator, done = pickle.loads((kept / ESTIMATOR).read_bytes())  # noqa: S301  # what this trial saved itself
    classes = {"classes": np.unique(y)} if is_classifier(estimator) else {}
    for step in range(done + 1, steps + 1):
        if grows is not None:
            estimator.set_params(warm_start=True, **{grows: step * by}).fit(X, y)
        else:
            for _ in range(by):
                estimator.partial_fit(X, y, **classes)
        if save:
            with saving() as directory:
                (directory / ESTIMATOR).write_bytes(pickle.dumps((estimator, step)))
        yield metrics(estimator)
