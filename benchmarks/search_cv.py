"""RayboSearchCV beside scikit-learn's random search and scikit-optimize's, on digits with a support vector machine.

`python -m benchmarks.search_cv [SEEDS] [CONFIGURATIONS]`: best mean accuracy over 3 folds after as many configurations,
and wall time, all in one process. BayesSearchCV runs where scikit-optimize is installed.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.model_selection import RandomizedSearchCV, StratifiedKFold
from sklearn.svm import SVC

import raybo
from raybo.integrations.sklearn import RayboSearchCV

C, GAMMA = (1e-3, 1e3), (1e-6, 1e1)
KERNELS = ["rbf", "poly", "sigmoid"]


def searches(seed: int, n: int) -> dict[str, Any]:
    """The same estimator, ranges, folds and number of configurations for each."""
    common = {"cv": StratifiedKFold(3, shuffle=True, random_state=0), "n_iter": n, "random_state": seed, "refit": False}
    ours = {"C": raybo.Float(*C, log=True), "gamma": raybo.Float(*GAMMA, log=True), "kernel": KERNELS}
    theirs = {"C": loguniform(*C), "gamma": loguniform(*GAMMA), "kernel": KERNELS}
    made: dict[str, Any] = {
        "RayboSearchCV": RayboSearchCV(SVC(), ours, **common),
        "RandomizedSearchCV": RandomizedSearchCV(SVC(), theirs, **common),
    }
    try:
        from skopt import BayesSearchCV
        from skopt.space import Categorical, Real
    except ImportError:
        return made
    space = {
        "C": Real(*C, prior="log-uniform"),
        "gamma": Real(*GAMMA, prior="log-uniform"),
        "kernel": Categorical(KERNELS),
    }
    return {**made, "BayesSearchCV": BayesSearchCV(SVC(), space, **common)}


def main() -> None:
    """Print a row a search."""
    seeds, n = (int(text) for text in [*sys.argv[1:], *["5", "30"][len(sys.argv) - 1 :]][:2])
    X, y = load_digits(return_X_y=True)
    found: dict[str, list[tuple[float, float, float]]] = {}
    for seed in range(seeds):
        for name, search in searches(seed, n).items():
            wall, processor = time.perf_counter(), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                search.fit(X, y)
            spent = time.perf_counter() - wall, time.process_time() - processor
            found.setdefault(name, []).append((search.best_score_, *spent))
            print(f"seed {seed} {name:20s} {search.best_score_:.5f} {spent[0]:.0f} s", flush=True)
    for name, rows in found.items():
        scores, walls, processors = np.array(rows).T
        print(
            f"{name:20s} best accuracy mean {scores.mean():.5f}, least {scores.min():.5f}, largest {scores.max():.5f}; "
            f"{walls.mean():.0f} s wall, {processors.mean():.0f} s of processor"
        )


if __name__ == "__main__":
    main()
