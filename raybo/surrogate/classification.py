"""Whether something succeeds: a Gaussian process behind a probit, by Laplace's approximation.

    P(success at x) = Phi(f(x) + offset)      f of mean 0 with a Matern-5/2 kernel

The posterior of f is taken to be normal around its mode f^. That is the posterior of a GP with observations f^ + g / W
of noise 1 / W >= 1, where g and -W are the derivatives of the log likelihood at the mode; so it is an exact GP like any
other, with the gradients of one. Its noise variance is 1, the probit's own: a trial succeeds where a new observation,
noise included, is above -offset. Length-scale, outputscale and offset are those of a grid for which the approximate
evidence times their prior is highest: labels are few, and tell little of them.

Rasmussen, Williams (2006), "Gaussian Processes for Machine Learning", algorithm 3.1 and section 3.9 (probit).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import log_ndtr

from raybo.surrogate.factor import cholesky, solve
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels import Array
from raybo.surrogate.model import Hyperparameter, Model
from raybo.surrogate.observations import Observations

LENGTHSCALES = (0.1, 0.2, 0.4, 0.8, 1.6)  # sides of the cube
OUTPUTSCALES = (1.0, 4.0, 16.0)
OFFSETS = (0.0, 1.0)  # with nothing known, one trial in two succeeds, or five in six
STEPS, CLOSE = 30, 1e-6  # of Newton's method, and by how little the last one betters the posterior
LEAST_CURVATURE = 1e-10


@dataclass(frozen=True, eq=False)
class Classifier:
    """What is known of successes and failures.

    Attributes:
        gp: the approximate posterior of f.
        offset: added to f.
        log_evidence: the approximation's logarithm of the labels' probability, under the hyperparameters chosen.
    """

    gp: GP
    offset: float
    log_evidence: float

    @classmethod
    def of(cls, X: Array, succeeded: Sequence[bool], categorical: Sequence[bool]) -> Classifier:
        """Of points (n, d) with n >= 1 labels.

        Raises:
            NumericalError: a covariance cannot be factorised.
        """
        labels = np.where(np.asarray(succeeded, dtype=bool), 1.0, -1.0)
        best: tuple[float, Classifier] | None = None
        for lengthscale, outputscale, offset in product(LENGTHSCALES, OUTPUTSCALES, OFFSETS):
            found = _approximated(X, labels, tuple(categorical), lengthscale, outputscale, offset)
            log_prior = -0.5 * (math.log(lengthscale) + 1.0) ** 2 - 0.5 * ((math.log(outputscale) - 1.0) / 1.5) ** 2
            if best is None or found.log_evidence + log_prior > best[0]:
                best = found.log_evidence + log_prior, found
        assert best is not None
        return best[1]


def _approximated(
    X: Array, labels: Array, categorical: tuple[bool, ...], lengthscale: float, outputscale: float, offset: float
) -> Classifier:
    model = Model(
        lengthscale=Hyperparameter(fixed=lengthscale),
        outputscale=Hyperparameter(fixed=outputscale),
        noise_variance=Hyperparameter(fixed=1.0),
        shared_lengthscale=True,
    )
    theta = model.start(X.shape[1])
    K = model.kernel_at(theta, categorical).matrix(X, X)
    f, alpha, objective = np.zeros(len(X)), np.zeros(len(X)), -math.inf
    for _ in range(STEPS):
        slope, curvature, _ = _probit(labels, f + offset)
        root = np.sqrt(curvature)
        L = cholesky(np.eye(len(X)) + root[:, None] * K * root)[0]
        b = curvature * f + slope
        alpha = b - root * solve(L, root * (K @ b))
        f = K @ alpha
        before, objective = objective, -0.5 * float(alpha @ f) + float(_probit(labels, f + offset)[2].sum())
        if objective - before < CLOSE:
            break
    slope, curvature, _ = _probit(labels, f + offset)
    root = np.sqrt(curvature)
    L = cholesky(np.eye(len(X)) + root[:, None] * K * root)[0]
    observations = Observations.of(X, f + slope / curvature, categorical, 1.0 / curvature - 1.0)
    log_evidence = objective - float(np.log(np.diag(L)).sum())
    return Classifier(GP.of(observations, model, theta), offset, log_evidence)


def _probit(labels: Array, f: Array) -> tuple[Array, Array, Array]:  # (n,), (n,), (n,)
    """The slope of log Phi(label f), its negative curvature, and itself."""
    z = labels * f
    log = log_ndtr(z)
    ratio = np.exp(-0.5 * z**2 - 0.5 * math.log(2.0 * math.pi) - log)
    return labels * ratio, np.clip(ratio * (ratio + z), LEAST_CURVATURE, 1.0), log
