"""scikit-learn estimators that learn step by step: as trials that report and resume from checkpoints, and in folds."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from raybo.common.errors import MissingExtra, ObjectiveError, install_command
from raybo.job.reports import checkpoint, saving
from raybo.record.states import OPEN
from raybo.record.trial import Trial

try:
    from sklearn.base import clone, is_classifier
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
    """Train an estimator step by step, yielding the result of each step for an objective to pass on.

    In an objective::

        yield from fit_in_steps(SGDClassifier(**config), X, y, 50, lambda model: {"accuracy": model.score(X2, y2)})

    Inside a trial it continues from the trial's checkpoint.

    Args:
        estimator: not fitted yet; it is trained in place, unless there is a checkpoint.
        X, y: the training data.
        steps: how many steps a complete training has.
        metrics: a function of the estimator that returns the metrics after a step.
        grows: the parameter that grows with each step under `warm_start`:
            "n_estimators", or "max_iter" of histogram-based boosting. None for `partial_fit`, where a step is a pass
            over the data.
        by: how much the parameter grows with each step; for `partial_fit`, how many passes a step makes over the data.
        save: whether each step is saved as a checkpoint.
    Raises:
        ObjectiveError: the estimator learns in neither way.
    Example:
        >>> from raybo.integrations.sklearn_steps import fit_in_steps
        >>> from sklearn.linear_model import SGDClassifier
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
        >>> model = SGDClassifier(random_state=0)
        >>> len(list(fit_in_steps(model, X, y, 3, lambda model: {"accuracy": model.score(X, y)})))
        3
    """
    require_steps(estimator, grows)
    done, kept = 0, checkpoint()
    if kept is not None:
        estimator, done = pickle.loads((kept / ESTIMATOR).read_bytes())  # noqa: S301  # what this trial saved itself
    for step in range(done + 1, steps + 1):
        learn(estimator, X, y, step, grows, by)
        if save:
            with saving() as directory:
                (directory / ESTIMATOR).write_bytes(pickle.dumps((estimator, step)))
        yield metrics(estimator)


def require_steps(estimator: Any, grows: str | None) -> None:
    """Raises ObjectiveError if an estimator learns neither by `partial_fit` nor by growing under `warm_start`."""
    name = type(estimator).__name__
    if grows is None and not hasattr(estimator, "partial_fit"):
        raise ObjectiveError(
            f"{name} has no partial_fit; if it has warm_start, say what grows: grows='n_estimators', or in a pipeline "
            "grows='STEP__n_estimators'"
        )
    if grows is not None and not {_warm_start(grows), grows} <= set(estimator.get_params()):
        raise ObjectiveError(f"{name} does not have both {_warm_start(grows)} and {grows}")


def learn(estimator: Any, X: Any, y: Any, step: int, grows: str | None, by: int, **fit_params: Any) -> None:
    """Have an estimator that has learnt the previous steps learn one more.

    Args:
        estimator: the estimator.
        X, y: the training data.
        step: which one, from 1.
        grows, by: as in `fit_in_steps`.
        fit_params: for its `fit` or `partial_fit`.
    """
    if grows is not None:
        estimator.set_params(**{_warm_start(grows): True, grows: step * by}).fit(X, y, **fit_params)
        return
    classes = {"classes": _classes_of(estimator, y)} if is_classifier(estimator) else {}
    for _ in range(by):
        estimator.partial_fit(X, y, **classes, **fit_params)


def _classes_of(estimator: Any, y: Any) -> Any:
    """Return the classes that `partial_fit` is to expect; of several outputs for each, of labels their positions."""
    y = np.asarray(y)
    if y.ndim == 1 or (y.shape[1] == 1 and not hasattr(estimator, "estimator")):
        return np.unique(y)
    outputs = [np.unique(column) for column in y.T]
    return outputs if hasattr(estimator, "estimator") else np.arange(len(outputs))


def _warm_start(grows: str) -> str:
    """The parameter `warm_start` of the estimator, or of the step of a pipeline, that has the one that grows."""
    of, mark, _ = grows.rpartition("__")
    return f"{of}{mark}warm_start"


class Steps:
    """Stands in for an estimator's `fit`, for one call: some steps of its learning.

    scikit-learn's evaluation of a fold fits and scores; with this, it scores what has been fitted up to a step.

    Args:
        estimator: the one whose `fit` this replaces from now on.
        steps: which ones.
        grows, by: as in `fit_in_steps`.
    """

    def __init__(self, estimator: Any, steps: range, grows: str | None, by: int) -> None:
        self.estimator, self.steps, self.grows, self.by = estimator, steps, grows, by
        estimator.fit = self

    def __call__(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Learn them; returns the estimator, which has its own `fit` again."""
        del self.estimator.fit
        for step in self.steps:
            learn(self.estimator, X, y, step, self.grows, self.by, **fit_params)
        return self.estimator


class FoldsInSteps:
    """The estimators that scikit-learn fits: for each trial one per fold, which learn a step at a time.

    scikit-learn clones the search's estimator for each fold, and once more to refit it. Here the clones for the folds
    are the estimators that have learnt the previous steps, and the last clone learns all steps at once.

    Args:
        base: the estimator that scikit-learn clones, itself a clone of the user's.
        steps, grows, by: as in `fit_in_steps`.
    Raises:
        ObjectiveError: the estimator does not learn in steps.
    """

    def __init__(self, base: Any, steps: int, grows: str | None, by: int) -> None:
        require_steps(base, grows)
        self.steps, self.grows, self.by = steps, grows, by
        self._fresh = clone(base)
        self._kept: dict[int, list[Any]] = {}  # by trial
        self._handed: Iterator[Any] = iter(())
        base.__sklearn_clone__ = self._hand_out

    def begin(self, trials: Sequence[Trial], folds: int) -> None:
        """Have the next step of these trials ready to be handed out, fold by fold."""
        handed = []
        for trial in trials:
            own = self._kept.pop(trial.number, None) or [clone(self._fresh) for _ in range(folds)]
            for estimator in own:
                Steps(estimator, range(trial.step + 1, trial.step + 2), self.grows, self.by)
            handed += own
        self._handed = iter(handed)

    def keep(self, trial: Trial, estimators: list[Any]) -> None:
        """Keep the estimators that have learnt a step, wherever they did, for the next step."""
        self._kept[trial.number] = estimators

    def drop_ended(self, trials: Sequence[Trial]) -> None:
        """Forget the estimators of trials that have ended."""
        self._kept = {number: own for number, own in self._kept.items() if trials[number].state in OPEN}

    def _hand_out(self) -> Any:
        """The next fold's; once the search is over, one that learns everything at once."""
        found = next(self._handed, None)
        return self._whole() if found is None else found

    def _whole(self) -> Any:
        """A new estimator that learns everything at once."""
        made = clone(self._fresh)
        if self.grows is not None:
            return made.set_params(**{self.grows: self.steps * self.by})
        Steps(made, range(1, self.steps + 1), None, self.by)
        return made


def rank_finished_first(results: dict[str, Any], has_finished: Sequence[bool]) -> None:
    """In a search's results, rank candidates not trained to their end below those that were, and failed ones last."""
    for key in [key for key in results if key.startswith("rank_test_")]:
        mean = results[f"mean_test_{key.removeprefix('rank_test_')}"]
        place = np.where(np.isnan(mean), 2, np.where(has_finished, 0, 1))
        is_above = (place < place[:, None]) | ((place == place[:, None]) & (mean > mean[:, None]))
        results[key] = 1 + is_above.sum(axis=1, dtype=np.int32)
