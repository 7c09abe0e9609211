"""One Gaussian process over points and contexts, z = (x, c), fitted to the trials of a history.

What enters it, and as what:

    finished, context known      its value
    finished, context unknown    nothing: left out and counted, since an invented context would be believed
    failed                       the worst value seen, which keeps the search away
    pending                      the posterior mean: the mean stays, the variance shrinks around it

A failed or pending trial with an unknown context enters at a few contexts drawn from the estimated law, so that workers
that ask at the same time are spread. The law itself is estimated from every known context, whatever became of its
trial, and from no others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raybo.common.errors import MethodError
from raybo.context.density import Density
from raybo.record.history import History
from raybo.space import Array, Cube
from raybo.surrogate import GP, Gamma, Hyperparameter, Model, Observations, Outputs, Standardised, fit_map
from raybo.surrogate.kernels import squared_distances

IMAGINED = 4  # contexts drawn for a trial whose own is unknown


def context_model() -> Model:
    """Return Matern-5/2 with a length-scale per axis, constant mean; Gamma priors of the hyperparameters themselves.

    Length-scale Gamma(3, 6), outputscale Gamma(2, 0.15), noise variance Gamma(1.1, 0.05) and at least 1e-4: the
    defaults of BoTorch before 0.12, of which the published comparison's models are made. There is no Jacobian in
    their fits, which is the same as a shape less by one in ours.
    """
    return Model(
        lengthscale=Hyperparameter(Gamma(2.0, 6.0), low=5e-3, high=20.0, start=0.693),
        outputscale=Hyperparameter(Gamma(1.0, 0.15), low=1e-3, high=1e3, start=0.693),
        noise_variance=Hyperparameter(Gamma(0.1, 0.05), low=1e-4, high=10.0, start=2.0),
        mean="constant",
    )


@dataclass(frozen=True, eq=False)
class Joint:
    """A surrogate over (x, c), with what led to it.

    Attributes:
        gp: of dx + dc axes, conditioned on all that is known, in the units of `outputs`.
        outputs: from the maximised values to those units.
        left_out: how many finished trials have no context and so no part in it.
    """

    gp: GP
    outputs: Outputs
    left_out: int


def with_context(history: History) -> tuple[Array, Array]:  # (n, dx + dc), (n,)
    """Return the finished trials whose context is known, as points of the joint cube, and their values."""
    C = history.C
    known = np.isfinite(C).all(axis=1)
    return np.hstack([history.X[known], C[known]]), history.y[known]


def errors_with_context(history: History) -> Array:  # (n,)
    """Return the standard deviation of what each value of `with_context` may be off by beside noise."""
    return history.errors[np.isfinite(history.C).all(axis=1)]


def fit_joint(
    history: History,
    density: Density,
    rng: np.random.Generator,
    *,
    fit: Callable[[Observations, Model], Array] | None = None,
    transform: Callable[[Array], Outputs] = Standardised.of,
) -> Joint:
    """Estimate hyperparameters from finished and failed trials, and condition on everything known.

    Args:
        history: with at least one finished trial whose context is known.
        density: the estimated law, from which unknown contexts are drawn.
        rng: for those.
        fit: how theta is found; the most likely one, from the model's own start, unless given.
        transform: makes the transform of the values from them.
    Raises:
        NumericalError: no factorisation succeeds.
    """
    model = context_model()
    Z, y = with_context(history)
    outputs = transform(y)
    failed = _placed(history.X_failed, history.C_failed, density, rng)
    values = np.concatenate([y, np.full(len(failed), y.min())])
    added = np.concatenate([Standardised.of(y).variances(errors_with_context(history)), np.zeros(len(failed))])
    observations = Observations.of(np.vstack([Z, failed]), outputs.apply(values), joint_categorical(history), added)
    theta = fit_map(observations, model) if fit is None else fit(observations, model)
    pending = _placed(history.X_pending, history.C_pending, density, rng)
    return Joint(GP.of(observations, model, theta).believing(pending), outputs, len(history.y) - len(y))


def cube_of_contexts(history: History) -> Cube:
    """Return the space of the contexts; MethodError if the study declares none."""
    if history.context_cube is None:
        raise MethodError("the study declares no context; declare it next to the space, or use another method")
    return history.context_cube


def joint_categorical(history: History) -> tuple[bool, ...]:  # (dx + dc,)
    """Return, per axis of the joint cube, true if only equality has meaning."""
    return (*history.cube.categorical, *cube_of_contexts(history).categorical)


def split_distances(gp: GP, X: Array, atoms: Array) -> tuple[Array, Array]:  # (m, dx), (a, dc) -> (m, n), (a, n)
    """Return squared scaled distances from the GP's points, in x alone and in c alone, whose sum is that of (x, c)."""
    dx, scale, flags = X.shape[1], gp.lengthscale, gp.stationary.categorical
    in_x = squared_distances(X, gp.X[:, :dx], scale[:dx], flags[:dx])
    return in_x, squared_distances(atoms, gp.X[:, dx:], scale[dx:], flags[dx:])


def _placed(X: Array, C: Array, density: Density, rng: np.random.Generator) -> Array:  # (k, dx), (k, dc) -> (_, dx+dc)
    """Return points with their contexts; those whose context is unknown, at IMAGINED ones."""
    known = np.isfinite(C).all(axis=1)
    unknown = np.repeat(X[~known], IMAGINED, axis=0)
    imagined = density.sample(len(unknown), rng) if len(unknown) else np.empty((0, C.shape[1]))
    return np.vstack([np.hstack([X[known], C[known]]), np.hstack([unknown, imagined])])
