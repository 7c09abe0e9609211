"""Upper confidence bounds over uncontrolled contexts, averaged or at their worst: one acquisition for all such methods.

    acq(x) = rho(u),    u_i = mean(x, s_i) + kappa std(x, s_i)    at atoms s_1..s_a, frozen while x is searched for
    grad acq = sum_i w_i grad_x u_i,    w = d rho / du

With the GP over z = (x, c) and Q the (a, n) kernel between (x, s_i) and its points, V = L^-1 Q':
    u = m + Q alpha + kappa sqrt(outputscale - colsum V^2)
    du/dQ = alpha - kappa (L^-T V)' / std,    dQ/dx_j = 2 slope (x_j - X_j) / l_j^2
A stationary kernel's squared distance is one in x plus one in c, and the latter is the same for every x.

Huang et al. (2024), "Stochastic Bayesian Optimization with Unknown Continuous Context Distribution via Kernel Density
Estimation", AAAI; the reductions rho are those of `raybo.context`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raybo.acquisition.protocols import Array
from raybo.context import Reduction
from raybo.context.model import split_distances
from raybo.surrogate import GP
from raybo.surrogate.blocks import FOR_SOLVES, block_rows, blocks
from raybo.surrogate.factor import half_solve
from raybo.surrogate.kernels import evaluate, profile

LEAST_VARIANCE = 1e-10  # below it the standard deviation has no gradient


@dataclass(frozen=True, eq=False)
class ContextConfidence:
    """A reduction of the upper confidence bounds at atoms.

    Attributes:
        gp: posterior of f over (x, c), dx + dc axes.
        atoms: (a, dc), contexts.
        reduction: from the bounds at the atoms to one number.
        kappa: how many standard deviations to add; 0 for the posterior mean.
    """

    gp: GP
    atoms: Array
    reduction: Reduction
    kappa: float

    def value(self, X: Array) -> Array:  # (m, dx) -> (m,)
        """Return the reduced bounds at the rows of X."""
        return self.reduction.value(self.bounds(X))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, dx)
        """Return the reduced bounds and their gradients; 0 along categorical axes."""
        values, gradient = np.empty(len(X)), np.empty(X.shape)
        for i in range(len(X)):
            values[i], gradient[i] = self._climb_from(X[i : i + 1])
        return values, gradient

    def bounds(self, X: Array) -> Array:  # (m, dx) -> (m, a)
        """Return the upper confidence bound at every atom, for the rows of X."""
        gp, a = self.gp, len(self.atoms)
        distances = self._distances_in_x(X)
        U = np.empty((len(X), a))
        together = max(1, block_rows(gp.n, FOR_SOLVES) // a)  # points whose atoms fit in one block
        for i in range(0, len(X), together):
            for atoms in self._blocks:
                q = distances[i : i + together, None, :] + self._in_c[atoms]
                Q = profile(gp.stationary.name, q.reshape(-1, gp.n))
                Q *= gp.outputscale
                mean = Q @ gp.alpha
                V = half_solve(gp.L, Q.T, overwrite=True)
                u, _ = self._bound(mean, V)
                U[i : i + together, atoms] = u.reshape(-1, len(q[0]))
        return U

    def _climb_from(self, x: Array) -> tuple[float, Array]:  # (1, dx) -> (), (dx,)
        """Return the reduced bound at one point, and its gradient."""
        gp, in_x = self.gp, self._distances_in_x(x)
        u, kept = np.empty((1, len(self.atoms))), []
        for atoms in self._blocks:
            q = in_x + self._in_c[atoms]
            Q, slope = np.empty_like(q), np.empty_like(q)
            evaluate(gp.stationary.name, q, Q, slope)
            Q *= gp.outputscale
            mean = Q @ gp.alpha
            V = half_solve(gp.L, Q.T, overwrite=True)
            u[0, atoms], std = self._bound(mean, V)
            kept.append((V, slope, std))
        value, weights = self.reduction.value_and_weights(u)
        pull = np.zeros(gp.n)
        for atoms, (V, slope, std) in zip(self._blocks, kept, strict=True):
            w = weights[0, atoms]
            rows = np.flatnonzero(w)
            if len(rows) == 0:
                continue
            if len(rows) < len(w):
                w, V, slope, std = w[rows], np.asfortranarray(V[:, rows]), slope[rows], std[rows]
            # a std of 0 stands for one that is held at its least, and so has no slope
            share = np.divide(self.kappa * w, std, out=np.zeros_like(w), where=std > 0.0)
            B = half_solve(gp.L, V, transposed=True, overwrite=True)  # A^-1 k
            pull += gp.alpha * (w @ slope) - np.einsum("nr,r,rn->n", B, share, slope)
        dx = x.shape[1]
        scale = 2.0 * gp.outputscale * gp.stationary.metric[:dx]
        return float(value[0]), scale * (x[0] * pull.sum() - pull @ gp.X[:, :dx])

    def _bound(self, mean: Array, V: Array) -> tuple[Array, Array]:  # (r,), (n, r) -> (r,), (r,)
        """Return the upper confidence bound, and the standard deviation, given as 0 if it is held at its least."""
        var = self.gp.outputscale - np.einsum("nr,nr->r", V, V)
        std = np.sqrt(np.maximum(var, LEAST_VARIANCE))
        return self.gp.prior_mean + mean + self.kappa * std, np.where(var > LEAST_VARIANCE, std, 0.0)

    def _distances_in_x(self, X: Array) -> Array:  # (m, n)
        return split_distances(self.gp, X, self.atoms[:0])[0]

    @cached_property
    def _in_c(self) -> Array:  # (a, n)
        return split_distances(self.gp, np.empty((0, self.gp.d - self.atoms.shape[1])), self.atoms)[1]

    @cached_property
    def _blocks(self) -> list[slice]:
        return blocks(len(self.atoms), self.gp.n, FOR_SOLVES)
