"""Jobs with trees: boosting and forests, scored on a small part of the data, so rough as users' jobs are.

What a search sees is a score on a few folds by one seed. What its recommendation is worth is the mean score by three
other seeds, which shuffle the folds and draw the trees: a search that fits its own folds gains nothing there.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_classification,
    make_friedman1,
    make_friedman2,
    make_friedman3,
    make_gaussian_quantiles,
    make_hastie_10_2,
    make_sparse_uncorrelated,
)
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

import raybo
from benchmarks.default.jobs import rows
from benchmarks.default.problem import Task
from benchmarks.searches import Array
from raybo.space import Config

SEEN = 0  # the seed of the folds and trees that a search sees
ELSEWHERE = (1, 2, 3)  # seeds of those on which a recommendation is judged
SCORES = {"accuracy": "accuracy", "log loss": "neg_log_loss", "RMSE": "neg_root_mean_squared_error"}

Data = Callable[[], tuple[Array, Any]]
Model = Callable[[Config, int], Any]


def cross_validated(space: dict[str, Any], data: Data, make: Model, score: str, folds: int) -> Task:
    """A task of the mean score over folds, turned so that less is better.

    Args:
        make: the model of a configuration and a seed.
        score: a key of SCORES.
    """

    def value(config: Config, seed: int) -> float:
        X, y = data()
        splits: Any = KFold if score == "RMSE" else StratifiedKFold
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of classes that a fold lacks
            scores = cross_val_score(
                make(config, seed), X, y, cv=splits(folds, shuffle=True, random_state=seed), scoring=SCORES[score]
            )
        mean = -float(np.mean(scores))
        return mean if math.isfinite(mean) else math.nan

    return Task(
        raybo.Space(space),
        lambda config: value(config, SEEN),
        elsewhere=lambda config: float(np.mean([value(config, seed) for seed in ELSEWHERE])),
    )


def some(load: Callable[..., Any], count: int) -> Data:
    """A part of a data set that scikit-learn brings along: its first rows in a shuffled order."""

    @lru_cache(maxsize=1)
    def data() -> tuple[Array, Any]:
        X, y = load(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(X))[:count]
        return X[order], y[order]

    return data


BOOSTING = {
    "learning_rate": raybo.Float(0.01, 1.0, log=True),
    "n_estimators": raybo.Integer(10, 150),
    "max_depth": raybo.Integer(1, 8),
    "min_child_weight": raybo.Float(0.1, 20.0, log=True),
    "subsample": raybo.Float(0.3, 1.0),
    "colsample_bytree": raybo.Float(0.2, 1.0),
    "reg_lambda": raybo.Float(1e-3, 100.0, log=True),
}
FOREST = {
    "n_estimators": raybo.Integer(5, 60),
    "max_depth": raybo.Integer(1, 20),
    "min_samples_split": raybo.Integer(2, 30),
    "min_samples_leaf": raybo.Integer(1, 20),
    "max_features": raybo.Float(0.05, 1.0),
    "bootstrap": raybo.Categorical([True, False]),
}
CRITERION = {"criterion": raybo.Categorical(["gini", "entropy"])}
GRADIENT = {
    "learning_rate": raybo.Float(0.001, 0.999),
    "n_estimators": raybo.Integer(10, 100),
    "subsample": raybo.Float(0.2, 1.0),
    "max_depth": raybo.Integer(1, 8),
    "min_samples_leaf": raybo.Integer(1, 30),
    "max_features": raybo.Categorical(["sqrt", "log2", None]),
}
HISTOGRAM = {
    "learning_rate": raybo.Float(0.01, 1.0, log=True),
    "max_iter": raybo.Integer(5, 60),
    "max_leaf_nodes": raybo.Integer(2, 40),
    "min_samples_leaf": raybo.Integer(2, 60),
    "l2_regularization": raybo.Float(1e-4, 100.0, log=True),
    "max_features": raybo.Float(0.1, 1.0),
}
LEAVES = {
    "learning_rate": raybo.Float(0.01, 1.0, log=True),
    "n_estimators": raybo.Integer(10, 150),
    "num_leaves": raybo.Integer(2, 63),
    "min_child_samples": raybo.Integer(1, 60),
    "subsample": raybo.Float(0.3, 1.0),
    "colsample_bytree": raybo.Float(0.2, 1.0),
    "reg_alpha": raybo.Float(1e-3, 10.0, log=True),
    "reg_lambda": raybo.Float(1e-3, 100.0, log=True),
}


def _xgboost(name: str) -> Model:
    def make(config: Config, seed: int) -> Any:
        import xgboost

        return getattr(xgboost, name)(**config, random_state=seed, n_jobs=1, tree_method="hist", max_bin=64)

    return make


def _lightgbm(name: str) -> Model:
    def make(config: Config, seed: int) -> Any:
        import lightgbm

        return getattr(lightgbm, name)(**config, subsample_freq=1, random_state=seed, n_jobs=1, verbose=-1)

    return make


def _sklearn(model: Any) -> Model:
    return lambda config, seed: model(**config, random_state=seed)


def _coded(name: str, every: int) -> Data:
    """Rows of trials/data with their classes as numbers, which XGBoost asks for."""

    @lru_cache(maxsize=1)
    def data() -> tuple[Array, Any]:
        X, y = rows(name, every)
        return X, np.unique(y, return_inverse=True)[1]

    return data


def _made(make: Callable[..., Any], *arguments: Any, **more: Any) -> Data:
    """Data of one of scikit-learn's generators; classes are counted from 0."""

    @lru_cache(maxsize=1)
    def data() -> tuple[Array, Any]:
        X, y = make(*arguments, **more, random_state=0)
        return X, (y > 0.0).astype(int) if make is make_hastie_10_2 else y

    return data


FRIEDMAN_1 = _made(make_friedman1, 250, n_features=10, noise=2.0)
FRIEDMAN_2 = _made(make_friedman2, 250, noise=150.0)
FRIEDMAN_3 = _made(make_friedman3, 250, noise=0.2)
CLASSES = _made(make_classification, 300, n_features=20, n_informative=6, flip_y=0.1, class_sep=0.7)
QUANTILES = _made(make_gaussian_quantiles, n_samples=300, n_features=6, n_classes=3)
HASTIE = _made(make_hastie_10_2, 300)
SPARSE = _made(make_sparse_uncorrelated, 250, n_features=10)


def first_study() -> Task:
    """The README's first study, on its folds; judged on shuffled ones, by other seeds of the trees."""
    from trials.gradient_boosting import space

    def make(config: Config, seed: int) -> Any:
        given = {key: value for key, value in config.items() if key != "criterion"}
        return GradientBoostingClassifier(**given, random_state=seed)

    data = some(load_breast_cancer, 569)
    parameters = dict(zip(space.names, space.parameters.values(), strict=True))
    return cross_validated(parameters, data, make, "accuracy", 5)


JOBS: dict[str, Callable[[], Task]] = {
    # development
    "xgboost-australian": lambda: cross_validated(
        BOOSTING, _coded("australian", 2), _xgboost("XGBClassifier"), "accuracy", 5
    ),
    "xgboost-diabetes": lambda: cross_validated(
        BOOSTING, some(load_diabetes, 250), _xgboost("XGBRegressor"), "RMSE", 3
    ),
    "extra-trees-vehicle": lambda: cross_validated(
        {**FOREST, **CRITERION}, _coded("vehicle", 3), _sklearn(ExtraTreesClassifier), "accuracy", 3
    ),
    "forest-kc1": lambda: cross_validated(
        {**FOREST, **CRITERION}, _coded("kc1", 5), _sklearn(RandomForestClassifier), "log loss", 3
    ),
    "gradient-friedman": lambda: cross_validated(GRADIENT, FRIEDMAN_1, _sklearn(GradientBoostingRegressor), "RMSE", 3),
    "lightgbm-wine": lambda: cross_validated(LEAVES, some(load_wine, 178), _lightgbm("LGBMClassifier"), "log loss", 3),
    # validation
    "first-study": first_study,
    "xgboost-vehicle": lambda: cross_validated(
        BOOSTING, _coded("vehicle", 3), _xgboost("XGBClassifier"), "log loss", 3
    ),
    "histogram-made": lambda: cross_validated(
        HISTOGRAM, CLASSES, _sklearn(HistGradientBoostingClassifier), "log loss", 3
    ),
    "forest-diabetes": lambda: cross_validated(
        FOREST, some(load_diabetes, 250), _sklearn(RandomForestRegressor), "RMSE", 5
    ),
    "extra-trees-digits": lambda: cross_validated(
        {**FOREST, **CRITERION}, some(load_digits, 400), _sklearn(ExtraTreesClassifier), "accuracy", 3
    ),
    "extra-trees-friedman": lambda: cross_validated(FOREST, FRIEDMAN_1, _sklearn(ExtraTreesRegressor), "RMSE", 3),
    "lightgbm-australian": lambda: cross_validated(
        LEAVES, _coded("australian", 2), _lightgbm("LGBMClassifier"), "accuracy", 5
    ),
    # for a last look, at what was chosen on the others
    "xgboost-cancer": lambda: cross_validated(
        BOOSTING, some(load_breast_cancer, 300), _xgboost("XGBClassifier"), "log loss", 3
    ),
    "xgboost-friedman3": lambda: cross_validated(BOOSTING, FRIEDMAN_3, _xgboost("XGBRegressor"), "RMSE", 3),
    "lightgbm-hastie": lambda: cross_validated(LEAVES, HASTIE, _lightgbm("LGBMClassifier"), "log loss", 3),
    "lightgbm-sparse": lambda: cross_validated(LEAVES, SPARSE, _lightgbm("LGBMRegressor"), "RMSE", 5),
    "histogram-wilt": lambda: cross_validated(
        HISTOGRAM, _coded("wilt", 8), _sklearn(HistGradientBoostingClassifier), "log loss", 3
    ),
    "histogram-friedman2": lambda: cross_validated(
        HISTOGRAM, FRIEDMAN_2, _sklearn(HistGradientBoostingRegressor), "RMSE", 3
    ),
    "forest-cancer": lambda: cross_validated(
        {**FOREST, **CRITERION}, some(load_breast_cancer, 300), _sklearn(RandomForestClassifier), "accuracy", 5
    ),
    "forest-quantiles": lambda: cross_validated(
        {**FOREST, **CRITERION}, QUANTILES, _sklearn(RandomForestClassifier), "log loss", 3
    ),
    "extra-trees-wilt": lambda: cross_validated(
        {**FOREST, **CRITERION}, _coded("wilt", 8), _sklearn(ExtraTreesClassifier), "log loss", 3
    ),
    "extra-trees-sparse": lambda: cross_validated(FOREST, SPARSE, _sklearn(ExtraTreesRegressor), "RMSE", 3),
    "gradient-hastie": lambda: cross_validated(GRADIENT, HASTIE, _sklearn(GradientBoostingClassifier), "accuracy", 3),
    "gradient-friedman3": lambda: cross_validated(GRADIENT, FRIEDMAN_3, _sklearn(GradientBoostingRegressor), "RMSE", 3),
}
