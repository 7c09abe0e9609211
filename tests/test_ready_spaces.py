"""Starting points: the first trial is the library's default, and keywords narrow what is searched."""

from __future__ import annotations

import inspect
from itertools import product

import numpy as np
import pytest

import raybo
from benchmarks.classification import FRESH, MEASURES, R
from benchmarks.spaces import kept, ratio, regrets
from raybo import spaces
from tests.kept_runs import DOCS

ALL = ["xgboost", "lightgbm", "hist_gradient_boosting", "random_forest", "logistic_regression", "svm", "mlp", "lora"]


def first(parameters):
    return raybo.Searcher(parameters, seed=0).ask().config


@pytest.mark.parametrize("name", ALL)
def test_every_space_can_be_searched(name):
    space = raybo.Space(getattr(spaces, name)())
    assert all(parameter.has_guess for parameter in space.parameters.values())
    for config in space.sample(np.random.default_rng(0), 20):
        assert space.accept(config) == config
    assert raybo.Space.from_json(space.to_json()) == space


def of_sklearn(name):
    import sklearn.ensemble
    import sklearn.linear_model
    import sklearn.neural_network

    return {
        "hist_gradient_boosting": sklearn.ensemble.HistGradientBoostingClassifier,
        "random_forest": sklearn.ensemble.RandomForestClassifier,
        "logistic_regression": sklearn.linear_model.LogisticRegression,
        "mlp": sklearn.neural_network.MLPClassifier,
    }[name]


@pytest.mark.parametrize("name", ["hist_gradient_boosting", "random_forest", "logistic_regression", "mlp"])
def test_first_trial_is_the_default_of_sklearn(name):
    defaults = of_sklearn(name)().get_params()
    assert {key: defaults[key] for key in first(getattr(spaces, name)())} == first(getattr(spaces, name)())


TREES = ["xgboost", "lightgbm", "hist_gradient_boosting", "random_forest"]


@pytest.mark.parametrize("name", TREES)
def test_trees_have_three_next_guesses(name):
    space = getattr(spaces, name)()
    trials = raybo.Searcher(space, seed=0).ask(5)
    assert [trial.tags.get("next_guess", 0) for trial in trials] == [0, 1, 2, 3, 0]
    configs = [trial.config for trial in trials[:4]]
    assert all(config not in configs[:i] for i, config in enumerate(configs))
    for key, parameter in space.items():
        if not isinstance(parameter, int):
            assert [config[key] for config in configs] == [parameter.guess, *parameter.next_guesses]


def test_next_guesses_stay_in_what_is_left():
    space = spaces.xgboost(max_depth=(4, 8), subsample=[0.5, 1.0], learning_rate=0.1, gamma=[0.0, 0.1])
    configs = [trial.config for trial in raybo.Searcher(space, seed=0).ask(4)]
    assert [config["max_depth"] for config in configs] == [6, 4, 4, 4]
    assert {config["learning_rate"] for config in configs} == {0.1}
    assert [config["subsample"] for config in configs] == [1.0, 0.5, 1.0, 1.0]  # the guess, where a next one is gone
    assert [config["gamma"] for config in configs] == [0.0, 0.0, 0.0, 0.0]


def test_first_forest_of_a_regression_sees_all_features():
    from sklearn.ensemble import RandomForestRegressor

    config = first(spaces.random_forest(is_regression=True))
    assert config == {key: value for key, value in RandomForestRegressor().get_params().items() if key in config}


def test_first_svm_is_the_default_on_standardised_data():
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    config = first(spaces.svm(features=X.shape[1]))
    found, default = SVC(**config).fit(X, y), SVC().fit(X, y)
    assert found.decision_function(X) == pytest.approx(default.decision_function(X))
    assert set(spaces.svm()) == {"C"}


def test_first_xgboost_is_the_default():
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    found = xgboost.XGBClassifier(**first(spaces.xgboost()), n_jobs=1).fit(X, y)
    default = xgboost.XGBClassifier(n_jobs=1).fit(X, y)
    assert (found.predict_proba(X) == default.predict_proba(X)).all()


def test_first_lightgbm_is_the_default():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    found = lightgbm.LGBMClassifier(**first(spaces.lightgbm()), n_jobs=1, verbose=-1).fit(X, y)
    default = lightgbm.LGBMClassifier(n_jobs=1, verbose=-1).fit(X, y)
    assert (found.predict_proba(X) == default.predict_proba(X)).all()


def test_keywords_narrow_and_replace():
    changed = spaces.xgboost(
        max_depth=(2, 4),
        gamma=[0.0, 1.0],
        subsample=[0.5, 1.0],
        learning_rate=0.05,
        reg_lambda=raybo.Float(0, 1),
        leave_out=["reg_alpha", "colsample_bytree"],
    )
    assert changed["max_depth"] == raybo.Integer(2, 4, guess=4, next_guesses=[3, 2, 4])
    assert changed["gamma"] == raybo.Ordinal([0.0, 1.0], guess=0.0, next_guesses=[0.0, 1.0, 0.0])
    assert changed["subsample"] == raybo.Ordinal([0.5, 1.0], guess=1.0, next_guesses=[0.5, 1.0, 1.0])
    assert changed["learning_rate"] == 0.05
    assert changed["reg_lambda"] == raybo.Float(0, 1)
    assert set(changed) == set(spaces.xgboost()) - {"reg_alpha", "colsample_bytree"}
    assert not spaces.random_forest(max_depth=[2, 4])["max_depth"].has_guess
    assert spaces.random_forest(max_depth=(2, 8))["max_depth"] == raybo.Ordinal([2, 4, 8])
    assert spaces.xgboost(gamma=(0.0, 0.01))["gamma"] == raybo.Ordinal(
        [0.0, 1e-3, 0.01], guess=0.0, next_guesses=[0.0] * 3
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: spaces.xgboost(max_dept=3), "xgboost: it has no parameter 'max_dept'; did you mean 'max_depth'"),
        (lambda: spaces.mlp(leave_out="alhpa"), "mlp: it has no parameter 'alhpa'; did you mean 'alpha'"),
        (lambda: spaces.svm(C=(1, 2, 3)), r"svm: C: a range is narrowed by \(low, high\), got \(1, 2, 3\)"),
        (lambda: spaces.svm(C=(1, 5_000)), r"svm: C: 5000.0 lies outside \[0.0009765625, 1024.0\]"),
        (lambda: spaces.svm(C=(2, 1)), "svm: C: low must be below high"),
        (
            lambda: spaces.xgboost(gamma=(1, 2, 3)),
            r"xgboost: gamma: its values are narrowed by \(low, high\) or a list",
        ),
        (lambda: spaces.xgboost(gamma=(3, 9)), r"xgboost: gamma: none of \[.* lies in that range; give another"),
        (lambda: spaces.lora(r=[3]), "lora: r: 3 is not one of"),
        (lambda: spaces.svm(features=0), "svm: features must be a whole number from 1"),
    ],
)
def test_wrong_changes_are_named(make, message):
    with pytest.raises(raybo.SpaceError, match=message):
        make()


def test_the_module_lists_every_space():
    made = {
        name for name, each in vars(spaces).items() if inspect.isfunction(each) and each.__module__ == spaces.__name__
    }
    assert {name for name in made if not name.startswith("_")} == set(ALL)
    assert all(name in spaces.__doc__ for name in ALL)


FITTED = {
    "xgboost": "XGBoost",
    "lightgbm": "LightGBM",
    "hist_gradient_boosting": "histogram boosting",
    "random_forest": "random forest",
}


KINDS = {"guess": "with next guesses", "default": "the default only"}
VARIANTS = {
    "one": ("one, boosting's textbook setting", "the default"),
    "three": ("three", "the default"),
    "three, best": ("three", "the best of them"),
    "five": ("five", "the default"),
    "five, best": ("five", "the best of them"),
}


def test_the_page_says_what_the_kept_searches_show():
    runs, page = kept(DOCS / "evidence" / "spaces.csv"), (DOCS / "evidence" / "default.md").read_text(encoding="utf-8")
    assert f"| {' | '.join(FITTED.values())} | all (95 % interval) | pairs ahead |" in page
    for measure, (kind, words) in product(MEASURES, KINDS.items()):
        seeds = sorted({key[-1] for key in runs if key[0] == measure})
        pairs = {model: [regrets(runs, measure, name, model, kind, seeds) for name in FRESH] for model in FITTED}
        shares = [f"{ratio(each)[0]:.2f}" for each in pairs.values()]
        every = [pair for each in pairs.values() for pair in each]
        share, low, high = ratio(every)
        ahead = sum(with_guess < without for with_guess, without in every)
        row = [f"{MEASURES[measure]}, {words}", *shares]
        row += [f"{share:.2f} ({low:.2f} to {high:.2f})", f"{ahead} of {len(every)}"]
        assert f"| {' | '.join(row)} |" in page, row


def test_the_page_says_how_the_next_guesses_were_chosen():
    runs = kept(DOCS / "evidence" / "next_guesses.csv")
    page = (DOCS / "evidence" / "default.md").read_text(encoding="utf-8")
    for models, words in ((tuple(FITTED), "all"), (("xgboost", "random_forest"), "XGBoost, forest")):
        for kind, variant in VARIANTS.items():
            if words == "all" and kind.startswith("five"):
                continue
            shares = [
                ratio([regrets(runs, each, name, model, kind, [500]) for name in [*R][:8] for model in models])[0]
                for each in MEASURES
            ]
            row = [*variant, words, *(f"{share:.2f}" for share in shares)]
            assert f"| {' | '.join(row)} |" in page, row
