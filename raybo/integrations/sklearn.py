"""A scikit-learn search over hyperparameters by raybo's methods, beside GridSearchCV and RandomizedSearchCV.

    search = RayboSearchCV(SVC(), {"C": raybo.Float(1e-3, 1e3, log=True)}, n_iter=40, n_jobs=-1)
    search.fit(X, y).best_params_

Everything after the choice of candidates is scikit-learn's own: splits, scorers, pipelines, refitting, results, routed
metadata. With `n_jobs` other than 1, each fit of a fold is a Ray task.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

try:
    import joblib
    from sklearn.exceptions import FitFailedWarning
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state
except ImportError:
    from raybo.errors import MissingExtra

    raise MissingExtra("RayboSearchCV needs scikit-learn: pip install 'raybo[sklearn]'") from None

from raybo.searcher import Searcher
from raybo.space import Categorical, Space


class RayboSearchCV(BaseSearchCV):  # type: ignore[misc]  # scikit-learn has no types
    """Search for an estimator's hyperparameters by Bayesian optimisation with cross-validation.

    Args:
        estimator: what is tuned; a pipeline's parameters are named `step__parameter`.
        param_space: a dict from the estimator's parameters to `raybo.Float`, `raybo.Integer`, `raybo.Categorical` or a
            list of choices; or a `raybo.Space`.
        n_iter: how many configurations are tried; each takes a fit a fold.
        method: how they are chosen, see `raybo methods`.
        options: the method's options.
        n_points: configurations that are chosen and run together. More keep more processors busy, and each is chosen
            knowing less.
        random_state: seed of the search; the same one gives the same candidates.
        scoring: as in GridSearchCV; larger is better. Of several metrics the one that `refit` names is searched for.
        n_jobs: fits at a time; None or 1 runs them here, -1 uses every processor of the Ray that this process is
            connected to, or of one that is started for the search.
        refit, cv, verbose, error_score, return_train_score: as in GridSearchCV. A configuration whose score is not a
            finite number counts as failed.

    After `fit` it has the attributes of scikit-learn's searches, and `searcher_`, the `raybo.Searcher` that chose.
    """

    def __init__(
        self,
        estimator: Any,
        param_space: Any,
        *,
        n_iter: int = 50,
        method: str = "auto",
        options: Mapping[str, Any] | None = None,
        n_points: int = 1,
        random_state: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        error_score: Any = math.nan,
        return_train_score: bool = False,
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch="n_jobs",  # what is dispatched runs
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.param_space = param_space
        self.n_iter = n_iter
        self.method = method
        self.options = options
        self.n_points = n_points
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **params: Any) -> RayboSearchCV:
        """Search, and refit the best configuration on all of X and y.

        Raises:
            ValueError: n_iter, n_points or random_state is out of range, or several metrics without a name in `refit`.
            RayboError: the space, the method or an option is wrong.
        """
        with self._workers():
            super().fit(X, y, **params)
        return self

    def _run_search(self, evaluate_candidates: Callable[[list[dict[str, Any]]], Any]) -> None:
        for name in ("n_iter", "n_points"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number from 1, got {value!r}")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        space = space_of(self.param_space)
        searcher = Searcher(space, self.method, "max", seed, trials=self.n_iter, **(self.options or {}))
        results: dict[str, Any] = {}
        lost: list[int] = []  # trials of which no fit succeeded, in batches where none did
        all_failed: ValueError | None = None
        while len(searcher.trials) < self.n_iter:
            together = min(self.n_points, self.n_iter - len(searcher.trials))
            trials = [searcher.ask() for _ in range(together)]
            try:
                results = evaluate_candidates([trial.config for trial in trials])
            except ValueError as error:  # which scikit-learn takes for the failure of the whole search
                if self.error_score == "raise" or "fits failed" not in str(error):
                    raise
                all_failed = error
                warnings.warn(str(error), FitFailedWarning, stacklevel=2)
                lost += [searcher.fail(trial, "all its fits failed").number for trial in trials]
                continue
            scores = results[f"mean_test_{self._metric(results)}"][-together:]
            for trial, score in zip(trials, scores, strict=True):
                if math.isfinite(score):
                    searcher.tell(trial, float(score))
                else:
                    searcher.fail(trial, f"its mean test score is {score}")
        if all_failed is not None:
            if not results:
                raise all_failed
            results.update(self._with_lost(lost, [searcher.trials[number].config for number in lost]))
        del self._formatted
        self.searcher_ = searcher

    def _format_results(self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None) -> Any:
        """scikit-learn's own, which also remembers what it was given: rows may have to be added to it."""
        self._formatted = (list(candidate_params), n_splits, list(out))
        return super()._format_results(candidate_params, n_splits, out, more_results)

    def _with_lost(self, lost: list[int], configs: list[dict[str, Any]]) -> dict[str, Any]:
        """The results with rows, at their places, for candidates of which no fit succeeded."""
        candidates, n_splits, out = self._formatted
        like = next(fold for fold in out if fold["fit_error"] is None)
        nothing = {
            key: dict.fromkeys(value, self.error_score) if isinstance(value, dict) else self.error_score
            for key, value in like.items()
        }
        for number, config in zip(lost, configs, strict=True):
            candidates.insert(number, config)
            out[number * n_splits : number * n_splits] = [nothing] * n_splits
        return dict(super()._format_results(candidates, n_splits, out))

    def _metric(self, results: Mapping[str, Any]) -> str:
        names = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
        if names == ["score"]:
            return "score"
        if not isinstance(self.refit, str) or self.refit not in names:
            raise ValueError(
                f"of several metrics ({', '.join(names)}), refit must name the one to search for, got {self.refit!r}"
            )
        return self.refit

    @contextlib.contextmanager
    def _workers(self) -> Iterator[None]:
        """The Ray on which joblib runs the fits, where several run at a time."""
        if self.n_jobs in (None, 1):
            yield
            return
        from raybo.engine.connection import ray_for_study
        from raybo.integrations.joblib_tasks import RayTasks

        with ray_for_study(None, None) as ray, joblib.parallel_config(RayTasks(ray), n_jobs=self.n_jobs):
            yield


def space_of(param_space: Any) -> Space:
    """The space that a user means; lists are choices.

    Raises:
        SpaceError: it is none.
    """
    if isinstance(param_space, Space):
        return param_space
    if not isinstance(param_space, Mapping):
        return Space(param_space)
    return Space({k: Categorical(list(v)) if isinstance(v, (list, tuple)) else v for k, v in param_space.items()})
