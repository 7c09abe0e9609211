"""Kumaraswamy's warping of the unit interval, which bends an axis so that what happens at one end has more room.

    w(x) = 1 - (1 - x^a)^b          a, b > 0; a = b = 1 changes nothing, a < 1 < b gives room to the beginning

Snoek, Swersky, Zemel, Adams (2014), "Input Warping for Bayesian Optimization of Non-Stationary Functions", but with
this distribution function in place of the Beta distribution's, which it resembles but which has no closed form.
"""

from __future__ import annotations

import numpy as np

from raybo.surrogate.kernels import Array

TINY = 1e-12  # x is kept so far from 0 and 1, where slopes may be infinite


def warped(X: Array, a: Array, b: Array) -> Array:  # (n, k), (k,), (k,) -> (n, k)
    """Return w, axis by axis."""
    powers = np.exp(a * np.log(np.clip(X, TINY, 1.0 - TINY)))
    return np.asarray(-np.expm1(b * np.log1p(-powers)))


def warped_slope(X: Array, a: Array, b: Array) -> Array:  # (n, k)
    """Return dw/dx = a b x^(a - 1) (1 - x^a)^(b - 1)."""
    logs = np.log(np.clip(X, TINY, 1.0 - TINY))
    rest = np.log1p(-np.exp(a * logs))
    return np.asarray(a * b * np.exp((a - 1.0) * logs + (b - 1.0) * rest))


def warped_in_logs(X: Array, a: Array, b: Array) -> tuple[Array, Array]:  # (n, k), (n, k)
    """Return dw/dlog a and dw/dlog b.

    dw/da = b (1 - x^a)^(b - 1) x^a log x          dw/db = -(1 - x^a)^b log(1 - x^a)
    """
    logs = np.log(np.clip(X, TINY, 1.0 - TINY))
    powers = np.exp(a * logs)
    rest = np.log1p(-powers)
    return a * b * np.exp((b - 1.0) * rest) * powers * logs, -b * np.exp(b * rest) * rest
