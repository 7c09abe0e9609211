"""The posterior of the gradient of f.

Differentiation is linear, so the gradient is a Gaussian process too:

    mean = dk(x, X) alpha        cov = ddk(x, x) - dk(x, X) A^-1 dk(X, x)

ddk(x, x)_jj = -2 outputscale slope(0) / lengthscale_j^2, and 0 off the diagonal. Along a categorical axis there is no
gradient: its mean and covariance are 0. For Matern-3/2 the draws are differentiable in mean square all the same.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from raybo.surrogate.gp import GP
from raybo.surrogate.kernels import Array, profile_and_slope, squared_distances


def gradient_posterior(gp: GP, X: Array) -> tuple[Array, Array]:  # (m, d), (m, d, d)
    """Mean and covariance of the gradient of f at each row of X (m, d), standardised values per side of the cube.

    Source: Rasmussen, Williams (2006), section 9.4.
    """
    m, d = X.shape
    lengthscale, outputscale, _ = gp.hyperparameters
    categorical = np.asarray(gp.observations.categorical)
    inverse_square = np.where(categorical, 0.0, lengthscale**-2.0)
    q = squared_distances(X, gp.X, lengthscale, gp.observations.categorical)
    slope = profile_and_slope(gp.model.kernel, q)[1]
    # (m, n, d): 2 outputscale slope (x - x') / l^2
    dk = 2.0 * outputscale * slope[:, :, None] * (X[:, None, :] - gp.X[None, :, :]) * inverse_square
    mean = np.einsum("mnd,n->md", dk, gp.alpha)
    right = dk.transpose(1, 0, 2).reshape(gp.n, m * d)
    V, _ = lapack.dtrtrs(gp.L.T, np.asfortranarray(right), lower=0, trans=1)
    V = V.reshape(gp.n, m, d)
    at_zero = float(profile_and_slope(gp.model.kernel, np.zeros(1))[1][0])
    prior = np.diag(-2.0 * outputscale * at_zero * inverse_square)
    return mean, prior[None] - np.einsum("nmi,nmj->mij", V, V)
