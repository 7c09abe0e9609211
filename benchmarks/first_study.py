"""The README's first study, as its reader runs it: gradient boosting tuned by the default method.

Seconds are of the whole command, Ray's start and end included. Beside its best accuracy stands that of scikit-learn's
defaults, cross-validated on the same folds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import raybo
from benchmarks.figures import Figure, Figures, command, missing

QUICK = {"trials": 15}
JOB = Path(__file__).parents[1] / "trials" / "gradient_boosting.py"


def defaults_accuracy() -> float:
    """Of gradient boosting as scikit-learn has it."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    X, y = load_breast_cancer(return_X_y=True)
    return float(cross_val_score(GradientBoostingClassifier(random_state=0), X, y, cv=StratifiedKFold(5)).mean())


def figures(trials: int = 50, seed: int = 0, workers: int = 2) -> Figures:
    """The study, and the accuracy without it."""
    what = f"raybo tune trials/gradient_boosting.py, {trials} trials, {workers} workers"
    try:
        default = defaults_accuracy()
    except ImportError:
        yield missing(what, "scikit-learn")
        return
    with tempfile.TemporaryDirectory() as directory:
        storage = Path(directory, "study.db")
        options = {"trials": trials, "seed": seed, "workers": workers, "storage": storage}
        given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "raybo.cli", "tune", str(JOB), *given], check=True, capture_output=True)
        seconds = time.perf_counter() - begun
        best = raybo.load(storage).best.value
    assert best is not None
    yield Figure(what, f"{seconds:.0f} s, best accuracy {best:.4f}")
    yield Figure("the same folds, scikit-learn's defaults", f"accuracy {default:.4f}", "below the best", default < best)


if __name__ == "__main__":
    command(figures)
