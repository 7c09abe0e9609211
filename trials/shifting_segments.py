"""XGBoost that finds diseased trees in two satellite scenes, whose mix shifts from one validation batch to the next.

    raybo tune trials/shifting_segments.py --method sbo-kde
    raybo tune trials/shifting_segments.py --method sbo-kde --set trees=200 --set seed=7

Trees are hard to judge in the scene where a third of them is diseased, and easy in the other one, where it is one in
sixty. Each trial is judged on 5000 trees that came in one day; which share of them is of the hard scene is measured
after the fact, and is the context. A model that was judged on an easy day looks good, whatever its hyperparameters are.
What counts is the mean loss over all days: it is computed from every held-out tree, as the metric `expected`, which no
method sees.

The data are the two parts of the wilt set, see data/README.md; half of each scene is for training. The batch belongs to
the configuration and the keyword parameter `seed`. One evaluation takes about 0.1 s on one core.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xgboost import XGBClassifier

import raybo

Array: TypeAlias = NDArray[np.float64]

WILT = Path(__file__).parent / "data" / "wilt.csv"
EASY_ROWS = 4339  # the first scene; the others are the second
BATCH = 5000
SHARES = (1.0, 2.0)  # Beta law of the hard scene's share: usually small, at times nearly all
MEAN_SHARE = SHARES[0] / sum(SHARES)
LEAST = 0.02  # probability that a prediction leaves to the other class

space = raybo.Space(
    {
        "eta": raybo.Float(0.05, 1.0, log=True),  # learning rate
        "max_depth": raybo.Integer(1, 12),
        "scale_pos_weight": raybo.Float(0.1, 30.0, log=True),  # of a diseased tree in training
        "reg_lambda": raybo.Float(1e-2, 1e2, log=True),
    }
)


@raybo.objective(space=space, context={"hard_share": raybo.Float(0, 1)}, metric="loss", mode="min")
def shifting_segments(config: dict[str, Any], *, trees: int = 60, seed: int = 0, data: Path = WILT) -> dict[str, float]:
    """Logarithmic loss on one day's trees."""
    (X, y), easy, hard = scenes(data)
    model = XGBClassifier(**config, n_estimators=trees, n_jobs=1, random_state=0, tree_method="hist").fit(X, y)
    losses = [losses_of(model, *scene) for scene in (easy, hard)]
    rng = np.random.default_rng([seed, *repr(sorted(config.items())).encode()])
    of_hard = rng.random(BATCH) < rng.beta(*SHARES)
    day = np.where(of_hard, rng.choice(losses[1], BATCH), rng.choice(losses[0], BATCH))
    return {
        "loss": float(day.mean()),
        "hard_share": float(of_hard.mean()),
        "expected": float((1.0 - MEAN_SHARE) * losses[0].mean() + MEAN_SHARE * losses[1].mean()),
    }


def losses_of(model: XGBClassifier, X: Array, y: Array) -> Array:  # (n, 5), (n,) -> (n,)
    """The logarithmic loss of each tree."""
    p = np.clip(model.predict_proba(X)[:, 1], LEAST, 1.0 - LEAST)
    return np.asarray(-np.log(np.where(y == 1.0, p, 1.0 - p)), dtype=np.float64)


@lru_cache(maxsize=1)
def scenes(data: Path) -> tuple[tuple[Array, Array], ...]:
    """Features and classes of the trees to train on, and of those held out in the easy and in the hard scene."""
    table = np.loadtxt(data, dtype=str, delimiter=",", skiprows=1)
    X, y = table[:, :-1].astype(np.float64), (table[:, -1] == "w").astype(np.float64)
    rows = np.arange(len(y))
    train, hard = rows % 2 == 0, rows >= EASY_ROWS
    return (X[train], y[train]), (X[~train & ~hard], y[~train & ~hard]), (X[~train & hard], y[~train & hard])
