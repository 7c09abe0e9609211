"""Compare, on other splits, the configuration RayboSearchCV recommends with the one of the best mean score.

Ten classifiers on real and made data search 30 configurations by 5-fold accuracy; the best measured and the recommended
one are then scored on 30 further splits each, the same for both. The rule, fixed before the first run: `recommended`
becomes the default of `refit` if over the ten jobs its mean gain is above 0 by Wilcoxon's signed-rank test, one-sided
at 5 %, and at least 0.1 percentage points; else scikit-learn's own choice remains.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, command, missing

QUICK = {"seeds": 1, "configurations": 6, "splits": 2}
FOLDS = 5


def jobs() -> Iterator[tuple[str, Any, Any, Any, dict[str, Any]]]:
    """Yield name, estimator, X, y and space of each job."""
    from sklearn import datasets
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    cancer, wine, digits = (
        load(return_X_y=True) for load in (datasets.load_breast_cancer, datasets.load_wine, datasets.load_digits)
    )
    digits = digits[0][::3], digits[1][::3]
    made = datasets.make_classification(300, 20, n_informative=5, flip_y=0.1, random_state=1)
    wide = datasets.make_classification(200, 60, n_informative=8, flip_y=0.05, n_classes=3, random_state=2)
    moons = datasets.make_moons(200, noise=0.35, random_state=3)
    svm = {"svc__C": raybo.Float(1e-2, 1e3, log=True), "svc__gamma": raybo.Float(1e-5, 1, log=True)}
    tree = {
        "max_depth": raybo.Integer(1, 15),
        "min_samples_leaf": raybo.Integer(1, 30, log=True),
        "ccp_alpha": raybo.Float(1e-5, 0.1, log=True),
        "criterion": raybo.Categorical(["gini", "entropy"]),
    }
    near = {
        "kneighborsclassifier__n_neighbors": raybo.Integer(1, 40),
        "kneighborsclassifier__p": raybo.Float(1, 4),
        "kneighborsclassifier__weights": raybo.Categorical(["uniform", "distance"]),
    }
    line = {"logisticregression__C": raybo.Float(1e-4, 1e3, log=True)}
    forest = {
        "max_features": raybo.Float(0.05, 1),
        "min_samples_leaf": raybo.Integer(1, 20, log=True),
        "max_depth": raybo.Integer(2, 20),
    }

    def scaled(estimator: Any) -> Any:
        return make_pipeline(StandardScaler(), estimator)

    yield "svm, cancer", scaled(SVC()), *cancer, svm
    yield "svm, moons", scaled(SVC()), *moons, svm
    yield "svm, made", scaled(SVC()), *made, svm
    yield "tree, cancer", DecisionTreeClassifier(random_state=0), *cancer, tree
    yield "tree, digits", DecisionTreeClassifier(random_state=0), *digits, tree
    yield "tree, made", DecisionTreeClassifier(random_state=0), *made, tree
    yield "neighbours, wine", scaled(KNeighborsClassifier()), *wine, near
    yield "neighbours, wide", scaled(KNeighborsClassifier()), *wide, near
    yield "logistic, wide", scaled(LogisticRegression(max_iter=2_000)), *wide, line
    yield "extra trees, made", ExtraTreesClassifier(25, random_state=0), *made, forest


def gain(job: tuple[str, Any, Any, Any, dict[str, Any]], seed: int, configurations: int, splits: int) -> float:
    """Return by how much the recommended configuration is better than the best one, in percentage points."""
    from sklearn.base import clone
    from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, cross_val_score

    from raybo.integrations.sklearn import RayboSearchCV

    _, estimator, X, y, space = job
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    search = RayboSearchCV(estimator, space, n_iter=configurations, cv=folds, random_state=seed, refit="recommended")
    search.fit(X, y)
    recommended, best = search.best_index_, int(np.argmax(search.cv_results_["mean_test_score"]))
    if recommended == best:
        return 0.0
    other = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=splits // FOLDS or 1, random_state=10_000 + seed)
    chosen = (search.cv_results_["params"][index] for index in (recommended, best))
    scores = [cross_val_score(clone(estimator).set_params(**each), X, y, cv=other).mean() for each in chosen]
    return 100.0 * float(scores[0] - scores[1])


def figures(seeds: int = 8, configurations: int = 30, splits: int = 30) -> Figures:
    """A figure per job, and the verdict on all."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        yield missing("recommended over best on other splits", "scikit-learn")
        return
    from scipy.stats import wilcoxon

    means = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for job in jobs():
            gains = np.array([gain(job, seed, configurations, splits) for seed in range(seeds)])
            means.append(float(gains.mean()))
            counts = f"{np.sum(gains > 0)} better, {np.sum(gains < 0)} worse of {seeds}"
            yield Figure(f"recommended over best on other splits: {job[0]}", f"{means[-1]:+.2f} points ({counts})")
    p = float(wilcoxon(means, alternative="greater").pvalue) if any(means) else 1.0
    mean = float(np.mean(means))
    wanted = "p below 0.05, 0.1 points"
    yield Figure(
        f"the same, {len(means)} jobs", f"{mean:+.2f} points, p = {p:.3f}", wanted, bool(p < 0.05 and mean >= 0.1)
    )


if __name__ == "__main__":
    command(figures)
