"""The expected value of the highest lower confidence bound once some points have been observed.

    LCB(x)   = mean(x) - kappa std(x)                    of the maximised f; papers that minimise: minus the UCB
    wanted   = E_y [ max_x LCB(x | data, (Z, y)) ]       over Z

    OneShotLookAhead   the expectation over N fixed normal vectors, the maximum over one x_j for each of them: an
                       estimate from below, smooth in everything, and maximised over Z and all x_j at once
    FiniteLookAhead    one z, the maximum over a finite set of points: the expectation is exact

Fan, Wang, Ng, Hu (2024), "Minimizing UCB: a Better Local Search Strategy in Local Bayesian Optimization", Algorithm 2;
Balandat et al. (2020), "BoTorch", section 4.2, for the one-shot form; Frazier, Powell, Dayanik (2009), "The
knowledge-gradient policy for correlated normal beliefs", for the exact expectation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from raybo.acquisition.protocols import Array
from raybo.surrogate import GP
from raybo.surrogate.factor import half_solve

LEAST_VARIANCE = 1e-12  # of outputscale, where f is known
SMALL_JITTER = 1e-6  # of outputscale, where the observations' covariance cannot be factorised without


@dataclass(frozen=True, eq=False)
class OneShotLookAhead:
    """The one-shot objective: the mean over j of the bound at x_j after the j-th imagined outcome at Z.

    With C = cov(Z, Z) + noise = L L' and v_j = L^-1 cov(Z, x_j), outcomes L e_j from the mean give
        J = mean over j of   mean(x_j) + v_j' e_j - kappa sqrt(var(x_j) - v_j' v_j)
    exactly, without conditioning anew.

    Attributes:
        gp: posterior of f. kappa: standard deviations taken from the mean.
        base: (N, b + p), the vectors e_j. pending: (p, d), points whose outcomes are also still unknown.
    """

    gp: GP
    kappa: float
    base: Array
    pending: Array

    def value_and_gradient(self, Z: Array, X: Array) -> tuple[Array, Array, Array]:
        """Return J and its gradients, of r independent problems at once.

        Args:
            Z: (r, b, d), the points to observe. X: (r, N, d), the inner ones.
        Returns:
            J (r,), dJ/dZ (r, b, d), dJ/dX (r, N, d).
        """
        gp, kernel = self.gp, self.gp.stationary
        r, b, d = Z.shape
        Q = np.concatenate([Z, np.broadcast_to(self.pending, (r, *self.pending.shape))], axis=1)
        S = np.concatenate([Q, X], axis=1)  # (r, M, d): all that move, and the pending ones between
        n, k, M = gp.n, Q.shape[1], S.shape[1]
        rows = S.reshape(r * M, d)
        K, slope_data = kernel.matrix_and_slope(rows, gp.X)
        mean = (gp.prior_mean + K @ gp.alpha).reshape(r, M)[:, k:]
        half = half_solve(gp.L, K.T, overwrite=True)
        V = half.T.reshape(r, M, n)
        prior = [kernel.matrix_and_slope(q, s) for q, s in zip(Q, S, strict=True)]
        slope = np.stack([part[1] for part in prior])  # (r, k, M)
        cov = np.stack([part[0] for part in prior]) - V[:, :k] @ V.transpose(0, 2, 1)
        var = gp.outputscale - np.square(V[:, k:]).sum(axis=2)

        L = self._factor(cov[:, :, :k])
        v = np.linalg.solve(L, cov[:, :, k:])  # (r, k, N)
        rest = var - np.square(v).sum(axis=1)
        floor = LEAST_VARIANCE * gp.outputscale
        s = np.sqrt(np.maximum(rest, floor))
        value = np.mean(mean + (v * self.base.T).sum(axis=1) - self.kappa * s, axis=1)

        # backwards: what J gains with each covariance, T[p, q] for cov(S_p, S_q) and cov(S_q, S_p) together
        N = X.shape[1]
        pull = np.where(rest > floor, self.kappa / s, 0.0)[:, None, :]  # of each bound on v, and on var
        w = (self.base.T + v * pull) / N
        T = np.zeros((r, M, M))
        inverse = np.linalg.inv(L)
        T[:, :k, k:] = inverse.transpose(0, 2, 1) @ w
        T[:, k:, :k] = T[:, :k, k:].transpose(0, 2, 1)
        P = -np.tril(w @ v.transpose(0, 2, 1))
        P[:, np.arange(k), np.arange(k)] *= 0.5
        T[:, :k, :k] = inverse.transpose(0, 2, 1) @ (P + P.transpose(0, 2, 1)) @ inverse  # through the factor
        T[:, np.arange(k, M), np.arange(k, M)] = -pull[:, 0] / N
        in_mean = np.zeros((r, M))
        in_mean[:, k:] = 1.0 / N
        solved = half_solve(gp.L, half, transposed=True, overwrite=True).T.reshape(r, M, n)
        weights = (in_mean[:, :, None] * gp.alpha - T @ solved).reshape(r * M, n)
        gradient = kernel.contract(rows, gp.X, slope_data * weights).reshape(r, M, d)
        between = np.zeros((r, M, M))
        between[:, :k] = T[:, :k] * slope
        between[:, k:, :k] = between[:, :k, k:].transpose(0, 2, 1)
        gradient += 2.0 * kernel.metric * (between.sum(axis=2)[:, :, None] * S - between @ S)
        return value, gradient[:, :b], gradient[:, k:]

    def _factor(self, cov: Array) -> Array:  # (r, k, k)
        noise = (self.gp.noise_variance + self.gp.jitter) * np.eye(cov.shape[1])
        try:
            return np.asarray(np.linalg.cholesky(cov + noise))
        except np.linalg.LinAlgError:  # points that coincide, and hardly any noise
            return np.asarray(np.linalg.cholesky(cov + noise + SMALL_JITTER * self.gp.outputscale * np.eye(len(noise))))


@dataclass(frozen=True, eq=False)
class FiniteLookAhead:
    """The expected highest bound among given points once z is observed: exact, by its upper envelope.

    The bound at the i-th point is a line in the standardised outcome xi at z: level_i + v_i xi. The line is the
    highest between lo_i and hi_i, so that the expectation is
        sum over i of   level_i (Phi(hi_i) - Phi(lo_i)) + v_i (phi(lo_i) - phi(hi_i))

    Attributes:
        gp: posterior of f. kappa: standard deviations taken from the mean. inner: (k, d), the points.
    """

    gp: GP
    kappa: float
    inner: Array

    @cached_property
    def _inner(self) -> tuple[Array, Array, Array]:  # (k,), (k,), (n, k)
        """Mean and variance at the inner points, and L^-1 k(X, inner)."""
        mean, var = self.gp.posterior(self.inner)
        return mean, var, half_solve(self.gp.L, self.gp.stationary.matrix(self.inner, self.gp.X).T, overwrite=True)

    def value(self, Z: Array) -> Array:  # (m, d) -> (m,)
        """Return the expectation at the rows of Z."""
        gp = self.gp
        V = half_solve(gp.L, gp.stationary.matrix(Z, gp.X).T, overwrite=True)
        cov = gp.stationary.matrix(Z, self.inner) - V.T @ self._inner[2]
        return self._of(cov, self._outcome_variance(V))[0]

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:  # (m,), (m, d)
        """Return the expectation and its gradient: lines that are nowhere the highest have none, ends move nothing."""
        gp, kernel = self.gp, self.gp.stationary
        K, slope_data = kernel.matrix_and_slope(Z, gp.X)
        k, slope = kernel.matrix_and_slope(Z, self.inner)
        V = half_solve(gp.L, K.T, overwrite=True)
        total = self._outcome_variance(V)
        value, in_v, v = self._of(k - V.T @ self._inner[2], total)
        in_cov = in_v / np.sqrt(total)[:, None]
        in_total = -0.5 * (in_v * v).sum(axis=1) / total
        solved = half_solve(gp.L, V, transposed=True, overwrite=True).T  # (m, n)
        solved_inner = half_solve(gp.L, self._inner[2].copy(order="F"), transposed=True, overwrite=True)  # (n, k)
        weights = -(in_cov @ solved_inner.T) - 2.0 * in_total[:, None] * solved
        gradient = kernel.contract(Z, gp.X, slope_data * weights)
        return value, gradient + kernel.contract(Z, self.inner, slope * in_cov)

    def _outcome_variance(self, V: Array) -> Array:  # (n, m) -> (m,)
        var = self.gp.outputscale - np.einsum("nm,nm->m", V, V)
        return np.asarray(np.maximum(var, 0.0) + self.gp.noise_variance + self.gp.jitter)

    def _of(self, cov: Array, total: Array) -> tuple[Array, Array, Array]:  # (m, k), (m,)
        """Return the expectation (m,), its derivative in the slopes v (m, k), and these."""
        mean, var, _ = self._inner
        v = cov / np.sqrt(total)[:, None]
        rest = var - v * v
        floor = LEAST_VARIANCE * self.gp.outputscale
        s = np.sqrt(np.maximum(rest, floor))
        level = mean - self.kappa * s
        lo, hi = _highest_between(level, v)
        share = ndtr(hi) - ndtr(lo)
        lift = _density(lo) - _density(hi)
        in_v = lift + self.kappa * share * np.where(rest > floor, v / s, 0.0)
        return (level * share + v * lift).sum(axis=1), in_v, v


def _highest_between(level: Array, v: Array) -> tuple[Array, Array]:  # (m, k), (m, k)
    """Return the xi between which each line level + v xi is the highest of its row; equal ends if it nowhere is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = (level[:, :, None] - level[:, None, :]) / (v[:, None, :] - v[:, :, None])  # (m, i, j)
    steeper = v[:, None, :] > v[:, :, None]
    flatter = v[:, None, :] < v[:, :, None]
    hi = np.where(steeper, crossing, np.inf).min(axis=2)
    lo = np.where(flatter, crossing, -np.inf).max(axis=2)
    k = level.shape[1]
    first = np.arange(k)[None, :] < np.arange(k)[:, None]  # of equal lines the first counts
    higher = (level[:, None, :] > level[:, :, None]) | ((level[:, None, :] == level[:, :, None]) & first)
    lo = np.where((~steeper & ~flatter & higher).any(axis=2), np.inf, lo)
    return np.minimum(lo, hi), hi


def _density(z: Array) -> Array:
    return np.asarray(np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi))
