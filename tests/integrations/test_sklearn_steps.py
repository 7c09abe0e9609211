"""scikit-learn's estimators are fitted step by step: passes, growing ensembles, checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import MiniBatchKMeans
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.model_selection import GridSearchCV, check_cv
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import raybo
from raybo.common.errors import ObjectiveError
from raybo.integrations.sklearn import RayboSearchCV
from raybo.integrations.sklearn_steps import fit_in_steps
from raybo.job.reports import reports_sent_to
from tests.integrations.listener import Listener

RNG = np.random.default_rng(0)
X = RNG.random((60, 3))
Y = (X.sum(axis=1) > 1.5).astype(int)


def score(model):
    return {"accuracy": model.score(X, Y)}


def test_passes_are_partial_fits():
    reports = list(fit_in_steps(SGDClassifier(random_state=0), X, Y, 4, score, by=2))
    plain = SGDClassifier(random_state=0)
    for metrics in reports:
        for _ in range(2):
            plain.partial_fit(X, Y, classes=[0, 1])
        assert metrics == score(plain)
    assert len(list(fit_in_steps(SGDRegressor(random_state=0), X, X[:, 0], 3, lambda m: {"r2": m.score(X, Y)}))) == 3


def test_an_ensemble_grown_in_steps_is_identical():
    estimator = GradientBoostingClassifier(max_depth=2, random_state=0)
    reports = list(fit_in_steps(estimator, X, Y, 5, score, grows="n_estimators", by=3))
    assert estimator.n_estimators_ == 15
    whole = GradientBoostingClassifier(max_depth=2, random_state=0, n_estimators=15).fit(X, Y)
    assert reports[-1] == score(whole)


@pytest.mark.parametrize("grows", [None, "n_estimators"])
def test_a_resumed_fit_has_the_same_curve(tmp_path, grows):
    def made():
        return SGDClassifier(random_state=0) if grows is None else GradientBoostingClassifier(random_state=0)

    def run(listener):
        with reports_sent_to(listener):
            for metrics in fit_in_steps(made(), X, Y, 6, score, grows=grows):
                listener.report(metrics, None)

    whole, lost = Listener(tmp_path / "a"), Listener(tmp_path / "b", die_at=4)
    for listener in (whole, lost):
        listener.directory.mkdir()
    run(whole)
    with pytest.raises(KeyboardInterrupt):
        run(lost)
    run(lost)
    assert lost.reports == whole.reports


def test_who_cannot_learn_in_steps_is_named():
    with pytest.raises(raybo.ObjectiveError, match=r"SVC has no partial_fit; if it has warm_start, say what grows"):
        next(fit_in_steps(SVC(), X, Y, 3, score))
    with pytest.raises(raybo.ObjectiveError, match="LogisticRegression does not have both warm_start and n_estimators"):
        next(fit_in_steps(LogisticRegression(), X, Y, 3, score, grows="n_estimators"))


# ---- a search over candidates that learn in steps

RATE = {"learning_rate": raybo.Float(1e-3, 1.0, log=True)}
ALPHA = {"alpha": raybo.Float(1e-6, 10.0, log=True)}
BOOSTING = GradientBoostingClassifier(max_depth=1, random_state=0)
ASHA = {"scheduler": "asha", "scheduler_options": {"eta": 2}}


def search(estimator, space, **keywords):
    arguments = {"n_iter": 6, "method": "random", "random_state": 0, "cv": 3, "steps": 8}
    return RayboSearchCV(estimator, space, **{**arguments, **keywords})


@pytest.mark.parametrize(
    ("estimator", "name", "grows"),
    [
        (BOOSTING, "learning_rate", "n_estimators"),
        (
            make_pipeline(StandardScaler(), BOOSTING),
            "gradientboostingclassifier__learning_rate",
            "gradientboostingclassifier__n_estimators",
        ),
    ],
    ids=["alone", "in a pipeline"],
)
def test_stepwise_scores_equal_those_of_one_training(estimator, name, grows):
    ours = search(estimator, {name: RATE["learning_rate"]}, grows=grows, by=2, n_points=2, return_train_score=True)
    ours.fit(X, Y)
    whole = clone(estimator).set_params(**{grows: 16})
    grid = GridSearchCV(whole, {name: list(ours.cv_results_[f"param_{name}"])}, cv=3, return_train_score=True).fit(X, Y)
    assert set(ours.cv_results_) == {*grid.cv_results_, "n_steps"}
    for key in grid.cv_results_:
        if "time" not in key and key != "params":
            np.testing.assert_array_equal(ours.cv_results_[key], grid.cv_results_[key])
    assert ours.cv_results_["params"] == grid.cv_results_["params"]
    assert (ours.best_index_, ours.best_score_, ours.best_params_) == (
        grid.best_index_,
        grid.best_score_,
        grid.best_params_,
    )
    np.testing.assert_array_equal(ours.predict_proba(X), grid.predict_proba(X))
    assert ours.best_estimator_.get_params()[grows] == 16
    assert ours.cv_results_["n_steps"].tolist() == [8] * 6
    assert [len(trial.reports) for trial in ours.searcher_.trials] == [8] * 6
    assert estimator.get_params()[grows] == 100  # the user's own is left alone


def test_passes_count_in_folds_and_refit():
    ours = search(SGDClassifier(random_state=0), ALPHA, by=2).fit(X, Y)
    plain = SGDClassifier(random_state=0, **ours.best_params_)
    for _ in range(16):
        plain.partial_fit(X, Y, classes=[0, 1])
    np.testing.assert_array_equal(ours.best_estimator_.coef_, plain.coef_)
    assert ours.best_estimator_.t_ == plain.t_
    assert "fit" not in vars(ours.best_estimator_)
    assert search(MiniBatchKMeans(2, n_init=1), {"batch_size": [10, 20, 40]}, n_iter=2).fit(X).best_index_ in (0, 1)


@pytest.mark.parametrize("n_points", [1, 3])
@pytest.mark.parametrize("variant", ["stop", "promote"])
def test_candidates_ended_early_rank_below_finished_ones(variant, n_points):
    rule = {"scheduler": "asha", "scheduler_options": {"eta": 2, "variant": variant}}
    ours = search(BOOSTING, RATE, n_iter=12, grows="n_estimators", n_points=n_points, **rule).fit(X, Y)
    results, trials = ours.cv_results_, ours.searcher_.trials
    assert len(trials) == len(results["params"]) == 12
    assert results["n_steps"].tolist() == [trial.step for trial in trials]
    ended = np.array([trial.state is raybo.State.PRUNED for trial in trials])
    assert 0 < ended.sum() < 12
    assert not np.isnan(results["mean_test_score"]).any()
    assert results["rank_test_score"][ended].min() > results["rank_test_score"][~ended].max()
    assert results["rank_test_score"][ours.best_index_] == 1
    assert trials[ours.best_index_].state is raybo.State.FINISHED
    assert ours.searcher_.best.value == ours.best_score_
    for i, trial in enumerate(trials):  # ended where it stood, and trained from there where it had waited
        plain = clone(BOOSTING).set_params(n_estimators=trial.step, **results["params"][i])
        folds = check_cv(3, Y, classifier=True).split(X, Y)
        scores = [clone(plain).fit(X[a], Y[a]).score(X[b], Y[b]) for a, b in folds]
        assert trial.reports[-1][1] == pytest.approx(np.mean(scores)) == results["mean_test_score"][i]


def test_no_step_of_a_promoted_trial_is_trained_twice():
    scored = []

    def accuracy(estimator, X, y):
        scored.append(estimator.n_estimators)
        return estimator.score(X, y)

    rule = {"scheduler": "asha", "scheduler_options": {"eta": 2, "variant": "promote"}}
    ours = search(BOOSTING, RATE, n_iter=10, grows="n_estimators", scoring=accuracy, **rule).fit(X, Y)
    assert any(trial.attempt > 1 for trial in ours.searcher_.trials)
    assert len(scored) == 3 * sum(trial.step for trial in ours.searcher_.trials)


class Breaking(ClassifierMixin, BaseEstimator):
    """Learns nothing, and breaks at its third step if `breaks` is at least 5."""

    def __init__(self, breaks=0):
        self.breaks = breaks

    def fit(self, X, y):
        return self.partial_fit(X, y, np.unique(y))

    def partial_fit(self, X, y, classes):
        self.classes_, self.count_ = classes, getattr(self, "count_", 0) + 1
        if self.breaks >= 5 and self.count_ == 3:
            raise ValueError("broken")
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite:UserWarning")
@pytest.mark.parametrize("n_points", [1, 2])
def test_a_candidate_that_breaks_midway_has_failed(n_points):
    with pytest.warns(FitFailedWarning, match="fits failed out of a total of 24"):
        ours = search(Breaking(), {"breaks": list(range(10))}, n_iter=8, n_points=n_points).fit(X, Y)
    breaks = [trial.config["breaks"] >= 5 for trial in ours.searcher_.trials]
    assert 0 < sum(breaks) < 8
    for trial, one in zip(ours.searcher_.trials, breaks, strict=True):
        assert trial.state is (raybo.State.FAILED if one else raybo.State.FINISHED)
        assert trial.reason == ("its mean test score is nan: ValueError: broken" if one else "")
    assert np.isnan(ours.cv_results_["mean_test_score"]).tolist() == breaks
    assert ours.cv_results_["rank_test_score"].tolist() == [9 - sum(breaks) if one else 1 for one in breaks]
    assert ours.cv_results_["n_steps"].tolist() == [2 if one else 8 for one in breaks]
    with pytest.raises(ValueError, match="broken"):
        search(Breaking(), {"breaks": [5, 6]}, n_iter=2, error_score="raise").fit(X, Y)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"grows": "max_iter"}, ObjectiveError, "SVC does not have both warm_start and max_iter"),
        ({}, ObjectiveError, "SVC has no partial_fit"),
        ({"steps": 0}, ValueError, "steps must be a whole number from 1, got 0"),
        ({"by": 0}, ValueError, "by must be a whole number from 1, got 0"),
        ({"steps": None, **ASHA}, ValueError, "say how many steps with steps="),
        ({"steps": None, "by": 3}, ValueError, "scheduler, grows and by need an estimator that learns step by step"),
        ({"scheduler": "asher"}, raybo.MethodError, "asha"),
    ],
)
def test_wrong_steps_are_refused_in_a_line(keywords, error, message):
    with pytest.raises(error, match=message):
        search(SVC(), {"C": raybo.Float(0.1, 1.0)}, **keywords).fit(X, Y)


def test_what_grows_is_not_searched_for():
    with pytest.raises(ValueError, match="n_estimators grows with each step; take it out of param_space"):
        search(BOOSTING, {"n_estimators": raybo.Integer(1, 9)}, grows="n_estimators").fit(X, Y)


def test_named_metric_of_several_is_reported():
    ours = search(BOOSTING, RATE, grows="n_estimators", scoring=["accuracy", "neg_log_loss"], refit="neg_log_loss")
    ours.fit(X, Y)
    assert ours.searcher_.best.value == ours.best_score_ == ours.cv_results_["mean_test_neg_log_loss"].max()


@pytest.mark.slow
@pytest.mark.ray
def test_folds_on_ray_learn_equal_steps():
    here = search(SGDClassifier(random_state=0), ALPHA, **ASHA).fit(X, Y)
    there = search(SGDClassifier(random_state=0), ALPHA, n_jobs=2, **ASHA).fit(X, Y)
    np.testing.assert_array_equal(here.cv_results_["mean_test_score"], there.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(here.cv_results_["n_steps"], there.cv_results_["n_steps"])


@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_partial_fit_learns_several_outputs_and_labels():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, X[:, 2] > 0]).astype(int)
    several = MultiOutputClassifier(SGDClassifier(random_state=0))
    found = RayboSearchCV(several, {"estimator__alpha": [1e-4, 1e-3]}, n_iter=2, steps=2, cv=2, method="sobol").fit(
        X, Y
    )
    assert found.best_score_ > 0.3
    one = SGDClassifier(random_state=0)
    found = RayboSearchCV(one, {"alpha": [1e-4, 1e-3]}, n_iter=2, steps=2, cv=2, method="sobol").fit(X, Y[:, :1])
    assert found.best_score_ > 0.6
    labels = MLPClassifier((8,), random_state=0)
    found = RayboSearchCV(labels, {"alpha": [1e-4, 1e-3]}, n_iter=2, steps=2, cv=2, method="sobol").fit(X, Y)
    assert np.isfinite(found.best_score_)
