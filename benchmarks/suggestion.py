"""Processor time of a suggestion of a GP method, fit included, beside a fit of scikit-learn's Gaussian process.

Both run on one thread, with as many results. scikit-learn's fit maximises the same kernel's marginal likelihood
(Matern-5/2, a length-scale per axis, amplitude, noise) from one start; a suggestion of raybo fits and then maximises
the acquisition, after a history in which every earlier suggestion left its fit to start from, as in a real study.
"""

from __future__ import annotations

import statistics
import time
import warnings

import numpy as np

from benchmarks.figures import Figure, Figures, at_least, command, missing
from benchmarks.searches import ask_seconds, ripples, told_of
from raybo.common.threads import limit_threads

QUICK = {"sizes": "100"}
CLAIMED = 100  # finished trials


def raybo_seconds(method: str, n: int, d: int, asks: int) -> float:
    """Return the median processor seconds of an ask with n finished trials; each is told, so n grows by one."""
    loading = 2  # the first ones fit from nothing and load what is loaded once
    return statistics.median(ask_seconds(told_of(method, n - loading, d), asks + loading)[loading:])


def sklearn_seconds(n: int, d: int, repeats: int) -> float:
    """Median processor seconds of one fit to n points; ImportError if it is missing."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    rng = np.random.default_rng(0)
    seconds = []
    for _ in range(repeats):
        X = rng.random((n, d))
        kernel = ConstantKernel(1.0) * Matern(np.full(d, 0.5), nu=2.5) + WhiteKernel(1e-4)
        model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=0)
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about length-scales at their bounds
            model.fit(X, ripples(X))
        seconds.append(time.process_time() - begun)
    return statistics.median(seconds)


def figures(method: str = "gp-ucb", sizes: str = "25,50,100,200,400", dimensions: int = 6, asks: int = 15) -> Figures:
    """A figure for each number of finished trials."""
    with limit_threads(1):
        for n in (int(size) for size in sizes.split(",")):
            what = f"scikit-learn's fit over an ask of {method}, n = {n}, d = {dimensions}"
            ours = raybo_seconds(method, n, dimensions, asks)
            try:
                theirs = sklearn_seconds(n, dimensions, repeats=3)
            except ImportError:
                yield missing(what, "scikit-learn")
                continue
            note = f"{1e3 * theirs:.0f} and {1e3 * ours:.1f} ms"
            found = at_least(5, theirs / ours, what, note=note)
            yield found if n == CLAIMED else Figure(what, found.measured)


if __name__ == "__main__":
    command(figures)
