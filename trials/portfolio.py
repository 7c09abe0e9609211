"""A trading strategy under market conditions that nobody chooses: three decisions, two contexts.

    raybo tune trials/portfolio.py --method sbo-kde
    raybo tune trials/portfolio.py --method drbo-kde --set law=normal

The return of a strategy (risk aversion, trade aversion, holding cost) in a market (bid-ask spread, borrowing cost) was
simulated at 3000 points, see data/README.md. What is evaluated here is a Gaussian process conditioned on those, with
hyperparameters that were estimated once. The market conditions are uniform, or normal around 0.5 and clipped; they
belong to the configuration and the keyword parameter `seed`. The mean return over all conditions is the metric
`expected`, which no method sees.

Source: Cakmak, Astudillo, Frazier and Zhou (NeurIPS 2020), as used by Huang, Song, Xue and Qian (AAAI 2024,
arXiv:2312.10423). The first evaluation takes 2 s for a factorisation, a further one 0.03 s.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

import raybo

Array: TypeAlias = NDArray[np.float64]
Law = Literal["uniform", "normal"]

PORTFOLIO = Path(__file__).parent / "data" / "portfolio.csv"
BEST_EXPECTED = {"uniform": 19.325129986, "normal": 21.586234547}  # by the 12 by 12 rule; true within 5e-6
BEST = {"uniform": (0.0, 1.0, 0.599546), "normal": (0.0, 1.0, 0.082801)}

LENGTHSCALES = np.array([0.222564030, 7.779735112, 0.263266623, 0.524039074, 2.521927377])
OUTPUTSCALE, NOISE_VARIANCE, MEAN = 4.619905590, 0.013679595, -0.566473901  # of the standardised negative return
CENTRE, SCALE = -2.885737907, 3.829588010

space = raybo.Space({name: raybo.Float(0, 1) for name in ("risk", "trade", "hold")})
context = raybo.Space({name: raybo.Float(0, 1) for name in ("spread", "borrow")})


@raybo.objective(space=space, context=context, metric="yearly_return", mode="max")
def portfolio(
    config: dict[str, Any], *, law: Law = "uniform", seed: int = 0, data: Path = PORTFOLIO
) -> dict[str, float]:
    """The mean excess return, in percent a year."""
    x = np.array([config["risk"], config["trade"], config["hold"]])
    c = draw_market(np.random.default_rng([seed, *repr(x.tolist()).encode()]), law)
    nodes, weights = market_nodes(law)
    rows = np.column_stack([np.tile(x, (1 + len(nodes), 1)), np.vstack([c, nodes])])
    returns = -negative_return(rows, data)
    return {
        "yearly_return": float(returns[0]),
        "spread": float(c[0]),
        "borrow": float(c[1]),
        "expected": float(weights @ returns[1:]),
    }


def draw_market(rng: np.random.Generator, law: Law) -> Array:  # (2,)
    """One market's conditions."""
    if law == "uniform":
        return rng.random(2)
    return np.clip(rng.normal(0.5, 0.1, 2), 0.0, 1.0)


def negative_return(Z: Array, data: Path = PORTFOLIO) -> Array:  # (m, 5) -> (m,)
    """The surrogate's mean at rows of risk, trade, hold, spread and borrow."""
    X, alpha = surrogate(data)
    return CENTRE + SCALE * (MEAN + kernel(Z, X) @ alpha)


@lru_cache(maxsize=1)
def surrogate(data: Path) -> tuple[Array, Array]:  # (n, 5), (n,)
    """The simulated points, and the weights of their kernels in the Gaussian process's mean."""
    table = np.loadtxt(data, delimiter=",", skiprows=1)
    X, y = table[:, :5], (table[:, 5] - CENTRE) / SCALE
    K = kernel(X, X)
    K[np.diag_indices(len(K))] += NOISE_VARIANCE
    return X, np.asarray(np.linalg.solve(K, y - MEAN), dtype=np.float64)


def kernel(Z: Array, X: Array) -> Array:  # (m, 5), (n, 5) -> (m, n)
    """Matern-5/2."""
    A, B = Z / LENGTHSCALES, X / LENGTHSCALES
    squares = np.maximum((A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T, 0.0)
    r = np.sqrt(5.0 * squares)
    return np.asarray(OUTPUTSCALE * (1.0 + r + 5.0 / 3.0 * squares) * np.exp(-r))


@lru_cache
def market_nodes(law: Law) -> tuple[Array, Array]:  # (144, 2), (144,)
    """A tensor rule for the mean over market conditions: Gauss-Legendre or Gauss-Hermite, 12 by 12."""
    if law == "uniform":
        u, w = np.polynomial.legendre.leggauss(12)
        nodes, weights = (u + 1.0) / 2.0, w / 2.0
    else:
        u, w = np.polynomial.hermite_e.hermegauss(12)
        nodes, weights = np.clip(0.5 + 0.1 * u, 0.0, 1.0), w / math.sqrt(2.0 * math.pi)
    return np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2), np.outer(weights, weights).ravel()
