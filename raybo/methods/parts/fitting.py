"""From a history to a fitted surrogate: what the GP methods share.

A failed trial enters as an observation of the worst value seen, which keeps the search away without a second model;
a pending one enters at its posterior mean, which shrinks the variance around it and leaves the mean alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raybo.methods.parts.fitted_model import FittedGP, FittedSurrogate
from raybo.methods.parts.hyperparameters import Hyperparameters, fixed_values, with_fixed
from raybo.methods.parts.refit_schedule import REFIT_SHARE, is_kept, last_estimate, starts_of_fit
from raybo.record.events import Tags
from raybo.record.history import History
from raybo.space import Array
from raybo.surrogate import (
    GP,
    Likelihood,
    Model,
    Observations,
    Outputs,
    Standardised,
    fit_map,
    pseudo_data,
    sample_hmc,
    sample_slice,
)

SAMPLES = 10  # of the hyperparameters, where these are sampled
SAMPLED_POINTS = 300  # at most so many observations enter the sampling, which takes thousands of likelihoods


def observed(history: History) -> tuple[Array, Array]:  # (n, d), (n,)
    """Points and values of the finished trials, and of the failed ones with the worst value seen."""
    y, failed = history.y, history.X_failed
    if len(failed) == 0:
        return history.X, y
    return np.vstack([history.X, failed]), np.concatenate([y, np.full(len(failed), y.min())])


def added_noise(history: History, outputs: Outputs) -> Array:  # (n,)
    """Return the variance added to the noise of the rows of `observed`, in units of `outputs`; 0 unless predicted."""
    y, sd = history.y, history.errors
    if not sd.any():
        return np.zeros(len(y) + len(history.X_failed))
    sds = 0.5 * (outputs.apply(y + sd) - outputs.apply(y - sd))
    return np.concatenate([np.square(sds), np.zeros(len(history.X_failed))])


def fitted(
    history: History,
    model: Model,
    rng: np.random.Generator,
    *,
    outputs: Outputs | None = None,
    estimate: Hyperparameters = "map",
    starts: Sequence[Array] = (),
    refit_noise: bool = False,
    tune: bool = True,
    afresh: bool = False,
    tag: str = "theta",
) -> FittedGP:
    """Estimate a model's hyperparameters and condition on everything known.

    Args:
        history: with at least one finished trial.
        model: what is assumed of f.
        rng: for samples of the hyperparameters, and for pseudo-data.
        outputs: the values' transform; what standardises them unless given.
        estimate: "map" for the most likely hyperparameters, starting from the last ones in the tags, and from 200
            observations on only when these have grown by a hundredth; "uhe" for the same on pseudo-data drawn afresh;
            "mcmc" for 10 samples by Hamiltonian Monte Carlo after 200 of burn-in; "slice" for 10 by slice sampling,
            going on from the tags; or text that fixes values, the others being the most likely. Until another trial
            ends all are kept.
        starts: where every fit starts, beside the tag; unless given the model's own, at first and every tenth time.
        refit_noise: whether the noise alone is fitted to the observations after "uhe".
        tune: whether Hamiltonian Monte Carlo adapts its step.
        afresh: whether every trial has a fit of its own, which starts from nothing that was found before.
        tag: under which name the estimate is kept, where a method makes several.
    Raises:
        NumericalError: no factorisation succeeds.
        MethodError: there are several fixed length-scales, but not one for each axis.
    """
    X, y = observed(history)
    outputs = Standardised.of(history.y) if outputs is None else outputs
    observations = Observations.of(X, outputs.apply(y), history.cube.categorical, added_noise(history, outputs))
    model = with_fixed(model, fixed_values(estimate), history.d)
    thetas = _kept(history, model, tag)
    if thetas is None:
        last = None if afresh else last_estimate(history, model, history.d, tag)
        points = starts_of_fit(history, model, history.d, last, starts)
        if estimate in ("mcmc", "slice"):
            thetas = _sampled(observations, model, rng, estimate, last, points, tune)
        elif last is not None and is_kept(history, len(observations.X)):
            thetas = last[None, :]
        elif estimate == "uhe":
            thetas = _consistent(history, observations, model, rng, points, refit_noise)[None, :]
        else:
            thetas = fit_map(observations, model, points)[None, :]
    members = tuple(_conditioned(observations, model, theta, history) for theta in thetas)
    best = leader(history)
    incumbent = float(outputs.apply(history.y[[best]])[0])
    tags: Tags = {tag: thetas[-1].tolist(), "ended": history.ended}
    if len(thetas) > 1:
        tags[f"{tag}s"] = thetas.tolist()
    return FittedSurrogate(members, outputs, incumbent, history.X[best], members[0].X, tags)


def leader(history: History) -> int:
    """The row of `history.y` with the best value that was seen; of predicted ones where none was."""
    seen = np.where(history.errors > 0.0, -np.inf, history.y)
    return int(np.argmax(seen if np.isfinite(seen).any() else history.y))


def _kept(history: History, model: Model, tag: str) -> Array | None:  # (s, p)
    """Return the last estimate if no trial has ended since."""
    last = next((record.tags for record in reversed(history.records) if tag in record.tags), {})
    if last.get("ended") != history.ended or len(last[tag]) != model.size(history.d):
        return None
    return np.array(last.get(f"{tag}s", [last[tag]]))


_base: GP | None = None  # a cache only: see `_conditioned`


def _conditioned(observations: Observations, model: Model, theta: Array, history: History) -> GP:
    """Condition on everything known, in time that grows with the square of the observations while theta is kept.

    The factor of the whole hundreds of observations is made at once and kept; the others are always appended to it in
    one block. So the last digits, and with them the proposal, are the same whether or not the cache was warm.
    """
    global _base
    n = len(observations.X)
    whole = n - n % REFIT_SHARE
    base = None
    if whole >= 2 * REFIT_SHARE:
        base = _base
        if base is None or not _is_base(base, observations, model, theta, whole):
            base = _base = GP.of(observations.first(whole), model, theta)
    return GP.of(observations, model, theta, earlier=base).believing(history.X_pending)


def _is_base(base: GP, observations: Observations, model: Model, theta: Array, whole: int) -> bool:
    return (
        base.n == whole
        and base.model == model
        and np.array_equal(base.theta, theta)
        and np.array_equal(base.X, observations.X[:whole])
        and np.array_equal(base.observations.noise(1.0), observations.noise(1.0)[:whole])
    )


def _sampled(
    observations: Observations,
    model: Model,
    rng: np.random.Generator,
    estimate: str,
    last: Array | None,
    starts: Sequence[Array],
    tune: bool,
) -> Array:  # (s, p)
    likelihood = Likelihood(observations.thinned(SAMPLED_POINTS), model)
    if estimate == "mcmc":
        start = fit_map(observations, model, starts)
        return sample_hmc(likelihood, start, rng, samples=SAMPLES, tune=tune).thetas
    start = model.start(likelihood.d) if last is None else last
    return sample_slice(likelihood, start, rng, samples=SAMPLES, burn_in=20 if last is None else 2).thetas


def _consistent(
    history: History,
    observations: Observations,
    model: Model,
    rng: np.random.Generator,
    starts: Sequence[Array],
    refit_noise: bool,
) -> Array:  # (p,)
    theta = fit_map(pseudo_data(observations, rng, history.cube.snap), model, starts)
    return fit_map(observations, _with_free_noise(model, theta), [theta]) if refit_noise else theta


def _with_free_noise(model: Model, theta: Array) -> Model:
    """The model with all but its noise fixed as in theta."""
    lengthscale, outputscale = tuple(np.exp(theta[:-2]).tolist()), float(np.exp(theta[-2]))
    return replace(
        model,
        lengthscale=replace(model.lengthscale, fixed=lengthscale),
        outputscale=replace(model.outputscale, fixed=outputscale),
    )
