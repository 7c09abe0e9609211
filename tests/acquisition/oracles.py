"""Published numbers for local search: four points of the square under two kernels, computed independently.

The papers minimise; the values here are maximised, so that means, gradients and bounds turn their sign.
"""

from __future__ import annotations

import numpy as np

from raybo.surrogate import GP, Model, Observations

X = np.array([[0.1, 0.2], [0.4, 0.7], [0.8, 0.3], [0.6, 0.9]])
F = np.array([0.5, -0.3, 0.8, 0.1])  # minimised
THETA = np.log([0.5, 0.8, 1.3, 0.01])
X0 = np.array([0.45, 0.5])
Z = np.array([[0.5, 0.6], [0.3, 0.8]])
INNER = np.array([[0.42, 0.75], [0.35, 0.7], [0.5, 0.8]])
BASE = np.array([[0.5, -1.0], [-0.8, 0.3], [1.2, 0.4]])
FINITE = np.array([[0.42, 0.75], [0.35, 0.7], [0.5, 0.8], [0.4, 0.65], [0.3, 0.85]])
BETA = 3.0

PUBLISHED = {
    "rbf": {
        "trace": 0.837208846422,
        "after one": 0.639747789236,
        "after two": 0.535514961065,
        "direction": (-0.8678687569, 0.4967935394),
        "p": 0.992067612277,
        "p of the negative gradient": 0.991739642633,
        "released p": 0.911688779550,
        "certainty": 9.016488802474,
        "ucb": 0.589829083070,
        "ucb gradient": (2.2991300884, -2.6873775433),
        "argmin": (0.40199035, 0.75375395),
        "min": 0.007610301754,
        "step": (0.3538329667, 0.6277688082),
        "J": -0.041653183706,
        "dJ/dZ": ((0.1092320555, -0.0180073321), (-0.0758900979, 0.0181784049)),
        "dJ/dx1": (0.8754909335, -0.4302210176),
        "J of one": 0.055535554189,
        "envelope": -0.005555451825,
        "nested": -0.015326828856,
        "least": 0.004558,
    },
    "matern52": {
        "trace": 4.271285609875,
        "after one": 3.099578411122,
        "after two": 1.880238908691,
        "direction": (-0.5205695196, 0.8538192872),
        "p": 0.902036864734,
        "p of the negative gradient": 0.892258242058,
        "released p": 0.912271252415,
        "certainty": 3.800171192480,
        "ucb": 0.879621510481,
        "ucb gradient": (3.2130630027, -3.9106902976),
        "argmin": (0.39904232, 0.71329471),
        "min": 0.010213560202,
        "step": (0.3546453120, 0.6293180487),
        "J": 0.070767991526,
        "dJ/dZ": ((0.1530331836, -0.0598511682), (-0.2970720644, 0.1410864372)),
        "dJ/dx1": (1.2934663582, -0.0888812242),
        "J of one": 0.147462202701,
        "envelope": 0.015569907990,
        "nested": -0.031812691444,
        "least": 0.042309,
    },
}


def posterior(kernel):
    """The GP of the maximised values."""
    return GP.of(Observations.of(X, -F), Model(kernel=kernel), THETA)


def observing(gp, X, y):
    """The GP conditioned on further observations, from scratch."""
    return GP.of(gp.observations.with_more(X, y), gp.model, gp.theta)


def covariance(gp, A, B):
    """Posterior covariance of f between the rows of A and those of B."""
    K = [gp.kernel.matrix(points, gp.X) for points in (A, B)]
    return gp.kernel.matrix(A, B) - K[0] @ np.linalg.solve(gp.L @ gp.L.T, K[1].T)


def prior(kernel, lengthscale, noise_variance, d=1):
    """A GP with unit outputscale and no data."""
    theta = np.log([*np.broadcast_to(lengthscale, d), 1.0, noise_variance])
    return GP.of(Observations.of(np.empty((0, d)), np.empty(0)), Model(kernel=kernel), theta)


def mixed_gp(kernel, seed=0, n=12):
    """A GP on two numeric axes with a categorical one between them."""
    rng = np.random.default_rng(seed)
    points = mixed_points(rng, n)
    observations = Observations.of(points, rng.standard_normal(n), (False, True, False))
    return GP.of(observations, Model(kernel=kernel, mean="constant"), np.log([0.4, 0.9, 0.7, 1.3, 0.02]))


def mixed_points(rng, m):
    """Points for that GP."""
    points = rng.random((m, 3))
    points[:, 1] = rng.choice([1 / 6, 0.5, 5 / 6], m)
    return points
