"""Expectations of a study's trials by a model: with noise the luckiest is not the best.

The model is a Gaussian process (Matern-5/2, the most likely hyperparameters, values made normal by a power, none
clipped) that takes values to be as noisy as they look, whatever method ran the study. Failed and pending trials have no
part in it, and a context is noise to it; if one is declared, `raybo.context` says what to expect over it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybo.common.errors import NumericalError
from raybo.surrogate import GP, Observations, Outputs, Tamed, fit_map, noisy_model
from raybo.surrogate.kernels import Array

LEAST_TRIALS = 5  # finished ones, below which nothing is expected
CONDITIONED = 500  # trials at most, the best fifth of them and an even choice of the rest
FITTED = 200  # of these, chosen alike, from which hyperparameters are
MUCH_NOISE = 0.5  # of the values' variance, from which the fit starts too
EXACT = 1e-4  # of the values' variance: with less noise, what the model expects beside a value is its own error
NEARLY = 0.25  # standard deviations by which a trial must be expected to be better than the best measured
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)  # of the expectation under a normal law


@dataclass(frozen=True, eq=False)
class Expectation:
    """A model of a study's maximised values.

    Attributes:
        gp: conditioned on finished trials, in the units of `outputs`.
        outputs: from values to those units.
        least, most: between which f is taken to be, as a power blows up what lies far beyond all values.
    """

    gp: GP
    outputs: Outputs
    least: float
    most: float

    @classmethod
    def of(cls, X: Array, y: Array, categorical: tuple[bool, ...]) -> Expectation | None:
        """Return the model of points (n, d) with maximised values (n,); None if they are few or equal."""
        if len(y) < LEAST_TRIALS or float(np.ptp(y)) == 0.0:
            return None
        outputs = Tamed.of(y, clip=None)
        observations = Observations.of(X, outputs.apply(y), categorical).thinned(CONDITIONED)
        model = noisy_model()
        starts = [model.start(X.shape[1]), model.start(X.shape[1])]
        starts[1][-1] = np.log(MUCH_NOISE)
        try:
            gp = GP.of(observations, model, fit_map(observations.thinned(FITTED), model, starts))
        except NumericalError:
            return None
        least, most = float(y.min()), float(y.max())
        return cls(gp, outputs, 2.0 * least - most, 2.0 * most - least)

    def at(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m,)
        """Return mean and standard deviation of f, without noise, at the rows of X, in the values' units."""
        values = self._values(X)
        mean = values @ _weights()
        return mean, np.sqrt(np.maximum(np.square(values - mean[:, None]) @ _weights(), 0.0))

    def ranking(self, X: Array, y: Array) -> NDArray[np.intp]:  # (m, d), (m,) -> (m,)
        """Return the rows of X from the most promising on: by their means, of equals by their values.

        The best value is the first, unless the values are noisy and another row is expected to be better by a quarter
        of its standard deviation: without that, nothing says that the best was lucky.

        Args:
            X: points.
            y: their maximised values.
        """
        means, sds = self.at(X)
        order, best = np.lexsort((-y, -means)), int(np.argmax(y))
        first = int(order[0])
        if self.gp.noise_variance < EXACT or means[first] - means[best] < NEARLY * sds[first]:
            return np.concatenate([[best], order[order != best]])
        return order

    def gain(self, X: Array, best: float) -> Array:  # (m, d) -> (m,)
        """Return by how much f is expected to be above a value, in the values' units, never below 0."""
        return np.asarray(np.maximum(self._values(X) - best, 0.0) @ _weights())

    def _values(self, X: Array) -> Array:  # (m, 15)
        mean, var = self.gp.posterior(X)
        values = self.outputs.invert(mean[:, None] + np.sqrt(var)[:, None] * NODES)
        return np.asarray(np.clip(values, self.least, self.most))


def _weights() -> Array:
    return np.asarray(WEIGHTS / WEIGHTS.sum())
