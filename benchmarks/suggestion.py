"""Time of one suggestion (fit included) of a GP method, beside scikit-learn's Gaussian process fitted to the same data.

python -m benchmarks.suggestion [--method gp-ucb] [--sizes 25,50,100,200,400] [--dimensions 6] [--asks 15]

Both run on one thread. scikit-learn's fit maximises the same kernel's marginal likelihood (Matern-5/2, a length-scale
an axis, amplitude, noise) from one start; a suggestion of raybo fits and then maximises the acquisition, after a
history in which every earlier suggestion left its fit to start from, as in a real study.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import raybo
from raybo.threads import limit_threads


def objective(X: np.ndarray) -> np.ndarray:
    """A smooth function of six or so variables with an interior optimum and some ripple."""
    return -np.sum((X - 0.4) ** 2, axis=1) + 0.1 * np.sum(np.cos(7.0 * X), axis=1)


def raybo_seconds(method: str, n: int, d: int, asks: int) -> float:
    """Median seconds of an ask with n finished trials; each is told, so n grows by one at a time."""
    space = raybo.Space({f"x{i}": raybo.Float(0, 1) for i in range(d)})
    searcher = raybo.Searcher(space, method=method, mode="max", seed=0, initial=1)
    rng = np.random.default_rng(0)
    for config, row in zip(*_design(space, rng, n - 2), strict=True):
        searcher.add(config, float(objective(row[None, :])[0]))
    seconds = []
    for _ in range(asks + 2):
        begun = time.perf_counter()
        trial = searcher.ask()
        seconds.append(time.perf_counter() - begun)
        searcher.tell(trial, float(objective(np.array([list(trial.config.values())]))[0]))
    return statistics.median(seconds[2:])  # the first ones fit from nothing and load what is loaded once


def _design(space: raybo.Space, rng: np.random.Generator, n: int) -> tuple[list[dict[str, float]], np.ndarray]:
    X = rng.random((n, space.d))
    return space.decode(X), X


def sklearn_seconds(n: int, d: int, repeats: int) -> float:
    """Median seconds of one fit to n points."""
    rng = np.random.default_rng(0)
    seconds = []
    for _ in range(repeats):
        X = rng.random((n, d))
        y = objective(X)
        kernel = ConstantKernel(1.0) * Matern(np.full(d, 0.5), nu=2.5) + WhiteKernel(1e-4)
        model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=0)
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about length-scales at their bounds
            model.fit(X, y)
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="gp-ucb")
    parser.add_argument("--sizes", default="25,50,100,200,400")
    parser.add_argument("--dimensions", type=int, default=6)
    parser.add_argument("--asks", type=int, default=15)
    arguments = parser.parse_args()
    d = arguments.dimensions
    print(f"{'n':>5}  {'raybo ' + arguments.method + ', ask':>20}  {'scikit-learn, fit':>18}  {'ratio':>6}")
    with limit_threads(1):
        for n in (int(size) for size in arguments.sizes.split(",")):
            ours = raybo_seconds(arguments.method, n, d, arguments.asks)
            theirs = sklearn_seconds(n, d, repeats=3)
            print(f"{n:5d}  {1e3 * ours:17.1f} ms  {1e3 * theirs:15.1f} ms  {theirs / ours:6.1f}", flush=True)


if __name__ == "__main__":
    main()
