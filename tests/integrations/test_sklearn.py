"""RayboSearchCV is a search like scikit-learn's own: its checks, its results, its errors; and folds run on Ray."""

from __future__ import annotations

import os
import pickle
import warnings

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import raybo
from raybo.common.errors import MethodError, SpaceError
from raybo.integrations.sklearn import RayboSearchCV, space_of
from tests.priors import study

X, Y = make_classification(80, 6, random_state=0)
C = {"C": raybo.Float(1e-3, 1e3, log=True)}


def quick(estimator=None, space=C, **keywords):
    estimator = LogisticRegression() if estimator is None else estimator
    return RayboSearchCV(estimator, space, **{"n_iter": 4, "method": "random", "random_state": 0, "cv": 3, **keywords})


CHECKED = [
    quick(LogisticRegression(C=0.1), {"C": [0.1, 1.0]}, n_iter=2, cv=2, error_score="raise"),
    quick(Ridge(), {"alpha": [0.1, 1.0]}, n_iter=2, cv=2, error_score="raise"),
]


def as_for_its_own(search):
    """What scikit-learn's own searches fail too: a warning about y of two axes, for regressors."""
    return {"check_supervised_y_2d": "DataConversionWarning not caught"} if is_regressor(search) else {}


@parametrize_with_checks(CHECKED, expected_failed_checks=as_for_its_own)
@pytest.mark.filterwarnings("ignore")  # the checks provoke them
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


# ---- what a search leaves


def test_results_equal_those_of_a_grid_search():
    ours = quick(n_iter=5, return_train_score=True).fit(X, Y)
    grid = GridSearchCV(LogisticRegression(), {"C": list(ours.cv_results_["param_C"])}, cv=3, return_train_score=True)
    grid.fit(X, Y)
    assert set(ours.cv_results_) == set(grid.cv_results_)
    for key in grid.cv_results_:
        if "time" not in key and key != "params":
            np.testing.assert_array_equal(ours.cv_results_[key], grid.cv_results_[key])
    assert ours.cv_results_["params"] == grid.cv_results_["params"]
    assert ours.best_index_ == grid.best_index_
    assert ours.best_score_ == grid.best_score_
    assert ours.best_params_ == grid.best_params_
    np.testing.assert_array_equal(ours.predict(X), grid.predict(X))
    np.testing.assert_array_equal(ours.classes_, grid.classes_)
    assert (ours.n_splits_, ours.n_features_in_, ours.multimetric_) == (3, 6, False)
    assert ours.searcher_.best.value == ours.best_score_


def test_tuning_a_pipeline_improves_on_the_first():
    pipeline = make_pipeline(StandardScaler(), SVC())
    space = {
        "svc__C": raybo.Float(1e-3, 1e3, log=True),
        "svc__gamma": raybo.Float(1e-4, 10, log=True),
        "standardscaler": [StandardScaler(), "passthrough"],
    }
    search = quick(pipeline, space, n_iter=16, method="auto").fit(X, Y)
    scores = search.cv_results_["mean_test_score"]
    assert search.best_score_ == scores.max() > scores[0]
    assert search.best_estimator_.score(X, Y) >= 0.85


def test_equal_seeds_give_equal_candidates():
    one, again, other = (quick(method="auto", n_iter=12, random_state=s).fit(X, Y) for s in (1, 1, 2))
    assert one.cv_results_["params"] == again.cv_results_["params"] != other.cv_results_["params"]
    values = [trial.value for trial in one.searcher_.trials]
    np.testing.assert_array_equal(values, one.cv_results_["mean_test_score"])


def test_batches_stop_at_n_iter():
    search = quick(n_iter=7, n_points=3, method="auto").fit(X, Y)
    assert len(search.cv_results_["params"]) == 7
    assert len({c["C"] for c in search.cv_results_["params"]}) == 7


def test_method_receives_options_and_the_planned_number():
    searcher = quick(method="gp-ucb", options={"initial": 2, "solver": "cg"}).fit(X, Y).searcher_
    assert (searcher.method.initial, searcher.method.solver) == (2, "cg")
    assert searcher.history.planned == 4
    assert searcher.mode == "max"


def test_train_scores_are_returned_if_requested():
    assert "mean_train_score" in quick(return_train_score=True).fit(X, Y).cv_results_
    assert "mean_train_score" not in quick().fit(X, Y).cv_results_


def test_search_clones_pickles_and_keeps_estimator_type():
    search = quick()
    assert clone(search).get_params()["n_iter"] == 4
    assert is_classifier(search)
    assert is_regressor(quick(Ridge(), {"alpha": [1.0, 2.0]}))
    fitted = pickle.loads(pickle.dumps(search.fit(X, Y)))  # noqa: S301  # our own
    np.testing.assert_array_equal(fitted.predict(X), search.predict(X))


def test_without_labels_and_without_refitting():
    search = quick(KMeans(n_init=1, random_state=0), {"n_clusters": raybo.Integer(2, 5)}, refit=False).fit(X)
    assert search.best_params_["n_clusters"] in (2, 3, 4, 5)
    assert not hasattr(search, "best_estimator_")


def test_the_search_maximises_the_refit_metric():
    metrics = ["accuracy", "neg_log_loss"]
    search = quick(scoring=metrics, refit="neg_log_loss", method="auto", n_iter=8).fit(X, Y)
    assert search.searcher_.best.value == search.cv_results_["mean_test_neg_log_loss"].max() == search.best_score_


def test_refit_recommended_is_not_fooled_by_luck():
    def scorer(estimator, X, y):
        luck = np.random.default_rng(abs(hash(estimator.C)) % 2**32).normal()
        return -0.05 * np.log10(estimator.C) ** 2 + 0.2 * luck

    search = quick(scoring=scorer, refit="recommended", n_iter=16).fit(X, Y)
    scores = search.cv_results_["mean_test_score"]
    assert search.best_index_ == search.searcher_.recommended.number != scores.argmax()
    assert search.best_score_ == scores[search.best_index_]
    assert search.best_estimator_.C == search.best_params_["C"]
    assert abs(np.log10(search.best_params_["C"])) < 1.5
    with pytest.raises(ValueError, match="refit must be set to a scorer key or a callable"):
        quick(scoring=["accuracy", "neg_log_loss"], refit="recommended").fit(X, Y)


@pytest.mark.parametrize("refit", [False, lambda results: int(results["mean_test_neg_log_loss"].argmin())])
def test_without_refit_the_first_metric_is_maximised(refit):
    search = quick(scoring=["accuracy", "neg_log_loss"], refit=refit).fit(X, Y)
    assert search.searcher_.best.value == search.cv_results_["mean_test_accuracy"].max()
    assert search.multimetric_
    assert hasattr(search, "best_params_") is bool(refit)
    if refit:
        assert search.best_index_ == search.cv_results_["mean_test_neg_log_loss"].argmin()


def test_a_scorer_that_returns_a_dict_needs_refit():
    fits = []

    def scorer(estimator, X, y):
        fits.append(estimator.C)
        return {"hits": float((estimator.predict(X) == y).mean())}

    search = quick(scoring=scorer, refit="hits").fit(X, Y)
    assert search.best_score_ == search.cv_results_["mean_test_hits"].max() == search.searcher_.best.value
    assert not hasattr(quick(scoring=scorer, refit=False).fit(X, Y), "best_params_")
    fits.clear()
    with pytest.raises(ValueError, match="refit must be set to a scorer key or a callable"):
        quick(scoring=scorer, refit=True).fit(X, Y)
    assert len(set(fits)) == 1


class Moody(ClassifierMixin, BaseEstimator):
    """Fails or scores NaN, as its mood says."""

    def __init__(self, mood=0.0):
        self.mood = mood

    def fit(self, X, y):
        if self.mood > 0.5:
            raise ValueError("not today")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite:UserWarning")
@pytest.mark.parametrize("points", [1, 3])
def test_failed_fits_are_failed_trials(points):
    search = quick(Moody(), {"mood": raybo.Float(0, 1)}, n_iter=8, n_points=points, method="auto")
    with pytest.warns(FitFailedWarning):
        search.fit(X, Y)
    failed = np.array([str(trial.state) == "failed" for trial in search.searcher_.trials])
    assert 0 < failed.sum() < 8
    assert search.best_params_["mood"] <= 0.5
    assert [c["mood"] for c in search.cv_results_["params"]] == [t.config["mood"] for t in search.searcher_.trials]
    np.testing.assert_array_equal(np.isnan(search.cv_results_["mean_test_score"]), failed)
    np.testing.assert_array_equal(search.cv_results_["param_mood"].data.astype(float) > 0.5, failed)
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1


@pytest.mark.parametrize("error_score", ["raise", np.nan])
def test_where_every_fit_fails_the_search_says_so(error_score):
    search = quick(Moody(), {"mood": raybo.Float(0.6, 1)}, error_score=error_score)
    message = "(?s)All the 12 fits failed.*12 fits failed with the following error.*not today"
    with pytest.raises(ValueError, match="not today" if error_score == "raise" else message):
        search.fit(X, Y)


@pytest.mark.parametrize("points", [1, 4])
def test_failed_fits_are_told_once_and_all_together(points):
    search = quick(Moody(), {"mood": raybo.Float(0, 1)}, n_iter=8, n_points=points)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, Y)
    failed = sum(str(trial.state) == "failed" for trial in search.searcher_.trials)
    fits, scores = caught
    assert fits.category is FitFailedWarning
    assert f"{3 * failed} fits failed out of a total of 24" in str(fits.message)
    assert str(scores.message).count("nan") == failed
    assert "not today" in next(t.reason for t in search.searcher_.trials if t.reason)


def test_error_score_is_the_value_of_failed_fits():
    with pytest.warns(FitFailedWarning, match="will be set to -3"):
        search = quick(Moody(), {"mood": raybo.Float(0, 1)}, n_iter=6, error_score=-3).fit(X, Y)
    values = [trial.value for trial in search.searcher_.trials]
    np.testing.assert_array_equal(values, search.cv_results_["mean_test_score"])
    assert -3 in values


def test_one_fold_without_a_score_is_one_warning():
    calls = []

    def scorer(estimator, X, y):
        calls.append(1)
        return np.nan if len(calls) == 5 else 1.0

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quick(scoring=scorer, n_iter=5).fit(X, Y)
    assert [str(w.message).count("nan") for w in caught] == [1]


# ---- splits


def test_every_candidate_is_scored_on_the_same_folds():
    search = quick(space={"C": raybo.Float(1.0, 1.0 + 1e-12)}, n_iter=6, cv=KFold(5, shuffle=True)).fit(X, Y)
    assert len(set(search.cv_results_["mean_test_score"])) == 1
    folds = {tuple(search.cv_results_[f"split{i}_test_score"]) for i in range(5)}
    assert all(len(set(scores)) == 1 for scores in folds)


class Once:
    """A splitter that can be asked one time."""

    def __init__(self):
        self.splits = iter(KFold(3).split(X))

    def split(self, X, y=None, groups=None):
        yield from self.splits

    def get_n_splits(self, X=None, y=None, groups=None):
        return 3


@pytest.mark.parametrize("cv", [Once, lambda: KFold(3).split(X), lambda: list(KFold(3).split(X))])
def test_a_splitter_may_split_only_once(cv):
    np.testing.assert_array_equal(
        quick(cv=cv()).fit(X, Y).cv_results_["mean_test_score"],
        quick(cv=KFold(3)).fit(X, Y).cv_results_["mean_test_score"],
    )


def test_each_fit_splits_anew():
    search = quick(space={"C": [1.0]}, n_iter=1, cv=KFold(4, shuffle=True, random_state=np.random.RandomState(0)))
    scores = {tuple(search.fit(X, Y).cv_results_[f"split{i}_test_score"][0] for i in range(4)) for _ in range(3)}
    assert len(scores) == 3


def test_no_splits_or_a_wrong_number_are_refused():
    with pytest.raises(ValueError, match="No fits were performed"):
        quick(cv=iter([])).fit(X, Y)

    class Wrong(Once):
        def get_n_splits(self, X=None, y=None, groups=None):
            return 2

    with pytest.raises(ValueError, match="Expected 2 splits, got 3"):
        quick(cv=Wrong()).fit(X, Y)


# ---- callbacks


class ReportReceiver:
    """Records the tasks of a search, as scikit-learn 1.9 announces them."""

    def __init__(self):
        self.begun, self.ended = [], []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **_):
        self.begun.append((context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, **_):
        self.ended.append((context.task_name, context.task_id))


@pytest.mark.parametrize("points", [1, 3])
def test_callbacks_hear_of_every_fit(points):
    search, listener = quick(n_iter=4, n_points=points), ReportReceiver()
    if not hasattr(search, "set_callbacks"):
        pytest.skip("this scikit-learn has no callbacks")
    search.set_callbacks(listener).fit(X, Y)
    evaluated = [number for name, number in listener.begun if name == "candidate-split-evaluation"]
    assert evaluated == list(range(12))
    assert sorted(map(str, listener.begun)) == sorted(map(str, listener.ended))
    assert [name for name, _ in listener.begun].count("search") == 1


def test_wrong_use_is_told():
    for name, value in {"n_iter": 0, "n_points": 1.5}.items():
        with pytest.raises(ValueError, match=f"{name} must be a whole number from 1"):
            quick(**{name: value}).fit(X, Y)
    with pytest.raises(MethodError, match="there is no method 'autto'; did you mean 'auto'"):
        quick(method="autto").fit(X, Y)
    with pytest.raises(SpaceError, match="a space needs at least one parameter"):
        quick(space={"C": 3}).fit(X, Y)
    for name, value in {"metrics": {"accuracy": "max", "recall": "max"}, "constraints": {"size": "<= 3"}}.items():
        with pytest.raises(MethodError, match=f"RayboSearchCV searches for one score and takes no {name}; name one of"):
            quick(options={name: value}).fit(X, Y)
    with pytest.raises(MethodError, match="random has no option 'trials'"):
        quick(options={"trials": 3}).fit(X, Y)


def test_wrong_arguments_are_refused_before_any_fit(monkeypatch):
    monkeypatch.setattr(LogisticRegression, "fit", lambda *_: pytest.fail("it was fitted"))
    for keywords, error in (
        ({"space": {"C": stats.expon()}}, SpaceError),
        ({"options": {"initail": 3}, "method": "ei"}, MethodError),
        ({"scoring": ["accuracy", "recall"], "refit": True}, ValueError),
        ({"n_iter": -1}, ValueError),
    ):
        with pytest.raises(error):
            quick(**keywords).fit(X, Y)


# ---- spaces


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (raybo.Float(0, 1), raybo.Float(0, 1)),
        (["rbf", "poly", "rbf"], raybo.Categorical(["rbf", "poly"])),
        ([1, True, 1.0, 1], raybo.Categorical([1, True, 1.0])),
        (((1, 1), (1, 2)), raybo.Categorical([(1, 1), (1, 2)])),
        (range(2, 11), raybo.Integer(2, 10)),
        (range(10, 0, -3), raybo.Integer(1, 10, step=3)),
        (range(5, 6), raybo.Integer(5, 5)),
        (np.array([0.1, 1.0, 10.0]), raybo.Ordinal([0.1, 1.0, 10.0])),
        ([64, 32, 8], raybo.Ordinal([64, 32, 8])),
        ([8, 64, 32], raybo.Categorical([8, 64, 32])),
        (np.array([1, 2]), raybo.Categorical([1, 2])),
        (stats.uniform(1, 3), raybo.Float(1, 4)),
        (stats.loguniform(1e-3, 10), raybo.Float(1e-3, 10, log=True)),
        (stats.reciprocal(1, 10), raybo.Float(1, 10, log=True)),
        (stats.randint(1, 4), raybo.Integer(1, 3)),
        (stats.bernoulli(0.3), raybo.Integer(0, 1)),
        (stats.beta(2, 5), raybo.Float(0, 1)),
        (stats.truncnorm(-2, 2, loc=1), raybo.Float(-1, 3)),
    ],
)
def test_what_users_of_scikit_learn_write_is_read(written, read):
    (parameter,) = space_of({"p": written}).parameters.values()
    assert parameter == read
    assert [type(choice) for choice in getattr(parameter, "choices", ())] == [
        type(choice) for choice in getattr(read, "choices", ())
    ]


def test_series_and_indices_are_choices():
    pandas = pytest.importorskip("pandas")
    for values in (pandas.Series([0.1, 1.0], index=[7, 8]), pandas.Index([0.1, 1.0])):
        assert space_of({"C": values}).parameters[("C",)] == raybo.Categorical([0.1, 1.0])


def test_a_list_of_dicts_is_a_conditional_choice():
    space = [
        {"kernel": ["rbf"], "gamma": stats.loguniform(1e-3, 10)},
        {"kernel": ["poly"], "degree": range(2, 4), "coef0": [0.0, 1.0]},
        {},
    ]
    search = quick(SVC(), space, n_iter=12).fit(X, Y)
    seen = {tuple(sorted(params)) for params in search.cv_results_["params"]}
    assert seen == {("gamma", "kernel"), ("coef0", "degree", "kernel"), ()}
    np.testing.assert_array_equal(
        search.cv_results_["param_degree"].mask, ["degree" not in params for params in search.cv_results_["params"]]
    )
    assert space_of([{"C": [1, 2]}]).names == ["C"]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (stats.norm(), "C: the distribution norm has no bounds, and the search needs a range; give raybo.Float"),
        (stats.poisson(3), "C: the distribution poisson has no bounds"),
        (stats.loguniform, "C: the distribution loguniform has no bounds"),
        ("rbf", "C: a parameter must be a list of choices, .* got 'rbf'; write a single value as a list"),
        ({1, 2}, "C: a parameter must be a list of choices"),
        (range(0), "C: a choice needs at least one value"),
        (np.zeros((2, 2)), r"C: an array of choices must have one axis, got shape \(2, 2\)"),
    ],
)
def test_unsearchable_parameters_are_refused_with_a_remedy(written, message):
    with pytest.raises(SpaceError, match=message):
        space_of({"C": written})


@pytest.mark.parametrize("make", raybo.spaces.READY.values())
def test_a_ready_space_is_one_of_scikit_learn_too(make):
    assert space_of(make()) == raybo.Space(make())


def test_single_numbers_are_constants():
    space = space_of({"C": [1.0, 2.0], "degree": np.int64(3), "coef0": 0.5, "shrinking": True, "random_state": None})
    assert space.names == ["C"]
    config = raybo.Searcher(space, seed=0).ask().config
    assert {name: config[name] for name in config if name != "C"} == {
        "degree": 3, "coef0": 0.5, "shrinking": True, "random_state": None
    }  # fmt: skip
    assert type(config["degree"]) is int


def test_a_raybo_space_is_used_unchanged():
    space = space_of({"C": raybo.Float(0, 1), "kernel": ["rbf", "poly"]})
    assert space_of(space) is space
    with pytest.raises(SpaceError, match="a search space is a dict"):
        space_of(3)


def test_a_small_space_is_tried_completely():
    with pytest.warns(UserWarning, match="the space has 3 configurations, fewer than n_iter=9; 3 trials are run"):
        search = quick(space={"C": [0.1, 1, 10]}, n_iter=9, method="auto").fit(X, Y)
    assert sorted(params["C"] for params in search.cv_results_["params"]) == [0.1, 1, 10]


# ---- on Ray


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_fits_on_ray_give_the_same_results(ray_session, monkeypatch):
    from raybo.integrations.joblib_tasks import RayTasks

    submit, sent = RayTasks.submit, []

    def noted(self, *arguments, **named):
        sent.append(self.parallel.n_jobs)
        return submit(self, *arguments, **named)

    monkeypatch.setattr(RayTasks, "submit", noted)
    wide, labels = make_classification(300, 600, random_state=1)  # 1.4 MB: goes to the object store once
    here, there = (
        quick(LogisticRegression(), n_iter=4, n_points=2, n_jobs=n, cv=KFold(2, shuffle=True, random_state=0)).fit(
            wide, labels
        )
        for n in (1, 2)
    )
    np.testing.assert_array_equal(here.cv_results_["mean_test_score"], there.cv_results_["mean_test_score"])
    assert here.cv_results_["params"] == there.cv_results_["params"]
    assert set(sent) == {2}
    assert len(sent) >= 4  # at least one a fold and pair of candidates: joblib may send several fits together


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_joblib_on_ray_shares_arrays_and_raises_errors(ray_session):
    import joblib

    from raybo.integrations.joblib_tasks import RayTasks

    backend = RayTasks(ray_session)
    large = np.arange(300_000.0)
    with joblib.parallel_config(backend, n_jobs=2):
        sums = joblib.Parallel()(joblib.delayed(lambda a, k: float(a.sum()) + k)(large, k) for k in range(6))
        assert sums == [large.sum() + k for k in range(6)]
        assert len(backend.shared) == 1
        with pytest.raises(ZeroDivisionError) as caught:
            joblib.Parallel()(joblib.delayed(lambda k: 1 / k)(k) for k in range(2))
        assert type(caught.value) is ZeroDivisionError  # and not Ray's own that looks like it
    assert backend.effective_n_jobs(-1) == 4
    assert backend.effective_n_jobs(3) == 3


class TakesItsWorkerAlong(LogisticRegression):
    """Ends its process as often as its file of marks does not yet say, where C is large."""

    def __init__(self, marks=None, times=99, C=1.0):
        super().__init__(C=C)
        self.marks, self.times = marks, times

    def fit(self, X, y):
        if self.C > 1 and (not self.marks.exists() or len(self.marks.read_text()) < self.times):
            with self.marks.open("a") as file:
                file.write("x")
            os._exit(1)
        return super().fit(X, y)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_fit_that_loses_its_worker_is_retried(ray_session, tmp_path, monkeypatch):
    def tuned(file, times, **keywords):
        learner = TakesItsWorkerAlong(tmp_path / file, times)
        return quick(learner, {"C": [0.5, 5.0]}, method="auto", n_iter=2, cv=KFold(2), n_jobs=2, **keywords).fit(X, Y)

    with (
        pytest.warns(UserWarning, match="test scores are non-finite"),
        pytest.warns(
            FitFailedWarning, match=r"2 fits failed out of a total of 4(?s:.)*its worker died \(WorkerCrashedError\)"
        ),
    ):
        search = tuned("always", 99)
    scores = dict(
        zip([c["C"] for c in search.cv_results_["params"]], search.cv_results_["mean_test_score"], strict=True)
    )
    assert np.isnan(scores[5.0])
    assert search.best_params_ == {"C": 0.5}
    lost = next(trial for trial in search.searcher_.trials if trial.config["C"] == 5.0)
    assert lost.state is raybo.State.FAILED
    assert lost.reason.endswith("its worker died (WorkerCrashedError)")
    assert (tmp_path / "always").read_text() == 2 * 3 * "x"  # as often as a trial is tried that loses its worker
    assert np.isfinite(tuned("once", 1).cv_results_["mean_test_score"]).all()
    monkeypatch.setattr("raybo.integrations.joblib_tasks.RETRIES", 0)
    with pytest.raises(RuntimeError, match=r"^its worker died"):
        tuned("raises", 99, error_score="raise")


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("units", [4, 500])  # of arrays that are small, and large enough to be shared
def test_estimators_that_joblib_returns_can_learn_on(ray_session, units):
    import joblib

    from raybo.integrations.joblib_tasks import RayTasks

    def learn(model):
        return model.partial_fit(wide, labels, classes=[0, 1])

    backend = RayTasks(ray_session)
    wide, labels = make_classification(20, 400, random_state=1)
    models = [MLPClassifier((units,), random_state=seed) for seed in range(2)]
    with joblib.parallel_config(backend, n_jobs=2):
        for _ in range(2):
            models = joblib.Parallel()(joblib.delayed(learn)(model) for model in models)
    assert [learn(model).t_ for model in models] == [60, 60]
    assert backend.shared == {}


def test_earlier_studies_say_where_to_begin():
    space = {"C": raybo.Float(0.01, 100, log=True)}
    old = study(space, lambda config: abs(np.log10(config["C"]) - 1.0), 20, "sobol")
    X, y = load_iris(return_X_y=True)
    search = RayboSearchCV(SVC(), space, n_iter=2, cv=3, prior=old, random_state=0)
    assert abs(np.log10(clone(search).fit(X, y).searcher_.trials[0].config["C"]) - 1.0) < 0.3


def test_a_distribution_of_listed_values_is_a_choice_among_them():
    ordered = space_of({"max_depth": stats.rv_discrete(values=([2, 8, 64], [0.3, 0.3, 0.4]))})
    assert ordered.template["max_depth"] == raybo.Ordinal([2, 8, 64])
    moved = stats.rv_discrete(values=([1, 2, 4], [0.2, 0.3, 0.5]))(loc=10)
    assert space_of({"d": moved}).template["d"] == raybo.Ordinal([11, 12, 14])


@pytest.mark.parametrize("where", ["dict", "space"])
def test_nested_parameters_are_refused(where):
    nested = {"kernel": raybo.Categorical([{"kernel": "rbf", "gamma": raybo.Float(0, 1)}, {"kernel": "linear"}])}
    with pytest.raises(SpaceError, match=r"^kernel: scikit-learn's parameters are not nested; write a list of dicts"):
        space_of(nested if where == "dict" else raybo.Space(nested))
    weights = {"class_weight": [{0: 1, 1: 2}, {0: 2, 1: 1}]}  # a dict without parameters is a value
    assert space_of(weights).d == 1


def test_a_misspelt_refit_is_refused():
    with pytest.raises(ValueError, match=r"^refit must be True, False, a function or 'recommended', got 'recomended'"):
        RayboSearchCV(SVC(), {"C": [1.0, 2.0]}, n_iter=2, refit="recomended").fit(X, Y)
    named = RayboSearchCV(SVC(), {"C": [1.0, 2.0]}, n_iter=2, method="sobol", scoring="accuracy", refit="accuracy")
    assert named.fit(X, Y).best_score_ > 0.5


@pytest.mark.slow
def test_a_search_in_a_task_of_ray_does_not_wait_for_itself():
    import ray

    ray.init(num_cpus=1, include_dashboard=False, logging_level="error")
    try:

        @ray.remote(num_cpus=1)
        def search():
            found = RayboSearchCV(SVC(), {"C": [1.0, 2.0, 3.0]}, n_iter=3, method="sobol", n_jobs=2, random_state=0)
            return found.fit(*load_iris(return_X_y=True)).best_score_

        assert ray.get(search.remote(), timeout=120) > 0.9
    finally:
        ray.shutdown()
