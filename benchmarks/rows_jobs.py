"""Training jobs in which the number of rows matters, for `benchmarks.budget`: real fits of scikit-learn on made data.

A job is a model with its parameters, and a data set that its number draws. A run trains on the first so many rows and
is judged on 4,000 others; it takes the processor time of its fit, on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import raybo
from raybo.common.threads import limit_threads
from raybo.space import Config

TESTED = 4_000  # rows
Result = tuple[float, float]  # value, maximised, and seconds


@dataclass(frozen=True)
class Kind:
    """A kind of job.

    Attributes:
        space: of its parameters. rows: the fewest and all. made: of a configuration.
        is_classifier: judged by log loss, or by accuracy if it has no probabilities; else by squared error.
    """

    space: raybo.Space
    rows: raybo.Fidelity
    made: Callable[[Config], Any]
    is_classifier: bool


def _boosting(config: Config) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(**config, early_stopping=False, random_state=0)


def _forest(config: Config) -> Any:
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(**config, bootstrap=True, random_state=0)


def _svm(config: Config) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return make_pipeline(StandardScaler(), SVC(**config, cache_size=500))


KINDS = {
    "boosting": Kind(
        raybo.Space(
            {
                "learning_rate": raybo.Float(0.01, 1.0, log=True),
                "max_iter": raybo.Integer(10, 100, log=True),
                "max_leaf_nodes": raybo.Integer(3, 64, log=True),
                "min_samples_leaf": raybo.Integer(1, 100, log=True),
                "l2_regularization": raybo.Float(1e-3, 100.0, log=True),
            }
        ),
        raybo.Fidelity(400, 10_800),
        _boosting,
        True,
    ),
    "forest": Kind(
        raybo.Space(
            {
                "n_estimators": raybo.Integer(5, 60, log=True),
                "max_features": raybo.Float(0.05, 1.0),
                "min_samples_leaf": raybo.Integer(1, 60, log=True),
                "max_samples": raybo.Float(0.1, 1.0),
            }
        ),
        raybo.Fidelity(300, 8_100),
        _forest,
        False,
    ),
    "svm": Kind(
        raybo.Space({"C": raybo.Float(1e-2, 1e3, log=True), "gamma": raybo.Float(1e-4, 10.0, log=True)}),
        raybo.Fidelity(80, 2_160),
        _svm,
        True,
    ),
}


@lru_cache(maxsize=4)
def data(kind: str, number: int) -> tuple[Any, Any]:
    """Return the rows of a data set, those to train on before those to judge by."""
    from sklearn.datasets import make_classification, make_friedman1

    rng, n = np.random.default_rng(number), KINDS[kind].rows.high + TESTED
    if not KINDS[kind].is_classifier:
        X, y = make_friedman1(n, n_features=int(rng.integers(6, 30)), noise=rng.uniform(0.5, 3.0), random_state=number)
        return X, (y - y.mean()) / y.std()
    informative = int(rng.integers(4, 12))
    return make_classification(  # type: ignore[no-any-return]
        n,
        n_features=informative + int(rng.integers(2, 20)),
        n_informative=informative,
        n_redundant=2,
        n_clusters_per_class=int(rng.integers(2, 8)),
        class_sep=rng.uniform(0.6, 1.6),
        flip_y=rng.uniform(0.0, 0.15),
        random_state=number,
    )


@lru_cache(maxsize=20_000)
def result(kind: str, number: int, parameters: tuple[tuple[str, Any], ...], rows: int) -> Result:
    """Train on so many rows; the parameters are a configuration's items."""
    X, y = data(kind, number)
    job, made = KINDS[kind], KINDS[kind].made(dict(parameters))
    with limit_threads(1):
        begun = time.process_time()
        made.fit(X[:rows], y[:rows])
        seconds = time.process_time() - begun
        tested, truth = X[-TESTED:], y[-TESTED:]
        if not job.is_classifier:
            return -float(np.mean(np.square(made.predict(tested) - truth))), seconds
        if not hasattr(made, "predict_proba"):
            return float(np.mean(made.predict(tested) == truth)), seconds
        likely = np.clip(made.predict_proba(tested)[np.arange(TESTED), truth], 1e-6, 1.0)
        return float(np.mean(np.log(likely))), seconds
