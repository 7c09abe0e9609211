"""Posteriors of a few lines, to test acquisitions apart from the surrogate."""

from __future__ import annotations

import numpy as np

from raybo.acquisition import LogExpectedImprovement, LogProbabilityOfImprovement


class SmallGP:
    """A zero-mean GP with a Matern kernel (nu 1.5 or 2.5), conditioned on n observations."""

    def __init__(self, X, y, lengthscale=0.3, outputscale=1.0, noise_variance=1e-4, nu=2.5):
        self.X, self.d = X, X.shape[1]
        self.lengthscale = np.broadcast_to(np.asarray(lengthscale, dtype=float), (self.d,))
        self.outputscale, self.noise_variance, self.nu = outputscale, noise_variance, nu
        self.inverse = np.linalg.inv(self.kernel(X, X) + noise_variance * np.eye(len(X)))
        self.alpha = self.inverse @ y

    def kernel(self, A, B):
        return self._of_squared(self._squared(A, B))[0]

    def posterior(self, X):
        k = self.kernel(X, self.X)
        return k @ self.alpha, np.maximum(self.outputscale - np.einsum("mn,mn->m", k, k @ self.inverse), 0.0)

    def posterior_gradient(self, X):
        k, slope = self._of_squared(self._squared(X, self.X))
        v = k @ self.inverse
        mean, var = k @ self.alpha, np.maximum(self.outputscale - np.einsum("mn,mn->m", k, v), 0.0)

        def chain(weights):  # sum over n of weights dk(x, X_n)/dx
            w = 2.0 * slope * weights
            return (w.sum(1)[:, None] * X - w @ self.X) / self.lengthscale**2

        return mean, var, chain(self.alpha), -2.0 * chain(v)

    def joint(self, X):
        k = self.kernel(X, self.X)
        return k @ self.alpha, self.kernel(X, X) - k @ self.inverse @ k.T

    def _squared(self, A, B):
        return (((A[:, None, :] - B[None, :, :]) / self.lengthscale) ** 2).sum(axis=2)

    def _of_squared(self, q):
        """k, and its derivative in the squared distance q."""
        r = np.sqrt(2.0 * self.nu * q)
        e = self.outputscale * np.exp(-r)
        if self.nu == 1.5:
            return (1.0 + r) * e, -1.5 * e
        return (1.0 + r + r * r / 3.0) * e, -5.0 / 6.0 * (1.0 + r) * e


class FixedPosterior:
    """Given means and standard deviations at rows that stand for nothing."""

    def __init__(self, mean, std):
        self.mean, self.std = np.asarray(mean, dtype=float), np.asarray(std, dtype=float)

    def posterior(self, X):
        return self.mean, self.std**2


def random_gp(seed, n=20, d=2, **options):
    """A GP on random points with a smooth random response, and its data."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    y = np.sin(X @ rng.normal(0.0, 4.0, d) + rng.normal()) + np.cos(X @ rng.normal(0.0, 3.0, d))
    y = (y - y.mean()) / y.std()
    return SmallGP(X, y, **options), X, y


def gradient_error(acquisition, X, step=6e-6):
    """Largest error of the analytic gradient against central differences, relative to the largest gradient."""
    values, gradient = acquisition.value_and_gradient(X)
    np.testing.assert_allclose(values, acquisition.value(X), rtol=1e-9, atol=1e-12)
    shifts = step * np.eye(X.shape[1])
    numeric = np.stack([(acquisition.value(X + s) - acquisition.value(X - s)) / (2.0 * step) for s in shifts], axis=1)
    return np.abs(numeric - gradient).max() / np.abs(gradient).max()


class Exponential:
    """exp of an acquisition that is a logarithm."""

    def __init__(self, log):
        self.log = log

    def value(self, X):
        return np.exp(self.log.value(X))

    def value_and_gradient(self, X):
        value, gradient = self.log.value_and_gradient(X)
        return np.exp(value), np.exp(value)[:, None] * gradient


def expected_improvement(gp, incumbent, nu=1.0):
    """Expected improvement itself."""
    return Exponential(LogExpectedImprovement(gp, incumbent, nu))


def probability_of_improvement(gp, incumbent):
    """Probability of improvement itself."""
    return Exponential(LogProbabilityOfImprovement(gp, incumbent))
