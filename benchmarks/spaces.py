"""Measure the worth of the guesses in `raybo.spaces`: searches with them, and without.

Data sets and models are those of `benchmarks.classification`; nothing was chosen on the `fresh` ones, and the guesses
on all others (`benchmarks.next_guesses`). A trial trains on half of the data, 400 rows at most; its value is the share
of the other half that it has wrong, or the log loss there, in searches of their own; it grows 300 trees at most. Regret
is what a search is behind the best value that any of the searches has found, as a share of what the median trial
without guesses is behind it, or of 0.01 if that is more; searches of one seed are paired. The interval is of the pairs
of data set and model, drawn anew. `--kind default` has no guess but the default. With `--out FILE.csv` searches are
kept, and the same command goes on where it was stopped.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import raybo
from benchmarks.classification import MEASURES, SETS, Data, Model, data_of, measured, models, needs
from benchmarks.figures import Figure, Figures, at_most, command, missing
from benchmarks.next_guesses import LEAST
from raybo.space import Categorical

QUICK = {"seeds": 1, "sets": "wine,vehicle"}
IN_BRIEF = {"seeds": 2}
TRIALS = 10

Key = tuple[str, str, str, str, int]  # measure, data set, model, "guess", "default" or "none", seed


def without_guesses(space: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same space for somebody who expects nothing."""
    return {name: _plain(parameter, guess=None, next_guesses=()) for name, parameter in space.items()}


def only_default(space: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same space without next guesses."""
    return {name: _plain(parameter, next_guesses=()) for name, parameter in space.items()}


def _plain(parameter: Any, **without: Any) -> Any:
    """Return a parameter without some of its guesses."""
    if isinstance(parameter, Categorical):
        return type(parameter)(parameter.choices, **({} if "guess" in without else {"guess": parameter.guess}))
    return replace(parameter, **without) if isinstance(parameter, (raybo.Float, raybo.Integer)) else parameter


KINDS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "guess": dict,
    "default": only_default,
    "none": without_guesses,
}


def search(space: Mapping[str, Any], make: Model, data: Data, seed: int, measure: str) -> Iterator[float]:
    """Yield the values of a search's trials."""
    searcher = raybo.Searcher(space, mode="min", seed=seed, trials=TRIALS)
    for _ in range(TRIALS):
        trial = searcher.ask()
        yield float(searcher.tell(trial, measured(make, trial.config, data)[measure]).value or 0.0)


def kept(out: Path) -> dict[Key, list[float]]:
    """Return the searches of a file."""
    if not out.is_file():
        return {}
    with out.open(encoding="utf-8", newline="") as file:
        return {(row[0], row[1], row[2], row[3], int(row[4])): [float(v) for v in row[5:]] for row in csv.reader(file)}


def figures(
    seeds: int = 5,
    first: int = 0,
    sets: str = "fresh",
    measures: str = ",".join(MEASURES),
    kind: str = "guess",
    out: str = "",
) -> Figures:
    runs, installed = kept(Path(out)) if out else {}, models()
    if package := needs(sets):
        yield missing(f"searches on the data sets {sets}", package)
        return
    names = SETS[sets] if sets in SETS else sets.split(",")
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
    scale = max(float(np.median(values["none"])) - best, LEAST)
    with_guess, without = ((values[which].min(axis=1) - best).mean() / scale for which in (kind, "none"))
    return float(with_guess), float(without)


if __name__ == "__main__":
    command(figures)
