"""A scikit-learn search over hyperparameters by raybo's methods, alongside GridSearchCV and RandomizedSearchCV.

    search = RayboSearchCV(SVC(), {"C": scipy.stats.loguniform(1e-3, 1e3)}, n_iter=40, n_jobs=-1)
    search.fit(X, y).best_params_

Everything after the choice of candidates is scikit-learn's own: scorers, pipelines, refitting, results, routed
metadata, callbacks. Candidates are chosen batch by batch, but what a search does once is still done once: all
candidates are scored on the same splits, and one warning at the end covers all failed fits and non-finite scores. With
`n_jobs` other than 1, each fit of a fold is a Ray task; a fit that loses its worker starts again, twice at most, and
then counts as failed. With `steps`, an estimator that learns step by step is scored after each step, and a scheduler
may end it there.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

try:
    import joblib
    from sklearn.exceptions import FitFailedWarning
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.model_selection._validation import (
        _insert_error_scores,
        _warn_or_raise_about_fit_failures,
    )
    from sklearn.utils import check_random_state
except ImportError:
    from raybo.common.errors import MissingExtra, install_command

    raise MissingExtra(f"RayboSearchCV needs scikit-learn: {install_command('sklearn')}") from None

from raybo import methods
from raybo.common.arguments import by_name, whole_number
from raybo.common.errors import MethodError
from raybo.common.messages import first_line, shown
from raybo.common.options import pointing_elsewhere
from raybo.integrations.sklearn_batches import OneSearch, SplitOnce, add_times, failed_fits, rows_of_failure
from raybo.integrations.sklearn_spaces import candidate_of, space_of
from raybo.integrations.sklearn_steps import FoldsInSteps, rank_finished_first
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.searcher import Searcher

if TYPE_CHECKING:
    from raybo.methods import AnyMethod
    from raybo.methods.keywords import MethodOptions
    from raybo.schedulers import AnyScheduler
    from raybo.searcher.priors import Given

OWN = ("n_iter", "n_jobs", "random_state", "verbose")  # arguments that other searches have too
RECOMMENDED = "recommended"  # of `refit`


class RayboSearchCV(BaseSearchCV):  # type: ignore[misc]  # scikit-learn has no types
    """Search for an estimator's hyperparameters by Bayesian optimisation with cross-validation.

    Args:
        estimator: what to tune; a pipeline's parameters are named `step__parameter`.
        param_space: as for RandomizedSearchCV, a dict from the estimator's parameters to lists of choices, ranges or
            scipy distributions with bounds, or a list of such dicts; or a `raybo.Space`. The values of a dict may also
            be `raybo.Float`, `raybo.Integer`, `raybo.Categorical` or `raybo.Ordinal`.
        n_iter: how many configurations to try, at most as many as there are; each takes one fit per fold.
        method: how they are chosen, see `raybo methods`.
        options: the method's options.
        where: rules that every configuration must satisfy, as in `raybo.Space`: `["svc__C * svc__gamma < 10"]`.
        n_points: how many configurations to choose and run together. More of them keep more processors busy, but each
            is chosen knowing fewer results.
        steps: if the estimator learns step by step, how many steps a complete training has. Each candidate learns one
            step in all its folds, its mean score is reported, and the scheduler decides whether it continues.
            `cv_results_` holds its last scores, and in `n_steps` how many steps it has learnt; candidates that the
            scheduler ended rank below those that it did not.
        grows: the parameter that grows with each step under `warm_start`, "n_estimators" or in a pipeline
            "STEP__n_estimators"; None for `partial_fit`, where a step is a pass over the data.
        by: how much the parameter grows with each step; for `partial_fit`, how many passes a step makes over the data.
        scheduler: name of the rule that ends candidates early, see `raybo schedulers`; None for no rule.
        scheduler_options: its options.
        prior: earlier studies of the same job or of similar ones, on other data say: studies, journals, or
            directories of journals, as for `raybo.tune`. The first candidates are where they expect the best.
        random_state: seed of the search; the same one gives the same candidates.
        scoring: as in GridSearchCV; larger is better. Of several metrics, the search maximises the one that `refit`
            names, or the first if `refit` is False or a callable.
        n_jobs: how many fits run at a time; None or 1 runs them here, -1 uses every processor of the Ray that this
            process is connected to, or of one that is started for the search.
        refit: as in GridSearchCV, or "recommended": of one score, that configuration is chosen for which a model of all
            scores expects the best, as `searcher_.recommendation` says. The best mean score is partly the luck of its
            folds.
        verbose, error_score, return_train_score: as in GridSearchCV. A configuration whose score is not a finite number
            counts as failed.
        cv: as in GridSearchCV; it is asked for its splits once per call of `fit`, so that a splitter that shuffles
            gives every candidate the same folds.

    After `fit` it has the attributes of scikit-learn's searches, and `searcher_`, the `raybo.Searcher` that chose the
    candidates.

    Example:
        >>> from raybo.integrations.sklearn import RayboSearchCV
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> space = {"C": raybo.Float(0.01, 100, log=True)}
        >>> search = RayboSearchCV(SVC(), space, n_iter=5, cv=3, random_state=0).fit(X, y)
        >>> bool(search.best_score_ > 0.9)
        True
    """

    def __init__(
        self,
        estimator: Any,
        param_space: Any,
        *,
        n_iter: int = 50,
        method: AnyMethod = "auto",
        options: MethodOptions | None = None,
        where: Sequence[str] | str | None = None,
        n_points: int = 1,
        steps: int | None = None,
        grows: str | None = None,
        by: int = 1,
        scheduler: AnyScheduler | None = None,
        scheduler_options: Mapping[str, Any] | None = None,
        prior: Given = (),
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
        self.where = where
        self.n_points = n_points
        self.steps = steps
        self.grows = grows
        self.by = by
        self.scheduler = scheduler
        self.scheduler_options = scheduler_options
        self.prior = prior
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **params: Any) -> RayboSearchCV:
        """Search, and refit the best configuration on all of X and y.

        Raises:
            ValueError: n_iter, n_points, steps, by or random_state is out of range, the scheduler has no steps to
                judge, or `grows` is searched for too; or as in GridSearchCV.
            RayboError: the space, the method, the scheduler or an option is wrong, or the estimator does not learn in
                steps.
        """
        self.searcher_ = self._new_searcher()  # refused before a Ray is started for it
        with self._workers():
            super().fit(X, y, **params)
        return self

    def _new_searcher(self) -> Searcher:
        if self.steps is None and (self.scheduler is not None or self.grows is not None or self.by != 1):
            raise ValueError(
                "scheduler, grows and by need an estimator that learns step by step; say how many steps with steps="
            )
        has_one_score = self.scoring is None or isinstance(self.scoring, str)
        if has_one_score and isinstance(self.refit, str) and self.refit not in (RECOMMENDED, "score", self.scoring):
            raise ValueError(f"refit must be True, False, a function or {RECOMMENDED!r}, got {shown(self.refit)}")
        for name in ("n_iter", "n_points", "by", *(["steps"] if self.steps is not None else [])):
            whole_number(getattr(self, name), name, error=ValueError)
        options = {} if self.options is None else by_name(self.options, "options", "the method's options by name")
        if several := [name for name in ("metrics", "constraints") if name in options]:
            raise MethodError(
                f"RayboSearchCV searches for one score and takes no {several[0]}; name one of several scores with "
                f"refit=, or tune an objective that declares {several[0]}="
            )
        with pointing_elsewhere(options, dict.fromkeys(OWN, "give it to RayboSearchCV itself")):
            methods.make(self.method, **options)  # first, as an option may be called like an argument of the searcher
        try:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        except Exception as error:  # noqa: BLE001  # a user's object may raise anything
            raise ValueError(f"random_state: {first_line(error)}") from None
        space, trials = space_of(self.param_space, self.where), int(self.n_iter)
        if space.cube.size < trials:
            trials = int(space.cube.size)
            warnings.warn(
                f"the space has {trials} configurations, fewer than n_iter={self.n_iter}; {trials} trials are run",
                stacklevel=3,
            )
        return Searcher(
            space,
            self.method,
            "max",
            seed,
            trials=trials,
            steps=self.steps,
            scheduler=self.scheduler,
            scheduler_options=self.scheduler_options,
            prior=self.prior,
            **cast(Any, options),
        )

    def _run_search(self, evaluate_candidates: Callable[..., dict[str, Any]], *, callback_ctx: Any = None) -> None:
        searcher = self.searcher_
        planned = searcher.history.planned
        assert planned is not None
        inside = inspect.getclosurevars(evaluate_candidates).nonlocals
        splits = SplitOnce(getattr(self, "_checked_cv_orig", None) or inside["cv_orig"])  # cv_orig: before 1.8
        folds = None
        if self.steps is not None:
            folds = FoldsInSteps(inside["base_estimator"], self.steps, self.grows, self.by)
            inside["fit_and_score_kwargs"]["return_estimator"] = True
        n_splits = inside["n_splits"] if "n_splits" in inside else self.n_splits_  # the first: before 1.7
        fits = planned * n_splits * (self.steps or 1)
        callbacks = None if callback_ctx is None else OneSearch(self, callback_ctx, fits)
        results: dict[str, Any] = {}  # which is scikit-learn's own, as of its last call
        found: dict[int, list[dict[str, Any]]] = {}  # of each trial, what its fits came to
        trials: list[Trial] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitFailedWarning)  # one warning covers all at the end
            while trials := self._batch(searcher, trials, planned):
                batch = [{} if trial.step else self._candidate(trial) for trial in trials]  # set with the first step
                if folds is not None:
                    folds.begin(trials, n_splits)
                try:
                    results = evaluate_candidates(
                        batch, splits, **({} if callbacks is None else {"callback_ctx": callbacks})
                    )
                    new = results["rows"][-len(batch) * splits.count :]
                except ValueError as error:  # scikit-learn gives a search up if no fit of a batch succeeds
                    new = [] if self.error_score == "raise" else rows_of_failure(error)
                    if not new:
                        raise
                for i, trial in enumerate(trials):
                    own = new[i * splits.count : (i + 1) * splits.count]
                    if folds is not None:
                        folds.keep(trial, [row.pop("estimator") for row in own])
                    found[trial.number] = add_times(own, found.get(trial.number))
                trials = self._learn(searcher, trials, new)
                if folds is not None:
                    folds.drop_ended(searcher.trials)
        for trial in searcher.trials:
            if trial.state is State.PAUSED:
                searcher.prune(trial, "the search ended before it was its turn")
        if callbacks is not None:
            callbacks.end()
        rows = [row for number in sorted(found) for row in found[number]]
        _warn_or_raise_about_fit_failures(rows, self.error_score)
        if callable(self.scoring):
            _insert_error_scores(rows, self.error_score)
        results.clear()
        candidates = [self._candidate(trial) for trial in searcher.trials]
        more = None if folds is None else {"n_steps": [trial.step for trial in searcher.trials]}
        results.update(super()._format_results(candidates, splits.count, rows, more))
        if folds is not None:
            rank_finished_first(results, [trial.state is State.FINISHED for trial in searcher.trials])

    def _batch(self, searcher: Searcher, going_on: list[Trial], planned: int) -> list[Trial]:
        """Return the trials to fit next: those that continue, those that are promoted, and new ones."""
        batch = list(going_on)
        while len(batch) < self.n_points:
            trial = searcher.promoted()
            if trial is None and len(searcher.trials) < planned:
                trial = searcher.ask()
            if trial is None:
                break
            batch.append(trial)
        return batch

    def _select_best_index(self, refit: Any, refit_metric: Any, results: Any) -> int:
        """Return the index of the candidate to refit, which scikit-learn asks for."""
        if refit == RECOMMENDED and not self.multimetric_:
            return self.searcher_.recommended.number
        return int(super()._select_best_index(refit, refit_metric, results))

    def _candidate(self, trial: Trial) -> dict[str, Any]:
        """Return the estimator's parameters of a trial."""
        candidate = candidate_of(trial.config)
        if self.grows in candidate:
            raise ValueError(f"{self.grows} grows with each step; take it out of param_space")
        return candidate

    def _learn(self, searcher: Searcher, trials: Sequence[Trial], rows: Sequence[Mapping[str, Any]]) -> list[Trial]:
        """Tell or report the mean scores of a batch; return the trials that continue."""
        first = next((row["test_scores"] for row in rows if row["fit_error"] is None), None)
        if callable(self.scoring) and isinstance(first, dict):
            self._check_refit_for_multimetric(first)  # as scikit-learn does, which waits for the end of the search
        scores = np.array([self._score(row) for row in rows], dtype=np.float64).reshape(len(trials), -1)
        folds = len(rows) // len(trials)
        going_on = []
        for i, (trial, score) in enumerate(zip(trials, np.average(scores, axis=1).tolist(), strict=True)):
            errors = [row["fit_error"] for row in rows[i * folds : (i + 1) * folds] if row["fit_error"]]
            if not math.isfinite(score):
                why = f": {errors[0].strip().splitlines()[-1]}" if errors else ""
                searcher.fail(trial, f"its mean test score is {score}{why}")
            elif self.steps is None or errors:
                searcher.tell(trial, score)
            elif self._goes_on(searcher, trial, score):
                going_on.append(searcher.trials[trial.number])
        return going_on

    def _goes_on(self, searcher: Searcher, trial: Trial, score: float) -> bool:
        """Report a step; True if another one follows at once."""
        verdict = searcher.report(trial, score)
        if searcher.trials[trial.number].step == self.steps:
            searcher.tell(trial, score)
        elif verdict.prune:
            searcher.prune(trial)
        elif verdict.pause:
            searcher.pause(trial)
        else:
            return True
        return False

    def _score(self, row: Mapping[str, Any]) -> Any:
        """Return the score that is searched for, of one fit's scores."""
        scores = row["test_scores"]
        if not isinstance(scores, dict):
            return scores
        return scores[self.refit] if isinstance(self.refit, str) else next(iter(scores.values()))

    def _format_results(self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None) -> Any:
        """Called by scikit-learn after each batch with every fit so far; results are made of them once, at the end."""
        return {"rows": out}

    @contextlib.contextmanager
    def _workers(self) -> Iterator[None]:
        """Run joblib's fits on Ray, if several run at a time and this is not a task of Ray itself."""
        if self.n_jobs in (None, 1):
            yield
            return
        from raybo.engine.ray.connection import is_inside_ray, ray_for_study

        if is_inside_ray():  # which holds the processors that the fits would wait for
            yield
            return
        from raybo.integrations.joblib_tasks import RayTasks

        with (
            ray_for_study(None, None) as ray,
            joblib.parallel_config(RayTasks(ray, failed_fits), n_jobs=self.n_jobs),
        ):
            yield
