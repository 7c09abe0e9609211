"""Choose the next guesses of `raybo.spaces`: configurations that do best together, whatever the data set is.

    python -m benchmarks.next_guesses --out table.csv

After Pfisterer, van Rijn, Probst, Müller, Bischl (2018), "Learning Multiple Defaults for Machine Learning Algorithms",
arXiv:1811.09409: beginning with the library's default, each guess is the candidate that lowers the most the regret of
the best so far, in the mean over data sets and both measures. Regret is what a configuration is behind the best
candidate, as a share of what the median candidate is, and at most `MOST`. Candidates are the default, `TEXTBOOK`,
the middle of the space, and Sobol points; in every second of those about half of the parameters stay at their
default. Whatever is in FILE.csv is not run again. Held out: the same with half of the data sets, on the other half,
beside as many candidates drawn at random.
"""

from __future__ import annotations

import argparse
import csv
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from benchmarks.classification import LEARNED, MEASURES, SHIPPED, R, data_of, measured, models, needs
from raybo import Space

Array = NDArray[np.float64]
# boosting by Hastie, Tibshirani, Friedman (2009), "The Elements of Statistical Learning", 10.11 and 10.12
TEXTBOOK = {"learning_rate": 0.05, "max_depth": 3, "num_leaves": 8, "max_leaf_nodes": 8, "subsample": 0.5}
POINTS = 256  # of the Sobol sequence, of which the first are used
LEAST = 0.01  # between the best and the median candidate: less is the noise of 400 rows
MOST = 3.0
HALVES = 20  # times that the data sets are halved


def candidates(space: Space, count: int) -> Array:  # (count, d)
    """Return the first candidates of a space, beginning with the default."""
    rng, default = np.random.default_rng(2), space.snap(space.cube.guesses()[None, :])[0]
    U = qmc.Sobol(space.d, scramble=True, seed=1).random(POINTS)
    for u in U[1::2]:
        stays = rng.random(space.d) < 0.5
        u[stays] = default[stays]
    (config,) = space.decode(default[None, :])
    of_boosting = {**config, **{name: value for name, value in TEXTBOOK.items() if name in config}}
    textbook = space.encode([of_boosting if "learning_rate" in config else config])
    return space.snap(np.vstack([default, textbook, np.full(space.d, 0.5), U]))[:count]


def shares(values: Array) -> Array:  # (candidates, problems) -> the same
    """Return the regret of candidates on problems."""
    behind = values - values.min(axis=0)
    return np.asarray(np.minimum(MOST, behind / np.maximum(np.median(behind, axis=0), LEAST)))


def chosen(regrets: Array, count: int) -> list[int]:
    """Return the default and the next `count` candidates, as the greedy rule chooses them."""
    found = [0]
    for _ in range(count):
        best = regrets[found].min(axis=0)
        found.append(int(np.minimum(regrets, best).mean(axis=1).argmin()))
    return found


def held_out(regrets: Array, count: int) -> tuple[float, float]:
    """Return the mean regret of guesses on problems by which they were not chosen, and of candidates at random.

    Args:
        regrets: (candidates, 2 k), of one measure after the other on k data sets.
        count: how many guesses follow the default.
    """
    rng, k = np.random.default_rng(0), regrets.shape[1] // 2
    of_chosen, of_drawn = [], []
    for _ in range(HALVES):
        half = np.resize(np.isin(np.arange(k), rng.permutation(k)[: k // 2]), 2 * k)
        of_chosen.append(regrets[chosen(regrets[:, half], count)][:, ~half].min(axis=0).mean())
        of_drawn.append(regrets[rng.permutation(len(regrets))[: count + 1]][:, ~half].min(axis=0).mean())
    return float(np.mean(of_chosen)), float(np.mean(of_drawn))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.next_guesses",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.csv", help="the table of what was run")
    parser.add_argument("--candidates", type=int, default=100, help="[default: %(default)s]")
    parser.add_argument("--guesses", type=int, default=3, help="[default: %(default)s]")
    parser.add_argument("--models", default=",".join(models()), help="[default: %(default)s]")
    given = parser.parse_args()
    if package := needs("learned") or needs("r"):
        parser.error(f"it needs data sets of {package}, which is not installed; see benchmarks/classification.py")
    installed, names = models(), (*SHIPPED, *LEARNED, *R)
    table = kept(given.out)
    for model in given.models.split(","):
        space, make = Space(installed[model][0]), installed[model][1]
        X = candidates(space, given.candidates)
        configs = space.decode(X)
        for name, i in product(names, range(len(X))):
            if (model, name, i) not in table:
                table[model, name, i] = values = measured(make, configs[i], data_of(name))
                with given.out.open("a", encoding="utf-8", newline="") as file:
                    csv.writer(file).writerow([model, name, i, *(f"{values[measure]:.6g}" for measure in MEASURES)])
        regrets = np.hstack(
            [
                shares(np.array([[table[model, name, i][measure] for name in names] for i in range(len(X))]))
                for measure in MEASURES
            ]
        )
        found = chosen(regrets, given.guesses)
        for count, i in enumerate(found, 1):
            print(model, count, f"regret {regrets[found[:count]].min(axis=0).mean():.3f}", f"candidate {i}", configs[i])
        print(model, "held out: chosen {:.3f}, at random {:.3f}".format(*held_out(regrets, given.guesses)))


def kept(out: Path) -> dict[tuple[str, str, int], dict[str, float]]:
    """Return what was run: the measures by model, data set and candidate."""
    if not out.is_file():
        return {}
    with out.open(encoding="utf-8", newline="") as file:
        return {
            (row[0], row[1], int(row[2])): dict(zip(MEASURES, map(float, row[3:]), strict=True))
            for row in csv.reader(file)
        }


if __name__ == "__main__":
    main()
