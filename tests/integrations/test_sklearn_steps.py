"""scikit-learn's estimators step by step: passes, growing ensembles, checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.svm import SVC

import raybo
from raybo.integrations.sklearn_steps import fit_in_steps
from raybo.reports import heard_by
from tests.integrations.listener import Kept

RNG = np.random.default_rng(0)
X = RNG.random((60, 3))
Y = (X.sum(axis=1) > 1.5).astype(int)


def score(model):
    return {"accuracy": model.score(X, Y)}


def test_passes_are_partial_fits():
    told = list(fit_in_steps(SGDClassifier(random_state=0), X, Y, 4, score, by=2))
    plain = SGDClassifier(random_state=0)
    for metrics in told:
        for _ in range(2):
            plain.partial_fit(X, Y, classes=[0, 1])
        assert metrics == score(plain)
    assert len(list(fit_in_steps(SGDRegressor(random_state=0), X, X[:, 0], 3, lambda m: {"r2": m.score(X, Y)}))) == 3


def test_an_ensemble_grows_to_what_it_would_have_been():
    estimator = GradientBoostingClassifier(max_depth=2, random_state=0)
    told = list(fit_in_steps(estimator, X, Y, 5, score, grows="n_estimators", by=3))
    assert estimator.n_estimators_ == 15
    whole = GradientBoostingClassifier(max_depth=2, random_state=0, n_estimators=15).fit(X, Y)
    assert told[-1] == score(whole)


@pytest.mark.parametrize("grows", [None, "n_estimators"])
def test_a_lost_trial_goes_on_to_the_same_curve(tmp_path, grows):
    def made():
        return SGDClassifier(random_state=0) if grows is None else GradientBoostingClassifier(random_state=0)

    def run(kept):
        with heard_by(kept):
            for metrics in fit_in_steps(made(), X, Y, 6, score, grows=grows):
                kept.report(metrics, None)

    whole, lost = Kept(tmp_path / "a"), Kept(tmp_path / "b", die_at=4)
    for kept in (whole, lost):
        kept.directory.mkdir()
    run(whole)
    with pytest.raises(KeyboardInterrupt):
        run(lost)
    run(lost)
    assert lost.heard == whole.heard


def test_who_cannot_learn_in_steps_is_named():
    with pytest.raises(raybo.ObjectiveError, match=r"SVC has no partial_fit; if it has warm_start, say what grows"):
        next(fit_in_steps(SVC(), X, Y, 3, score))
    with pytest.raises(raybo.ObjectiveError, match="LogisticRegression does not have both warm_start and n_estimators"):
        next(fit_in_steps(LogisticRegression(), X, Y, 3, score, grows="n_estimators"))
