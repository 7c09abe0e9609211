"""The posterior of the gradient of f, and its covariance with values of f.

Differentiation is linear, so the gradient g is a Gaussian process too. With G = dk(x, X), d columns of n:
    mean = G alpha        cov = ddk(x, x) - G A^-1 G'        Cov(g(x), f(z)) = dk(x, z) - G A^-1 k(X, z)

Along a categorical axis there is no gradient: its mean and covariances are 0. Matern-3/2 draws are differentiable in
mean square only; methods that need a smoother f must not use that kernel.

Rasmussen, Williams (2006), section 9.4; Mueller, von Rohr, Trimpe (2021), "Local policy search with Bayesian
optimization", eqs. (3)-(5).
"""

from __future__ import annotations

import numpy as np

from raybo.surrogate.factor import half_solve, solve
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels import Array, curvature


def gradient_posterior(gp: GP, X: Array) -> tuple[Array, Array]:  # (m, d), (m, d, d)
    """Mean and covariance of the gradient of f at each row of X (m, d), standardised values per side of the cube."""
    m, d = X.shape
    G = _slopes(gp, X)  # (m, d, n)
    V = half_solve(gp.L, G.reshape(m * d, gp.n).T, overwrite=True).T.reshape(m, d, gp.n)
    prior = np.diag(-2.0 * gp.kernel.slope_at_zero * gp.kernel.metric)
    return gp.kernel.contract(X, gp.X, _weighted_slopes(gp, X)), prior - V @ V.transpose(0, 2, 1)


def gradient_value_covariance(gp: GP, x: Array, Z: Array) -> Array:  # (d,), (m, d) -> (m, d)
    """Posterior covariance of the gradient of f at x with f at each row of Z."""
    G = _slopes(gp, x[None, :])[0]  # (d, n)
    return np.asarray(_slopes(gp, x[None, :], Z)[0].T - gp.kernel.matrix(Z, gp.X) @ solve(gp.L, G.T))


def gradient_value_covariance_and_jacobian(
    gp: GP, x: Array, Z: Array
) -> tuple[Array, Array]:  # (d,), (m, d) -> (m, d), (m, d, d)
    """`gradient_value_covariance`, and its derivative in z: [., i, j] is that of component i along axis j of z."""
    B = solve(gp.L, _slopes(gp, x[None, :])[0].T)  # (n, d): A^-1 G'
    K, slope = gp.kernel.matrix_and_slope(Z, gp.X)
    value = _slopes(gp, x[None, :], Z)[0].T - K @ B
    # of k(z, X) B in z: contract() for each column of B
    weights = slope[:, None, :] * B.T  # (m, d, n)
    in_data = 2.0 * gp.kernel.metric * (Z[:, None, :] * weights.sum(axis=2)[:, :, None] - weights @ gp.X)
    q = gp.kernel.squared_distances(x[None, :], Z)[0]
    _, slope_at = gp.kernel.matrix_and_slope(x[None, :], Z)
    scaled = gp.kernel.metric * (x - Z)  # (m, d)
    bend = 4.0 * gp.outputscale * curvature(gp.kernel.name, q)
    prior = -bend[:, None, None] * scaled[:, :, None] * scaled[:, None, :]
    prior -= 2.0 * slope_at[0][:, None, None] * np.diag(gp.kernel.metric)
    return value, prior - in_data


def _slopes(gp: GP, X: Array, Z: Array | None = None) -> Array:  # (m, d, n)
    """dk(x, z)/dx for each row of X and of Z, the data unless given."""
    points = gp.X if Z is None else Z
    _, slope = gp.kernel.matrix_and_slope(X, points)
    scaled = 2.0 * gp.kernel.metric[:, None] * (X[:, :, None] - points.T)
    return scaled * slope[:, None, :]


def _weighted_slopes(gp: GP, X: Array) -> Array:  # (m, n)
    return gp.kernel.matrix_and_slope(X, gp.X)[1] * gp.alpha
