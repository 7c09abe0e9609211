"""The newsvendor: how much to order before the demand is known, one decision and one context.

    raybo tune trials/newsvendor.py --method drbo-kde --workers 2

A paper costs 5 and sells for 9; what is left over is worth 1. The demand follows Burr's law (2, 20), clipped to the
largest order, and is the context: a day of large demand makes a large order look good. The best order is the median of
the demand, since (9 - 5) / (9 - 1) is a half. Each trial is one day; the expected profit of its order is its metric
`expected`, which no method sees. The demand belongs to the order and the keyword parameter `seed`.

Source: Huang, Song, Xue and Qian (AAAI 2024, arXiv:2312.10423), section 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import raybo

COST, PRICE, SALVAGE = 5.0, 9.0, 1.0
BEST_ORDER, BEST_EXPECTED = (2 ** (1 / 20) - 1) ** 0.5, 0.463943073


@raybo.objective(space={"order": raybo.Float(0, 1)}, context={"demand": raybo.Float(0, 1)}, metric="profit", mode="max")
def newsvendor(config: dict[str, Any], *, seed: int = 0) -> dict[str, float]:
    """The profit of one day."""
    order = float(config["order"])
    demand = draw_demand(np.random.default_rng([seed, *repr(order).encode()]))
    return {"profit": profit(order, demand), "demand": demand, "expected": expected_profit(order)}


def draw_demand(rng: np.random.Generator) -> float:
    """The demand of one day: the inverse of its law at a uniform number, at most the largest order."""
    return float(min(((1 - rng.random()) ** (-1 / 20) - 1) ** 0.5, 1.0))


def profit(order: float, demand: float) -> float:
    """Return the profit: what was sold and what was left over, less what was paid."""
    return PRICE * min(order, demand) + SALVAGE * max(0.0, order - demand) - COST * order


def expected_profit(order: float) -> float:
    """The mean over all demands: price less salvage, times the integral of P(demand > s), less the cost."""
    u, w = np.polynomial.legendre.leggauss(60)
    s = order * (u + 1) / 2
    sold = order / 2 * float(w @ (1 + s**2) ** -20.0)
    return (PRICE - SALVAGE) * sold - (COST - SALVAGE) * order
