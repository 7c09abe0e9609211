"""RayboSearchCV beside scikit-learn's random search and scikit-optimize's, on digits with a support vector machine.

Best mean accuracy over 3 folds after as many configurations, all in one process; then the wall time of RayboSearchCV
with its folds as Ray tasks. BayesSearchCV runs where scikit-optimize is installed.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, command, missing
from raybo.engine.ray.connection import ray_for_study

QUICK = {"seeds": 1}
C, GAMMA = (1e-3, 1e3), (1e-6, 1e1)
KERNELS = ["rbf", "poly", "sigmoid"]
OURS = "RayboSearchCV"


def searches(seed: int, n: int) -> dict[str, Any]:
    """The same estimator, ranges, folds and number of configurations for each; ours is the first."""
    from scipy.stats import loguniform
    from sklearn.model_selection import RandomizedSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    from raybo.integrations.sklearn import RayboSearchCV

    common = {"cv": StratifiedKFold(3, shuffle=True, random_state=0), "n_iter": n, "random_state": seed, "refit": False}
    ours = {"C": raybo.Float(*C, log=True), "gamma": raybo.Float(*GAMMA, log=True), "kernel": KERNELS}
    theirs = {"C": loguniform(*C), "gamma": loguniform(*GAMMA), "kernel": KERNELS}
    made: dict[str, Any] = {
        OURS: RayboSearchCV(SVC(), ours, **common),
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


def fitted(search: Any) -> tuple[float, float]:
    """The best score, and the seconds that it took."""
    from sklearn.datasets import load_digits

    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about sigmoid kernels
        search.fit(*load_digits(return_X_y=True))
    return float(search.best_score_), time.perf_counter() - begun


def figures(seeds: int = 5, configurations: int = 30) -> Figures:
    """A figure per search, and one of the search on two Ray workers."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        yield missing(OURS, "scikit-learn")
        return
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(seeds):
        for name, search in searches(seed, configurations).items():
            found.setdefault(name, []).append(fitted(search))
    for name, rows in found.items():
        scores, seconds = np.array(rows).T
        note = f"{scores.mean():.4f}, least {scores.min():.4f}, {seconds.mean():.1f} s a search"
        yield Figure(f"best accuracy of {name}, {configurations} configurations, {seeds} seeds", note)
    if "BayesSearchCV" not in found:
        yield missing("best accuracy of BayesSearchCV", "scikit-optimize")
    with ray_for_study(None, 2):
        score, seconds = fitted(searches(0, configurations)[OURS].set_params(n_jobs=2))
    alone = found[OURS][0][1]
    yield Figure(f"{OURS} with n_jobs=2, seed 0", f"{seconds:.1f} s, best {score:.4f} (n_jobs=1: {alone:.1f} s)")


if __name__ == "__main__":
    command(figures)
