"""From a history to a fitted surrogate: what the GP methods share.

A failed trial enters as an observation of the worst value seen, which keeps the search away without a second model. A
pending one enters at its posterior mean, which shrinks the variance around it and leaves the mean alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.history import History
from raybo.space import Array
from raybo.surrogate import GP, Model, Observations, Outputs, Standardised, fit_map

APART = 1e-3  # of the cube's side, as a root mean square over the axes: the least distance between points in flight


@dataclass(frozen=True)
class Fitted:
    """A surrogate with what led to it.

    Attributes:
        gp: conditioned on finished, failed and pending trials, in standardised units.
        theta: its hyperparameters, for the tag that the next fit starts from.
        outputs: between the maximised values and standardised units.
        incumbent: the best finished value, standardised. best: (d,), where it was seen.
    """

    gp: GP
    theta: Array
    outputs: Outputs
    incumbent: float
    best: Array


def observed(history: History) -> tuple[Array, Array]:  # (n, d), (n,)
    """Points and values of the finished trials, and of the failed ones with the worst value seen."""
    y, failed = history.y, history.X_failed
    if len(failed) == 0:
        return history.X, y
    return np.vstack([history.X, failed]), np.concatenate([y, np.full(len(failed), y.min())])


def fitted(history: History, model: Model, *, outputs: Outputs | None = None) -> Fitted:
    """Fit a model's hyperparameters by MAP, starting from the tag `theta`, and condition on everything known.

    Args:
        history: with at least one finished trial.
        model: what is assumed of f.
        outputs: the values' transform; what standardises them unless given.
    Raises:
        NumericalError: no factorisation succeeds.
    """
    X, y = observed(history)
    outputs = Standardised.of(history.y) if outputs is None else outputs
    z = outputs.apply(y)
    observations = Observations.of(X, z, history.cube.categorical)
    theta = fit_map(observations, model, starts(history, model))
    gp = GP.of(observations, model, theta).believing(history.X_pending)
    best = int(np.argmax(history.y))
    return Fitted(gp, theta, outputs, float(outputs.apply(history.y).max()), history.X[best])


def starts(history: History, model: Model) -> list[Array]:
    """Where to start a fit: at the last one, and every tenth trial from the model's own start too."""
    default = model.start(history.d)
    last = history.last_tag("theta")
    if last is None or len(last) != len(default):
        return [default]
    return [np.array(last)] if len(history) % 10 else [np.array(last), default]


def taken(history: History) -> tuple[Array, Array]:  # (a, d), (a,)
    """Points that must not be proposed again, and how far to stay from each: a little from those in flight."""
    pending = history.X_pending
    known = np.vstack([history.X, history.X_failed])
    apart = np.concatenate([np.full(len(pending), APART), np.zeros(len(known))])
    return np.vstack([pending, known]), apart


def design_size(history: History, published: int, given: int | None) -> int:
    """How many points to spread before there is a model: as given; else as published, but at most a quarter of the plan.

    A design as long as the papers' would leave a user's short study without a single modelled point.
    """
    if given is not None:
        return given
    if history.planned is None:
        return published
    return max(min(published, history.planned // 4), min(history.d + 1, history.planned))
