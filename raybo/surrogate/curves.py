"""A Gaussian process of learning curves: where each of them ends, and how far its steps are from there.

    f(x, s) = g(x) + (1 - s) (r(s) + h(x, s))        s where a step lies between the first, 0, and the last, 1

    g   the end, as the standard model has it: Matern-5/2 over configurations
    r   what all curves do on their way: variance v, Matern-5/2 in s
    h   what each does beside that: variance w times that of g, Matern-5/2 in x and s, with g's length-scales in x

    k((x, s), (x', s')) = k_g(x, x') (1 + w e) + v e        e = (1 - s) (1 - s') M(((s - s') / SPAN)^2)

That a curve which is ahead stays ahead is in g, whatever r and h are. A kernel over x times one over s cannot say so:
to it, what differs early differs anew late. At the last step k is k_g, so that predictions of the end are those of a
Gaussian process over configurations.

Swersky, Snoek, Adams (2014), "Freeze-Thaw Bayesian Optimization", arXiv:1406.3896, have such a sum of an asymptote and
of what decays, with a kernel for exponentials and a mean in place of r.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from raybo.surrogate.factor import JITTERS, cholesky, solve
from raybo.surrogate.fit import climbed
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels import Array, Kernel, profile, profile_and_slope
from raybo.surrogate.observations import Observations, thinned_rows
from raybo.surrogate.presets import standard_model
from raybo.surrogate.priors import LogNormal

SPAN = 0.5  # length-scale of r and h in s
ENDS = standard_model()  # what is assumed of g, and of the noise
OWN, COMMON = LogNormal(-1.0, 1.0), LogNormal(0.0, 1.5)  # what is expected of w, and of v
BOUNDS = math.log(1e-3), math.log(30.0)  # of their logarithms


@dataclass(frozen=True, eq=False)
class CurvePoints:
    """What was seen of curves.

    Attributes:
        X: (n, d), configurations. s: (n,), in [0, 1]. y: (n,), values.
        categorical: per axis of X, whether only equality counts.
    """

    X: Array
    s: Array
    y: Array
    categorical: tuple[bool, ...]

    def thinned(self, at_most: int) -> CurvePoints:
        """At most so many of the points: the best, a fifth of them, and every so many of the rest, in order."""
        kept = thinned_rows(self.y, at_most)
        return CurvePoints(self.X[kept], self.s[kept], self.y[kept], self.categorical)

    def with_ends(self, X: Array, y: Array) -> CurvePoints:  # (m, d), (m,)
        """These, and values at the last step."""
        s = np.concatenate([self.s, np.ones(len(X))])
        return CurvePoints(np.vstack([self.X, X]), s, np.concatenate([self.y, y]), self.categorical)

    @property
    def shape(self) -> Array:  # (n, n)
        """e between the points."""
        left = 1.0 - self.s
        return np.outer(left, left) * profile("matern52", np.square((self.s[:, None] - self.s) / SPAN))


@dataclass(frozen=True, eq=False)
class EndsOfCurves:
    """The posterior at the last step.

    Attributes:
        points: what it is conditioned on. theta: (d + 4,), logs of g's length-scales and variance, of the noise's
            variance, w and v.
    """

    points: CurvePoints
    theta: Array
    _gp: GP  # whose kernel is g's, and whose factor is that of the curves

    @classmethod
    def of(cls, points: CurvePoints, theta: Array, believed: Array | None = None) -> EndsOfCurves:
        """Condition on points, and then on configurations (m, d) at their posterior mean at the last step.

        Raises:
            NumericalError: the covariance cannot be factorised.
        """
        found = cls._with(points, theta)
        if believed is None or len(believed) == 0:
            return found
        return cls._with(points.with_ends(believed, found.posterior(believed)[0]), theta)

    @classmethod
    def _with(cls, points: CurvePoints, theta: Array) -> EndsOfCurves:
        kernel = _kernel(theta, points.categorical)
        A, e, n = kernel.matrix(points.X, points.X), points.shape, len(points.y)
        A.flat[:: n + 1] = kernel.outputscale  # exact, whatever the rounding of distances
        own, common = np.exp(theta[-2:])
        A = A * (1.0 + own * e) + common * e
        A.flat[:: n + 1] += math.exp(theta[-3])
        L, jitter = cholesky(A)
        observations = Observations(points.X, points.y, np.ones(n), np.zeros(n), points.categorical)
        gp = GP(ENDS, theta[:-2], observations, kernel, 0.0, jitter, L, solve(L, points.y))
        return cls(points, theta, gp)

    def posterior(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m,)
        """Mean and variance of g at the rows of X."""
        return self._gp.posterior(X)

    def posterior_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:  # (m,), (m,), (m, d), (m, d)
        """Mean and variance of g at the rows of X, and their gradients in x; zero along categorical axes."""
        return self._gp.posterior_gradient(X)

    def joint(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, m)
        """Mean and covariance of g at the rows of X."""
        return self._gp.joint(X)


class CurveLikelihood:
    """Log posterior of theta given points of curves."""

    def __init__(self, points: CurvePoints) -> None:
        self.points, self.n = points, len(points.y)
        X = points.X
        self._D = np.stack(
            [
                (column[:, None] != column).astype(np.float64)
                if is_categorical
                else np.square(column[:, None] - column)
                for column, is_categorical in zip(X.T, points.categorical, strict=True)
            ]
        )
        self._e = points.shape

    def log_posterior(self, theta: Array) -> tuple[float, Array]:  # (d + 4,)
        """Log marginal likelihood plus log prior at theta, and its gradient; -inf where it cannot be factorised."""
        n, d, y = self.n, len(self._D), self.points.y
        outputscale, noise, own, common = np.exp(theta[d:]).tolist()
        metric = np.exp(-2.0 * theta[:d])
        M, slope = profile_and_slope("matern52", np.tensordot(metric, self._D, 1))
        level = outputscale * (1.0 + own * self._e)
        K, shared = level * M, common * self._e
        L = self._factor(K + shared, noise)
        if L is None:
            return -math.inf, np.zeros_like(theta)
        inverse, _ = lapack.dpotri(L, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        alpha = inverse @ y
        value = -0.5 * (float(y @ alpha) + n * math.log(2.0 * math.pi)) - float(np.log(np.diag(L)).sum())
        G = 0.5 * (np.outer(alpha, alpha) - inverse)
        gradient = np.empty_like(theta)
        gradient[:d] = -2.0 * metric * np.tensordot(self._D, G * level * slope, ((1, 2), (0, 1)))
        gradient[d] = float((G * K).sum())
        gradient[d + 1] = noise * float(np.trace(G))
        gradient[d + 2] = float((G * M * (outputscale * own * self._e)).sum())
        gradient[d + 3] = float((G * shared).sum())
        prior, rise = ENDS.log_prior(theta[:-2])
        more, steep = zip(*(p.log_density(theta[i : i + 1 or None]) for i, p in ((-2, OWN), (-1, COMMON))), strict=True)
        return value + prior + float(np.sum(more)), gradient + np.concatenate([rise, *steep])

    def _factor(self, K: Array, noise: float) -> Array | None:
        for jitter in JITTERS:
            A = K.copy()
            A.flat[:: self.n + 1] += noise + jitter * float(K.flat[0])
            L, info = lapack.dpotrf(A, lower=1, clean=1, overwrite_a=1)
            if info == 0:
                return np.asarray(L)
        return None


def start_of_curves(d: int) -> Array:  # (d + 4,)
    """theta to start from where nothing is known."""
    return np.append(ENDS.start(d), [OWN.log_median, COMMON.log_median])


def fit_curves(points: CurvePoints, starts: Sequence[Array], *, at_most: int) -> Array:  # (d + 4,)
    """theta that maximises log likelihood plus log prior, climbing from the starts.

    Args:
        at_most: fit to a subset of so many points where there are more.
    Raises:
        NumericalError: the likelihood is not finite at any start.
    """
    bounds = np.vstack([ENDS.bounds(points.X.shape[1]), [BOUNDS, BOUNDS]])
    return climbed(CurveLikelihood(points.thinned(at_most)), starts, bounds, np.ones(len(bounds), dtype=bool))[0]


def _kernel(theta: Array, categorical: tuple[bool, ...]) -> Kernel:
    return ENDS.kernel_at(theta[:-2], categorical)
