"""Small training jobs on data that scikit-learn and trials/ bring along: cross-validated errors, some ms per trial.

Spaces are as users write them in a hurry: rates without a logarithm, integers, choices.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import raybo
from benchmarks.default.problem import Task
from benchmarks.searches import Array
from raybo.space import Config

DATA = Path(__file__).parents[2] / "trials" / "data"


@lru_cache(maxsize=4)
def rows(name: str, every: int = 1) -> tuple[Array, Any]:
    """Features and classes of a data set in trials/data, every so many of its rows in a shuffled order."""
    table = np.loadtxt(DATA / f"{name}.csv", dtype=str, delimiter=",", skiprows=1)
    order = np.random.default_rng(0).permutation(len(table))[::every]
    return table[order, :-1].astype(np.float64), table[order, -1]


def scored(space: dict[str, Any], data: Callable[[], tuple[Array, Any]], make: Callable[[Config], Any]) -> Task:
    """A task of the mean score over three folds, turned so that less is better; a model that cannot be fitted fails."""

    def value(config: Config) -> float:
        X, y = data()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of climbs that end early
            try:
                scores = cross_val_score(make_pipeline(StandardScaler(), make(config)), X, y, cv=3)
            except ValueError:  # no fold could be fitted
                return math.nan
        return -float(np.mean(scores))

    return Task(raybo.Space(space), value)


def svm() -> Task:
    """A support vector machine on credit cards: rates without their logarithms."""
    space = {
        "C": raybo.Float(0.001, 1000),
        "gamma": raybo.Float(1e-5, 10),
        "kernel": raybo.Categorical(["rbf", "sigmoid", "poly"]),
    }
    return scored(space, lambda: rows("australian", 2), lambda config: SVC(**config, max_iter=5000))


def tree() -> Task:
    """A decision tree that looks for defects: integers, choices, plateaus."""
    space = {
        "max_depth": raybo.Integer(1, 30),
        "min_samples_split": raybo.Integer(2, 100),
        "min_samples_leaf": raybo.Integer(1, 60),
        "ccp_alpha": raybo.Float(0.0, 0.05),
        "criterion": raybo.Categorical(["gini", "entropy", "log_loss"]),
        "max_features": raybo.Categorical(["sqrt", "log2", None]),
        "splitter": raybo.Categorical(["best", "random"]),
    }
    return scored(space, lambda: rows("kc1", 2), lambda config: DecisionTreeClassifier(**config, random_state=0))


def linear() -> Task:
    """A linear classifier by stochastic gradients on vehicles: steep where it diverges."""
    space = {
        "alpha": raybo.Float(1e-7, 1.0, log=True),
        "eta0": raybo.Float(1e-4, 10.0),
        "l1_ratio": raybo.Float(0, 1),
        "power_t": raybo.Float(0, 1),
        "learning_rate": raybo.Categorical(["constant", "invscaling", "adaptive"]),
        "average": raybo.Integer(1, 20),
    }

    def make(config: Config) -> Any:
        return SGDClassifier(**config, penalty="elasticnet", max_iter=15, tol=None, random_state=0)

    return scored(space, lambda: rows("vehicle"), make)


def ridge() -> Task:
    """Kernel ridge regression of a disease's progress."""
    space = {
        "alpha": raybo.Float(1e-4, 100),
        "gamma": raybo.Float(1e-5, 1, log=True),
        "degree": raybo.Integer(1, 5),
        "coef0": raybo.Float(0, 10),
        "kernel": raybo.Categorical(["rbf", "laplacian", "polynomial", "linear"]),
    }
    return scored(space, lambda: load_diabetes(return_X_y=True), lambda config: KernelRidge(**config))


def cancer_svm() -> Task:
    """A support vector machine on diagnoses whose rates span ten decades, without their logarithms."""
    space = {
        "C": raybo.Float(1e-4, 1e4),
        "gamma": raybo.Float(1e-6, 100),
        "coef0": raybo.Float(-1, 1),
        "shrinking": raybo.Categorical([True, False]),
        "class_weight": raybo.Categorical([None, "balanced"]),
    }

    def data() -> tuple[Array, Any]:
        X, y = load_breast_cancer(return_X_y=True)
        return X[::3], y[::3]

    return scored(space, data, lambda config: SVC(**config, max_iter=3000))
