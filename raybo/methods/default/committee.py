"""Several models of one set of results, and what a point is worth to all of them.

Models that assume different things of a function fail in different places, and what most of them expect is more often
true than what the likeliest of them expects alone:

plain     Matern-5/2
warped    Matern-5/2 of axes that may be bent, as for rates that should have been logarithms, around a constant mean
summed    a sum of functions of one axis each, a linear and a quadratic trend, and the rest, around a constant mean

Each has its most likely hyperparameters. A model's weight is min(1, exp((L - L_plain) / 4)), L the log posterior there:
one that explains the results badly has no say, and none has more than the plain one, as the likeliest of a few is too
often so by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np

from raybo.methods.parts.fitted_model import FittedGP, FittedSurrogate
from raybo.methods.parts.refit_schedule import AFRESH
from raybo.space import Array
from raybo.surrogate import GP, Likelihood, Model, Observations, Outputs, most_likely, structured_model

MEMBERS: Mapping[str, Callable[[Sequence[bool]], Model]] = {  # the model of each, by which axes are categorical
    "plain": structured_model,
    "warped": partial(structured_model, is_warped=True, mean="constant"),
    "summed": partial(structured_model, is_sum=True, has_trend=True, mean="constant"),
}
NATS = 4.0  # nats by which a model must explain the results worse than the plain one to have its weight divided by e
NO_SAY = 0.03  # a weight below it is none
IN_TURN = ((60, 4), (30, 2))  # from so many results on, each member's fit is kept for so many trials
DIGITS = 4  # of a logged hyperparameter: a hundredth of a per cent


def convene(
    X: Array,
    y: Array,
    outputs: Outputs,
    categorical: Sequence[bool],
    believed: Array,
    last: Mapping[str, Sequence[float]],
    turn: int,
    *,
    best: Array,
    added: Array | None = None,
    members: Sequence[str] = tuple(MEMBERS),
    is_kept: bool = False,
) -> FittedGP:
    """Fit the models and weigh them; the first member is the plain one.

    Args:
        X, y: (n, d) and (n,), points and their values, maximised.
        outputs: into the models' units.
        categorical: per axis, whether only equality counts.
        believed: (m, d), pending points, which are believed at each model's mean.
        last: the hyperparameters found last, by model, as `tags["models"]` has them; empty for none.
        turn: the trial's number, by which members are fitted in turn if there are many results, and every tenth
            time from nothing too.
        best: (d,), the point with the best known value.
        added: (n,), variance by which each value is uncertain beside the noise, in the models' units: it was predicted
            for a trial that has not finished. None if all were seen.
        members: the models' names, the plain one first.
        is_kept: true if the last ones are kept, as nothing has been learnt since.
    Raises:
        NumericalError: no factorisation succeeds.
    """
    values = outputs.apply(y)
    observations = Observations.of(X, values, categorical, added)
    thetas, models, logs = {}, [], []
    for place, name in enumerate(members):
        model = model_of(name, tuple(categorical))
        theta, log = _estimated(Likelihood(observations, model), last.get(name), turn + place, is_kept)
        thetas[name] = theta.tolist()
        models.append(GP.of(observations, model, theta).believing(believed))
        logs.append(log)
    weights = [math.exp(min(0.0, (log - logs[0]) / NATS)) for log in logs]
    say = [i for i, weight in enumerate(weights) if weight >= NO_SAY]
    return FittedSurrogate(
        tuple(models[i] for i in say),
        outputs,
        float(values.max()),
        best,
        X,
        {"models": thetas, "weights": [round(weight, 2) for weight in weights]},
        tuple(weights[i] for i in say),
    )


@lru_cache(maxsize=16)  # a cache only
def model_of(name: str, categorical: tuple[bool, ...]) -> Model:
    """Return the model of a member."""
    return MEMBERS[name](categorical)


def _estimated(
    likelihood: Likelihood, last: Sequence[float] | None, turn: int, is_kept: bool
) -> tuple[Array, float]:  # (p,)
    """Return a member's hyperparameters, rounded as the tags keep them, and their log posterior."""
    start = likelihood.model.start(likelihood.d)
    if last is not None and len(last) == len(start):
        known = np.array(last)
        every = next((turns for size, turns in IN_TURN if likelihood.n >= size), 1)
        if is_kept or turn % every:
            return known, likelihood.log_density(known)
        starts = [known] if turn % AFRESH else [known, start]
    else:
        starts = [start]
    theta, log = most_likely(likelihood, starts)
    return np.round(theta, DIGITS), log
