"""Starting points: spaces of common models, with the library's default as the first trial.

    xgboost, lightgbm, hist_gradient_boosting, random_forest     trees
    logistic_regression, svm, mlp                                scikit-learn's other classifiers and regressors
    lora                                                         low-rank adapters of large networks

Each function returns a dict from names to parameters, for `raybo.Space`, `raybo.objective(space=...)` or
`raybo.Searcher`. The guesses are the library's defaults: the first trial is the model as it comes. The three trials
after it are, for trees, the configurations that together with the default did best on 44 data sets of classification,
each chosen for what the others leave to be gained [M]. What is 0 by default and otherwise set on a logarithmic scale is
an `Ordinal` that begins with 0. A keyword narrows or replaces a parameter:

    max_depth=(2, 8)                  the part of its range, or those of its values, from 2 to 8
    gamma=[0.0, 1.0]                  these of its values; of a range, in this order
    learning_rate=0.1                 a constant
    max_depth=raybo.Integer(1, 20)    another parameter
    leave_out=["gamma"]               not in the space: the library's default stays

A guess outside a narrowed range moves to its nearest end. If the guess is not among the values left, all of that
parameter's guesses are dropped; a next guess that is not is replaced by the guess.

Sources. [P] Probst, Boulesteix, Bischl (2019), "Tunability: Importance of Hyperparameters of Machine Learning
Algorithms", JMLR 20(53), table 1. [H] Eggensperger, Müller, Mallik, Feurer, Sass, Klein, Awad, Lindauer, Hutter (2021),
"HPOBench", arXiv:2109.06716, its spaces of XGBoost, random forests, SVMs, logistic regression and networks. [G]
Grinsztajn, Oyallon, Varoquaux (2022), "Why do tree-based models still outperform deep learning on typical tabular
data?", arXiv:2207.08815, appendix A.3. [M] Pfisterer, van Rijn, Probst, Müller, Bischl (2018), "Learning
Multiple Defaults for Machine Learning Algorithms", arXiv:1811.09409. [L] Hu and others (2021), "LoRA",
arXiv:2106.09685. [Q] Dettmers, Pagnoni, Holtzman, Zettlemoyer (2023), "QLoRA", arXiv:2305.14314.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from raybo.common.arguments import a_list, is_number, truth, whole_number
from raybo.common.errors import SpaceError
from raybo.common.messages import nearest, shown
from raybo.space import Categorical, Float, Integer, Ordinal, named

Parameters: TypeAlias = dict[str, Any]  # parameters, and constants, by name

PENALTIES = [0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0]  # 0, and a logarithmic grid


def xgboost(*, leave_out: Sequence[str] = (), **changes: Any) -> Parameters:
    """Return a space for `xgboost.XGBClassifier` and `XGBRegressor`, after [P] and [G].

    Args:
        leave_out: names of parameters that stay at XGBoost's defaults.
        changes: parameters that are narrowed, replaced or constant, by name; see the module.
    Raises:
        SpaceError: there is no such parameter, or it cannot be narrowed so.
    Example:
        >>> space = raybo.spaces.xgboost(max_depth=(2, 8), leave_out=["gamma"])
        >>> raybo.Searcher(space, seed=0).ask().config["learning_rate"]
        0.3
    """
    space: Parameters = {
        "learning_rate": Float(1e-3, 1.0, log=True, guess=0.3, next_guesses=[0.05, 0.35, 0.1]),
        "n_estimators": Integer(20, 2_000, log=True, guess=100, next_guesses=[100, 250, 100]),
        "max_depth": Integer(1, 15, guess=6, next_guesses=[3, 1, 4]),
        "min_child_weight": Float(1.0, 128.0, log=True, guess=1.0, next_guesses=[1.0, 1.4, 1.0]),
        "subsample": Float(0.3, 1.0, guess=1.0, next_guesses=[0.5, 0.95, 0.4]),
        "colsample_bytree": Float(0.3, 1.0, guess=1.0, next_guesses=[1.0, 0.45, 0.4]),
        "reg_lambda": Float(1e-3, 1e3, log=True, guess=1.0, next_guesses=[1.0, 50.0, 0.6]),
        "reg_alpha": Ordinal(PENALTIES, guess=0.0, next_guesses=[0.0, 0.01, 0.0]),
        "gamma": Ordinal(PENALTIES[:-1], guess=0.0, next_guesses=[0.0, 1.0, 0.0]),
    }
    return _changed("xgboost", space, leave_out, changes)


def lightgbm(*, leave_out: Sequence[str] = (), **changes: Any) -> Parameters:
    """Return a space for `lightgbm.LGBMClassifier` and `LGBMRegressor`, after [P] and [G].

    `subsample_freq` is a constant, 1, as `subsample` does nothing without it; at its default of 1 it leaves out no row.

    Args:
        leave_out: names of parameters that stay at LightGBM's defaults.
        changes: parameters that are narrowed, replaced or constant, by name; see the module.
    Raises:
        SpaceError: there is no such parameter, or it cannot be narrowed so.
    Example:
        >>> raybo.Searcher(raybo.spaces.lightgbm(n_estimators=200), seed=0).ask().config["num_leaves"]
        31
    """
    space: Parameters = {
        "learning_rate": Float(1e-3, 1.0, log=True, guess=0.1, next_guesses=[0.01, 0.045, 0.05]),
        "n_estimators": Integer(20, 2_000, log=True, guess=100, next_guesses=[230, 150, 190]),
        "num_leaves": Integer(4, 512, log=True, guess=31, next_guesses=[9, 130, 12]),
        "min_child_samples": Integer(2, 200, log=True, guess=20, next_guesses=[3, 20, 2]),
        "subsample": Float(0.3, 1.0, guess=1.0, next_guesses=[0.6, 0.4, 0.9]),
        "subsample_freq": 1,
        "colsample_bytree": Float(0.3, 1.0, guess=1.0, next_guesses=[0.95, 0.6, 0.45]),
        "reg_lambda": Ordinal(PENALTIES, guess=0.0, next_guesses=[0.01, 1e-3, 100.0]),
        "reg_alpha": Ordinal(PENALTIES, guess=0.0, next_guesses=[1.0, 0.1, 1e-3]),
    }
    return _changed("lightgbm", space, leave_out, changes)


def hist_gradient_boosting(*, leave_out: Sequence[str] = (), **changes: Any) -> Parameters:
    """Return a space for scikit-learn's `HistGradientBoostingClassifier` and `Regressor`, after [G].

    Args:
        leave_out: names of parameters that stay at scikit-learn's defaults.
        changes: parameters that are narrowed, replaced or constant, by name; see the module.
    Raises:
        SpaceError: there is no such parameter, or it cannot be narrowed so.
    Example:
        >>> raybo.Searcher(raybo.spaces.hist_gradient_boosting(), seed=0).ask().config["max_iter"]
        100
    """
    space: Parameters = {
        "learning_rate": Float(1e-3, 1.0, log=True, guess=0.1, next_guesses=[0.3, 0.1, 0.1]),
        "max_iter": Integer(20, 1_000, log=True, guess=100, next_guesses=[200, 100, 26]),
        "max_leaf_nodes": Integer(4, 256, log=True, guess=31, next_guesses=[4, 100, 4]),
        "min_samples_leaf": Integer(2, 200, log=True, guess=20, next_guesses=[2, 20, 11]),
        "l2_regularization": Ordinal(PENALTIES, guess=0.0, next_guesses=[100.0, 0.0, 0.01]),
        "max_features": Float(0.2, 1.0, guess=1.0, next_guesses=[0.25, 0.2, 1.0]),
    }
    return _changed("hist_gradient_boosting", space, leave_out, changes)


def random_forest(*, is_regression: bool = False, leave_out: Sequence[str] = (), **changes: Any) -> Parameters:
    """Return a space for scikit-learn's `RandomForestClassifier` and `Regressor`, after [P] and [H].

    The number of trees is not in it: more are never worse but slower. The default stays, or give `n_estimators` to the
    model yourself.

    Args:
        is_regression: whether the first trial is the regressor's default, which looks at all features for each split.
        leave_out: names of parameters that stay at scikit-learn's defaults.
        changes: parameters that are narrowed, replaced or constant, by name; see the module.
    Raises:
        SpaceError: there is no such parameter, or it cannot be narrowed so.
    Example:
        >>> raybo.Searcher(raybo.spaces.random_forest(max_depth=8), seed=0).ask().config["max_features"]
        'sqrt'
    """
    most = 1.0 if truth(is_regression, "is_regression", SpaceError) else "sqrt"
    space: Parameters = {
        "max_features": Ordinal(["sqrt", 0.25, 0.5, 0.75, 1.0], guess=most, next_guesses=[0.5, "sqrt", 1.0]),
        "min_samples_leaf": Integer(1, 50, log=True, guess=1, next_guesses=[2, 5, 1]),
        "min_samples_split": Integer(2, 128, log=True, guess=2, next_guesses=[18, 2, 2]),
        "max_depth": Ordinal([2, 4, 8, 16, 32, None], guess=None, next_guesses=[4, 16, 4]),
        "max_samples": Ordinal([0.1, 0.2, 0.4, 0.6, 0.8, None], guess=None, next_guesses=[None, 0.4, None]),
    }
    return _changed("random_forest", space, leave_out, changes)


def logistic_regression(*, leave_out: Sequence[str] = (), **changes: Any) -> Parameters:
    """Return a space for scikit-learn's `LogisticRegression`, after [P] and [H].

    Args:
        leave_out: names of parameters that stay at scikit-learn's defaults.
        changes: parameters that are narrowed, replaced or constant, by name; see the module.
    Raises:
        SpaceError: there is no such parameter, or it cannot be narrowed so.
    Example:
        >>> raybo.Searcher(raybo.spaces.logistic_regression(), seed=0).ask().config
        {'C': 1.0, 'class_weight': None, 'fit_intercept': True}
    """
    space: Parameters = {
        "C": Float(2.0**-10, 2.0**10, log=True, guess=1.0),
        "class_weight": Categorical([None, "balanced"], guess=None),
        "fit_intercept": Categorical([True, False], guess=True),
    }
    return _changed("logistic_regression", space, leave_out, changes)


def svm(*, features: int | None = None, leave_out: Sequence[str] = (), **changes: Any) -> Parameters:
    """Return a space for scikit-learn's `SVC` and `SVR` with their default kernel, after [P] and [H].

    The default `gamma="scale"` is 1 / features where the features are standardised, as they should be.

    Args:
        features: how many there are; None to leave `gamma` out, which is then "scale".
        leave_out: names of parameters that stay at scikit-learn's defaults.
        changes: parameters that are narrowed, replaced or constant, by name; see the module.
    Raises:
        SpaceError: `features` is no whole number from 1; there is no such parameter, or it cannot be narrowed so.
    Example:
        >>> raybo.Searcher(raybo.spaces.svm(features=20), seed=0).ask().config
        {'C': 1.0, 'gamma': 0.05}
    """
    space: Parameters = {"C": Float(2.0**-10, 2.0**10, log=True, guess=1.0)}
    if features is not None:
        scale = 1.0 / whole_number(features, "svm: features", error=SpaceError)
        space["gamma"] = Float(min(2.0**-10, scale), 2.0**10, log=True, guess=scale)
    return _changed("svm", space, leave_out, changes)


def mlp(*, leave_out: Sequence[str] = (), **changes: Any) -> Parameters:
    """Return a space for scikit-learn's `MLPClassifier` and `MLPRegressor`, after [H].

    Args:
        leave_out: names of parameters that stay at scikit-learn's defaults.
        changes: parameters that are narrowed, replaced or constant, by name; see the module.
    Raises:
        SpaceError: there is no such parameter, or it cannot be narrowed so.
    Example:
        >>> raybo.Searcher(raybo.spaces.mlp(), seed=0).ask().config["hidden_layer_sizes"]
        (100,)
    """
    space: Parameters = {
        "hidden_layer_sizes": Categorical([(32,), (100,), (256,), (32, 32), (100, 100), (256, 256)], guess=(100,)),
        "activation": Categorical(["relu", "tanh"], guess="relu"),
        "alpha": Float(1e-8, 1.0, log=True, guess=1e-4),
        "learning_rate_init": Float(1e-5, 1.0, log=True, guess=1e-3),
    }
    return _changed("mlp", space, leave_out, changes)


def lora(*, leave_out: Sequence[str] = (), **changes: Any) -> Parameters:
    """Return a space for low-rank adapters: peft's `LoraConfig`, and the rate and decay of their training.

    After [L], which tries ranks up to 64, and [Q], which trains at rates of 1e-4 and 2e-4. The first trial has the
    defaults of `LoraConfig` and, for rate, warm-up and decay, of the `TrainingArguments` of transformers.

    Args:
        leave_out: names of parameters that stay at these defaults.
        changes: parameters that are narrowed, replaced or constant, by name; see the module.
    Raises:
        SpaceError: there is no such parameter, or it cannot be narrowed so.
    Example:
        >>> raybo.Searcher(raybo.spaces.lora(leave_out=["weight_decay", "warmup_ratio"]), seed=0).ask().config
        {'r': 8, 'lora_alpha': 8, 'lora_dropout': 0.0, 'learning_rate': 5e-05}
    """
    space: Parameters = {
        "r": Ordinal([1, 2, 4, 8, 16, 32, 64], guess=8),
        "lora_alpha": Ordinal([4, 8, 16, 32, 64, 128], guess=8),
        "lora_dropout": Float(0.0, 0.2, guess=0.0),
        "learning_rate": Float(1e-5, 1e-2, log=True, guess=5e-5),
        "weight_decay": Float(0.0, 0.1, guess=0.0),
        "warmup_ratio": Float(0.0, 0.2, guess=0.0),
    }
    return _changed("lora", space, leave_out, changes)


def _changed(whose: str, space: Parameters, leave_out: Sequence[str], changes: Parameters) -> Parameters:
    """Return a space with the user's changes."""
    left_out = [leave_out] if isinstance(leave_out, str) else a_list(leave_out, "leave_out", "names", SpaceError)
    for name in (*left_out, *changes):
        if not isinstance(name, str) or name not in [*space]:  # compared, as a text of another class may not hash
            likely = nearest(name if isinstance(name, str) else "", list(space))
            raise SpaceError(f"{whose}: it has no parameter {shown(name)}{likely}")
    return {
        name: _narrowed(f"{whose}: {name}", parameter, changes[name]) if name in changes else parameter
        for name, parameter in space.items()
        if name not in left_out
    }


def _narrowed(name: str, parameter: Any, change: Any) -> Any:
    """Return a parameter as a keyword changes it: a narrower one, another one, or a constant."""
    try:
        return _as_changed(name, parameter, change)
    except SpaceError as error:
        raise named(error, name) from None


def _as_changed(name: str, parameter: Any, change: Any) -> Any:
    if isinstance(change, tuple) and isinstance(parameter, (Float, Integer)):
        if len(change) != 2 or not all(map(is_number, change)):
            raise SpaceError(f"{name}: a range is narrowed by (low, high), got {shown(change)}")
        low, high = (parameter.accept(end, name) for end in change)
        within = [min(max(guess, low), high) for guess in (parameter.guess, *parameter.next_guesses)]
        narrow: Any = {"low": low, "high": high, "guess": within[0], "next_guesses": within[1:]}
        return replace(parameter, **narrow)
    if isinstance(change, tuple) and isinstance(parameter, Ordinal) and any(map(is_number, parameter.choices)):
        if len(change) != 2 or not all(map(is_number, change)):
            raise SpaceError(f"{name}: its values are narrowed by (low, high) or a list of them, got {shown(change)}")
        change = [value for value in parameter.choices if is_number(value) and change[0] <= value <= change[1]]
        if not change:
            raise SpaceError(f"{name}: none of {shown(list(parameter.choices))} lies in that range; give another")
    if isinstance(change, list) and isinstance(parameter, (Float, Integer, Categorical)):
        kept = [parameter.accept(value, name) for value in change]
        kind = type(parameter) if isinstance(parameter, Categorical) else Ordinal
        if parameter.guess not in kept:
            return kind(kept)
        return kind(
            kept,
            guess=parameter.guess,
            next_guesses=[each if each in kept else parameter.guess for each in parameter.next_guesses],
        )
    return change


READY: Mapping[str, Callable[[], Parameters]] = {
    make.__name__: make
    for make in (xgboost, lightgbm, hist_gradient_boosting, random_forest, logistic_regression, svm, mlp, lora)
}
