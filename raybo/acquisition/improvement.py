"""Improvement over an incumbent: its expectation and its probability, and the logarithms of both.

    s = nu std                       nu = 1 is the usual expected improvement
    z = (mean - incumbent) / s
    EI = s tau(z)                    tau(z) = phi(z) + z Phi(z)
    PI = Phi(z)

Far from the incumbent, EI underflows and its gradient is lost, so a climb cannot start; log EI keeps both over
hundreds of decades. With a = |z| and Mills' ratio R(a) = Phi(-a) / phi(a), tau(-a) = phi(a) h(a), h(a) = 1 - a R(a),
and h is a series in 1/a^2 where that difference cancels; tau(a) = a + tau(-a).

Ament, Daulton, Eriksson, Balandat, Bakshy (2023), "Unexpected Improvements to Expected Improvement for Bayesian
Optimization"; Wang, de Freitas (2014), "Theoretical Analysis of Bayesian Optimisation with Unknown
Gaussian Process Hyper-Parameters", eq. (8), for nu (whose u is s / nu times this z; its incumbent is the maximum of the
posterior mean over the whole cube: maximise `UpperConfidence(gp, kappa=0)` and pass the value).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, log_ndtr

from raybo.acquisition.confidence import std_and_gradient
from raybo.acquisition.protocols import Array, Surrogate

LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
ROOT_HALF, ROOT_HALF_PI = math.sqrt(0.5), math.sqrt(0.5 * math.pi)
STD_FLOOR = 1e-12  # standardised units; keeps z finite where f is known exactly
CERTAIN = 30.0  # standard deviations above which Phi is 1, and 1 / phi not yet infinite
SERIES_FROM = 20.0  # from here on 1 - a R(a) loses 3 digits and more, and 8 terms of its series none


@dataclass(frozen=True)
class LogExpectedImprovement:
    """log of nu std tau((mean - incumbent) / (nu std)); has the maximiser of EI, and a gradient everywhere.

    Attributes:
        gp: posterior of f.
        incumbent: the value to improve on, standardised: the best observed, or `best_posterior_mean`.
        nu: multiplies std, positive; above 1 explores more, towards 0 it becomes the posterior mean's argmax.
    """

    gp: Surrogate
    incumbent: float
    nu: float = 1.0

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return log EI at the rows of X: finite, about -z^2 / 2 far below the incumbent."""
        z, s = _standardised(self.gp, self.incumbent, self.nu, X)
        return np.log(s) + log_tau(z)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return log EI and its gradient (Phi(z) dmean + phi(z) ds) / (s tau(z))."""
        z, s, dmean, ds = _standardised_gradient(self.gp, self.incumbent, self.nu, X)
        log_value, Phi_ratio, phi_ratio = log_tau_and_ratios(z)
        gradient = (Phi_ratio / s)[:, None] * dmean + (phi_ratio / s)[:, None] * ds
        return np.log(s) + log_value, gradient


@dataclass(frozen=True)
class LogProbabilityOfImprovement:
    """log Phi((mean - incumbent) / std): how likely f(x) is to exceed the incumbent.

    Attributes:
        gp: posterior of f.
        incumbent: the value to improve on, standardised; a margin may be added to it.
    """

    gp: Surrogate
    incumbent: float

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return log PI at the rows of X, finite."""
        return np.asarray(log_ndtr(_standardised(self.gp, self.incumbent, 1.0, X)[0]))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return log PI and its gradient phi(z) / Phi(z) dz."""
        z, s, dmean, ds = _standardised_gradient(self.gp, self.incumbent, 1.0, X)
        dz = (dmean - z[:, None] * ds) / s[:, None]
        return np.asarray(log_ndtr(z)), hazard(z)[:, None] * dz


def best_posterior_mean(gp: Surrogate, X: Array) -> float:  # (n, d)
    """Return the highest posterior mean at the rows of X: an incumbent that noise has not flattered."""
    return float(gp.posterior(X)[0].max())


def log_tau(z: Array) -> Array:  # (m,) -> (m,)
    """Return log(phi(z) + z Phi(z)) to a relative 1e-12 of tau, finite for |z| < 1e150."""
    a = np.abs(z)
    below = _log_tau_below(a, _h(a, _mills(a)))
    return np.where(z > 0.0, np.log(a + np.exp(below)), below)


# ---- the pieces


def hazard(z: Array) -> Array:
    """Return phi(z) / Phi(z), the derivative of log Phi: 1 / R(-z) on both sides of 0."""
    return np.asarray(1.0 / _mills(np.maximum(-z, -CERTAIN)))


def _standardised(gp: Surrogate, incumbent: float, nu: float, X: Array) -> tuple[Array, Array]:
    """Return z and s at the rows of X."""
    mean, var = gp.posterior(X)
    s = nu * np.sqrt(np.maximum(var, STD_FLOOR**2))
    return (mean - incumbent) / s, s


def _standardised_gradient(gp: Surrogate, incumbent: float, nu: float, X: Array) -> tuple[Array, Array, Array, Array]:
    """Return z and s, with the gradients of the mean and of s."""
    mean, var, dmean, dvar = gp.posterior_gradient(X)
    std, dstd = std_and_gradient(var, dvar, STD_FLOOR)
    s = nu * std
    return (mean - incumbent) / s, s, dmean, nu * dstd


def _phi(z: Array) -> Array:
    return np.exp(-0.5 * z * z - LOG_ROOT_TWO_PI)


def _mills(a: Array) -> Array:
    """Return Phi(-a) / phi(a)."""
    return np.asarray(ROOT_HALF_PI * erfcx(ROOT_HALF * a))


def _h(a: Array, mills: Array) -> Array:
    """Return 1 - a R(a) for a >= 0, in (0, 1], without the cancellation at large a."""
    h = 1.0 - a * mills
    far = a > SERIES_FROM
    if far.any():
        w = a[far] ** -2.0
        series = np.ones_like(w)
        for odd in (15, 13, 11, 9, 7, 5, 3):
            series = 1.0 - odd * w * series
        h[far] = w * series  # w (1 - 3 w (1 - 5 w (1 - ...)))
    return h


def _log_tau_below(a: Array, h: Array) -> Array:
    """Return log tau(-a)."""
    return np.log(h) - 0.5 * a * a - LOG_ROOT_TWO_PI


def log_tau_and_ratios(z: Array) -> tuple[Array, Array, Array]:  # (m,), (m,), (m,)
    """Return log tau, Phi / tau and phi / tau at z."""
    a = np.abs(z)
    mills = _mills(a)
    h = _h(a, mills)
    log_below = _log_tau_below(a, h)
    Phi_ratio, phi_ratio = mills / h, 1.0 / h  # below the incumbent without phi, which underflows
    above = z > 0.0
    if not above.any():
        return log_below, Phi_ratio, phi_ratio
    phi, tau = _phi(a), a + np.exp(log_below)
    return (
        np.where(above, np.log(tau), log_below),
        np.where(above, (1.0 - phi * mills) / tau, Phi_ratio),
        np.where(above, phi / tau, phi_ratio),
    )
