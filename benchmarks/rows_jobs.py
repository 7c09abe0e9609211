"""Training jobs in which the number of rows matters, for `benchmarks.rows`: fits of scikit-learn on made data.

A job is a model with its parameters, and a data set that its number draws. A run trains on the first so many rows and
is judged on 2,000 others: by the log-likelihood, by accuracy (a support vector machine), or by the squared error,
negative. It takes the processor time of its fit, on one thread.

`data/rows.csv` has the value and the seconds of uniform configurations of each, at each number of rows. A search finds
what forests of trees make of these, one for values and one for the logarithm of the seconds: Eggensperger, Hutter,
Hoos, Leyton-Brown (2015), "Efficient Benchmarking of Hyperparameter Optimizers via Surrogates". To measure them again:
`python -m benchmarks.rows_jobs`.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import raybo
from raybo.common.threads import limit_threads
from raybo.space import Array, Config

TABLE = Path(__file__).parent / "data" / "rows.csv"
TESTED = 2_000  # rows
CONFIGURATIONS = 60  # of each job
NUMBERS = (0, 1, 100, 101, 102)  # of the data sets of each kind of job
Result = tuple[float, float]  # value, maximised, and seconds


@dataclass(frozen=True)
class Kind:
    """A kind of job.

    Attributes:
        space: of its parameters. rows: the fewest and all. model: of a configuration.
        is_classifier: true unless it is judged by its squared error.
    """

    space: raybo.Space
    rows: raybo.Fidelity
    model: Callable[[Config], Any]
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


class Job:
    """A job as its table has it.

    Args:
        kind: its kind. number: of its data set.
    """

    def __init__(self, kind: str, number: int) -> None:
        from sklearn.ensemble import ExtraTreesRegressor

        with TABLE.open() as file:
            lines = [line for line in csv.reader(file) if (line[0], line[1]) == (kind, str(number))]
        self.kind, self.name = KINDS[kind], f"{kind} {number}"
        points = _points(kind)
        X = np.array([self._at(points[int(line[2])], int(line[3])) for line in lines])
        told = np.array([[float(line[4]), np.log(max(float(line[5]), 1e-4))] for line in lines])
        self._trees = [ExtraTreesRegressor(60, min_samples_leaf=1, random_state=0).fit(X, column) for column in told.T]
        values, seconds = told[[int(line[3]) == self.kind.rows.high for line in lines]].T  # on all rows
        self.mean_seconds = float(np.exp(seconds).mean())
        self.spread = float(values.max() - np.median(values))

    def result(self, config: Config, rows: int) -> Result:
        """Return the value and the seconds of a run."""
        space = self.kind.space
        at = self._at(space.points([space.pack(config)])[0], rows)[None, :]
        value, seconds = (float(trees.predict(at)[0]) for trees in self._trees)
        return value, float(np.exp(seconds))

    def values(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the values of runs on all rows."""
        at = np.column_stack([X, np.full(len(X), self.kind.rows.place(self.kind.rows.high))])
        return np.asarray(self._trees[0].predict(at))

    def _at(self, x: Array, rows: int) -> Array:  # (d,) -> (d + 1,)
        return np.append(x, self.kind.rows.place(rows))


@lru_cache(maxsize=8)
def job(kind: str, number: int) -> Job:
    """Return a job."""
    return Job(kind, number)


def _points(kind: str) -> Array:  # (n, d)
    space = KINDS[kind].space
    return np.asarray(space.snap(np.random.default_rng(0).random((400, space.d))))


# ---- what the table was measured by


def _data(kind: str, number: int) -> tuple[Any, Any]:
    """Return the rows of a data set, those to train on before those to judge by."""
    from sklearn.datasets import make_classification, make_friedman1

    rng, n = np.random.default_rng(number), KINDS[kind].rows.high + TESTED
    if not KINDS[kind].is_classifier:
        X, y = make_friedman1(n, n_features=int(rng.integers(6, 30)), noise=rng.uniform(0.5, 3.0), random_state=number)
        return X, (y - y.mean()) / y.std()
    informative = int(rng.integers(4, 12))
    X, y = make_classification(
        n,
        n_features=informative + int(rng.integers(2, 20)),
        n_informative=informative,
        n_redundant=2,
        n_clusters_per_class=int(rng.integers(2, 8)),
        class_sep=rng.uniform(0.6, 1.6),
        flip_y=rng.uniform(0.0, 0.15),
        random_state=number,
    )
    return X, y


def measured(kind: str, data: tuple[Any, Any], config: Config, rows: int) -> Result:
    """Train on the first rows of the data; return the score on those held out, and the processor seconds."""
    X, y = data
    made = KINDS[kind].model(config)
    with limit_threads(1):
        begun = time.process_time()
        made.fit(X[:rows], y[:rows])
        seconds = time.process_time() - begun
        tested, truth = X[-TESTED:], y[-TESTED:]
        if not KINDS[kind].is_classifier:
            return -float(np.mean(np.square(made.predict(tested) - truth))), seconds
        if not hasattr(made, "predict_proba"):
            return float(np.mean(made.predict(tested) == truth)), seconds
        likely = np.clip(made.predict_proba(tested)[np.arange(TESTED), truth], 1e-6, 1.0)
        return float(np.mean(np.log(likely))), seconds


def measure() -> None:
    """Write the table."""
    with TABLE.open("w", newline="") as file:
        table = csv.writer(file)
        for kind, job in KINDS.items():
            for number in NUMBERS:
                data, configs = _data(kind, number), job.space.decode(_points(kind)[:CONFIGURATIONS])
                for i, config in enumerate(configs):
                    for rows in job.rows.levels:
                        value, seconds = measured(kind, data, config, rows)
                        table.writerow([kind, number, i, rows, f"{value:.5f}", f"{seconds:.4f}"])


if __name__ == "__main__":
    measure()
