"""Several metrics at once: the hypervolume that a point is expected to add to a front, and bounds of scalarisations.

Each metric is maximised, and has an independent surrogate. The space that the front leaves is a union of disjoint
cells [l, u); a point y adds the volume of each cell that lies below it, so that

    EHVI = sum over cells of the product over metrics j of   psi_j(l_j) - psi_j(u_j)
    psi_j(t) = E[(Y_j - t)+] = s_j tau((mean_j - t) / s_j)       tau(z) = phi(z) + z Phi(z)

in closed form, and exact. Far below the front it underflows as expected improvement does, so the solver climbs its
logarithm: each difference is taken between logarithms, or where that cancels, as (u - l) Phi at the middle.

Emmerich, Deutz, Klinkenberg (2011), "Hypervolume-based expected improvement: Monotonicity properties and exact
computation"; Daulton, Balandat, Bakshy (2020), "Differentiable expected hypervolume improvement for parallel
multi-objective Bayesian optimization", for the gradient; Ament et al. (2023), "Unexpected Improvements to Expected
Improvement for Bayesian Optimization", for the logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from raybo.acquisition.confidence import UpperConfidence, std_and_gradient
from raybo.acquisition.improvement import STD_FLOOR, hazard, log_tau_and_ratios
from raybo.acquisition.protocols import Array, Surrogate
from raybo.record.pareto import cells

Indices: TypeAlias = NDArray[np.intp]

CLOSE = 1e-5  # of the logarithms of psi at both ends: below it their difference has lost what the middle keeps
BLOCK = 2**21  # points times cells at a time


@dataclass(frozen=True, eq=False)
class LogExpectedHypervolumeImprovement:
    """log of the hypervolume that a point is expected to add.

    Attributes:
        gps: a posterior for each of k metrics, in the units of the front.
        front: (n, k), points whose dominated space is not counted; also none.
        reference: (k,), above which volume counts.
    """

    gps: Sequence[Surrogate]
    front: Array
    reference: Array

    @cached_property
    def _edges(self) -> list[tuple[Array, Array, Indices]]:
        """For each metric the different edges of cells, from and to, and which of them each cell has."""
        lower, upper = cells(self.front, self.reference)
        found = []
        for low, high in zip(lower.T, upper.T, strict=True):
            edges, of = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)
            found.append((edges[:, 0], edges[:, 1], of.ravel()))
        return found

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return log EHVI at the rows of X, finite."""
        moments = [gp.posterior(X) for gp in self.gps]
        stds = [np.sqrt(np.maximum(var, STD_FLOOR**2)) for _, var in moments]
        return self._total([mean for mean, _ in moments], stds)[0]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return log EHVI and its gradient: each cell's, weighted by its share of the sum."""
        moments = [gp.posterior_gradient(X) for gp in self.gps]
        stds = [std_and_gradient(var, dvar, STD_FLOOR) for _, var, _, dvar in moments]
        value, slopes = self._total([moment[0] for moment in moments], [std for std, _ in stds])
        gradient = np.zeros_like(X)
        for (by_mean, by_std), (_, _, dmean, _), (_, dstd) in zip(slopes, moments, stds, strict=True):
            gradient += by_mean[:, None] * dmean + by_std[:, None] * dstd
        return value, gradient

    def _total(self, means: list[Array], stds: list[Array]) -> tuple[Array, list[tuple[Array, Array]]]:
        """Return log EHVI, and its derivatives by the mean and the standard deviation of each metric."""
        m, b = len(means[0]), len(self._edges[0][2])
        value = np.empty(m)
        slopes = [(np.empty(m), np.empty(m)) for _ in self.gps]
        size = max(1, BLOCK // b)
        for begin in range(0, m, size):
            rows = slice(begin, begin + size)
            logs, by_mean, by_std = [], [], []
            for mean, std, (low, high, _) in zip(means, stds, self._edges, strict=True):
                log, dmean, dstd = _log_difference(mean[rows, None], std[rows, None], low, high)
                logs.append(log)
                by_mean.append(dmean)
                by_std.append(dstd)
            each = np.sum([log[:, of] for log, (_, _, of) in zip(logs, self._edges, strict=True)], axis=0)  # (m, b)
            top = each.max(axis=1, keepdims=True)
            shares = np.exp(each - top)
            total = shares.sum(axis=1, keepdims=True)
            value[rows] = (top + np.log(total))[:, 0]
            shares /= total
            for j, (low, _, of) in enumerate(self._edges):
                member = np.zeros((b, len(low)))
                member[np.arange(b), of] = 1.0
                weights = shares @ member  # of each edge
                slopes[j][0][rows] = (weights * by_mean[j]).sum(axis=1)
                slopes[j][1][rows] = (weights * by_std[j]).sum(axis=1)
        return value, slopes


@dataclass(frozen=True, eq=False)
class ScalarisedConfidence:
    """min over metrics of (mean + kappa std - reference) / weight: an upper bound of one scalarisation of the metrics.

    Averaged over weights that are uniform on the positive part of the sphere, powers of it are the hypervolume.

    Attributes:
        gps: a posterior for each of k metrics. kappa: standard deviations to add.
        reference: (k,), above which volume counts. weights: (k,), positive.

    Source: Golovin, Zhang (2020), "Random hypervolume scalarizations for provable multi-objective black box
    optimization", Algorithm 1 with upper confidence bounds.
    """

    gps: Sequence[Surrogate]
    kappa: float
    reference: Array
    weights: Array

    def value(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the least of the scaled bounds at the rows of X."""
        bounds = np.stack([UpperConfidence(gp, self.kappa).value(X) for gp in self.gps], axis=1)
        return np.asarray(((bounds - self.reference) / self.weights).min(axis=1))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return the least bound and its gradient, of one of them if two are equal."""
        pairs = [UpperConfidence(gp, self.kappa).value_and_gradient(X) for gp in self.gps]
        bounds = (np.stack([value for value, _ in pairs], axis=1) - self.reference) / self.weights
        least, rows = bounds.argmin(axis=1), np.arange(len(X))
        slopes = np.stack([slope for _, slope in pairs], axis=1) / self.weights[:, None]
        return bounds[rows, least], slopes[rows, least]


def random_weights(k: int, rng: np.random.Generator) -> Array:  # (k,)
    """Return a direction that is uniform on the positive part of the sphere; no weight vanishes."""
    normal = np.abs(rng.standard_normal(k))
    return np.asarray(np.maximum(normal / np.linalg.norm(normal), 1e-3))


def _log_difference(mean: Array, std: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Return log(psi(low) - psi(high)) and its derivatives by mean and std; (m, 1) and (e,) make (m, e)."""
    z = (mean - low) / std
    at_low, by_mean, by_std = _log_psi(z, std)
    ends = np.isfinite(high)
    if not ends.any():
        return at_low, by_mean, by_std
    upper = np.where(ends, high, low)  # a number, where nothing ends
    at_high, high_by_mean, high_by_std = _log_psi((mean - upper) / std, std)
    drop = np.where(ends, at_low - at_high, np.inf)
    ratio = np.exp(-drop)
    safe = np.where(drop < CLOSE, 1.0, -np.expm1(-drop))
    log = at_low + np.log(safe)
    by_mean, by_std = (by_mean - ratio * high_by_mean) / safe, (by_std - ratio * high_by_std) / safe
    close = drop < CLOSE
    if close.any():
        middle = (mean - 0.5 * (low + upper)) / std
        slope = hazard(middle)
        width = np.where(ends, upper - low, 1.0)
        log = np.where(close, np.log(width) + log_ndtr(middle), log)
        by_mean = np.where(close, slope / std, by_mean)
        by_std = np.where(close, -middle * slope / std, by_std)
    return log, by_mean, by_std


def _log_psi(z: Array, std: Array) -> tuple[Array, Array, Array]:
    """Return log of std tau(z), and its derivatives by mean and std."""
    log_tau, Phi_ratio, phi_ratio = log_tau_and_ratios(z)
    return np.log(std) + log_tau, Phi_ratio / std, phi_ratio / std
