"""Histories of studies that declare a context, and the problems they come from."""

from __future__ import annotations

import numpy as np
from scipy.integrate import trapezoid

from raybo.record.events import Asked, Failed, Told
from raybo.record.history import History
from raybo.space import Float, Space


def floats(k):
    """The cube of k numbers."""
    return Space({f"a{i}": Float(0, 1) for i in range(k)}).cube


class Met(History):
    """A history to which whole trials are added, their contexts by coordinates."""

    def __init__(self, cube, context_cube):
        super().__init__(cube, context_cube=context_cube)

    def trial(self, x, c=None, y=None, *, failed=False, tags=None):
        """One more trial: pending (its context known first), failed, or with its value."""
        number = len(self)
        met = {} if c is None else {"c": [float(v) for v in c]}
        known_first = {} if failed or y is not None else met
        self.apply(Asked.of(number, {"x": [float(v) for v in x], "tags": tags or {}, **known_first}))
        if failed:
            self.apply(Failed.of(number, {"reason": "raised", **met}))
        elif y is not None:
            self.apply(Told.of(number, {"value": float(y), **met}))
        return number


def newsvendor(X, C):
    """Profit of stocking X where demand is C; maximised."""
    return 8.0 * np.minimum(X[:, 0], C[:, 0]) - 4.0 * X[:, 0]


def newsvendor_expectation(x):
    """8 int_0^x (1 + s^2)^-20 ds - 4 x."""
    s = np.linspace(0.0, x, 4001)
    return 8.0 * trapezoid((1.0 + s * s) ** -20.0, s) - 4.0 * x


def ackley(X, C):
    """Section 8.1 of the comparison: the maximum 0 lies at the middle of the joint cube."""
    z = 65.536 * np.hstack([X, C]) - 32.768
    return 20.0 * np.exp(-0.2 * np.sqrt((z * z).mean(1))) + np.exp(np.cos(2.0 * np.pi * z).mean(1)) - 20.0 - np.e


def demand(rng, n):
    """Burr XII(2, 20), clipped."""
    return np.clip(np.sqrt((1.0 - rng.random((n, 1))) ** (-1.0 / 20.0) - 1.0), 0.0, 1.0)


def of_newsvendor(n, seed=0):
    """n random finished trials of the newsvendor."""
    rng = np.random.default_rng(seed)
    history, X, C = Met(floats(1), floats(1)), rng.random((n, 1)), demand(rng, n)
    for x, c, y in zip(X, C, newsvendor(X, C), strict=True):
        history.trial(x, c, y)
    return history


def of_ackley(n, seed=0):
    """n random finished trials of Ackley's function in two numbers and one context."""
    rng = np.random.default_rng(seed)
    history, X = Met(floats(2), floats(1)), rng.random((n, 2))
    C = np.clip(rng.normal(0.5, 0.15, (n, 1)), 0.0, 1.0)
    for x, c, y in zip(X, C, ackley(X, C), strict=True):
        history.trial(x, c, y)
    return history
