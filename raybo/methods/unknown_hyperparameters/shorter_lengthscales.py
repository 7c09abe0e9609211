"""Divides fitted length-scales, for a-gp-ucb and wang-defreitas.

    l = l_MAP / h        h on a grid of powers of 1.1, at most 1,000

A method chooses h by one random set of points, common to every h; the proposal itself comes from a full search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raybo.acquisition import UpperConfidence
from raybo.methods.parts.fitted_model import FittedGP
from raybo.methods.story import OverTrials, Scale, Series, Story, is_point
from raybo.record.history import History
from raybo.record.trial import Trial
from raybo.solvers.starts import raw_candidates
from raybo.space import Array
from raybo.surrogate import GP

STEP = 1.1
LARGEST = 1_000.0


def divided(fit: FittedGP, h: float, history: History) -> FittedGP:
    """Return the surrogate with length-scales divided by h; the next fit starts from the undivided ones."""
    if h == 1.0:
        return fit
    theta = fit.gp.theta.copy()
    theta[:-2] -= np.log(h)
    return replace(fit, members=(with_hyperparameters(fit.gp, theta, history),))


def with_hyperparameters(gp: GP, theta: Array, history: History) -> GP:  # (p,)
    """Return a GP of the same trials with another theta, pending ones at their new posterior mean."""
    return observed_by(gp, theta, history).believing(history.X_pending)


def observed_by(gp: GP, theta: Array, history: History) -> GP:  # (p,)
    """Return a GP with any theta of this GP's trials except the pending ones, which are its last."""
    ended = gp.observations.first(gp.n - len(history.X_pending))
    return GP.of(ended, gp.model, theta)


def candidates(fit: FittedGP, history: History, rng: np.random.Generator) -> Array:  # (m, d)
    """Return points that can be run: 1,500 uniform ones, and 200 around the best."""
    return history.cube.snap(raw_candidates(history.cube, rng, 1_500, fit.best[None, :], 200))


def std_at_top(fit: FittedGP, kappa: float, points: Array) -> float:  # (m, d)
    """Return the standard deviation at the point of the highest upper confidence bound."""
    top = int(np.argmax(UpperConfidence(fit.gp, kappa).value(points)))
    return float(np.sqrt(fit.gp.posterior(points[[top]])[1][0]))


SHOWN = 8  # a story shows at most so many axes


def lengthscale_story(trials: Sequence[Trial], names: Sequence[str]) -> Story | None:
    """Return a story of the proposals' length-scales and of their bounds, the tag `upper`; None without either."""
    tagged = [t for t in trials if is_point(t.tags.get("lengthscale", t.tags.get("upper")), len(names))]
    if not tagged:
        return None
    numbers = tuple(trial.number for trial in tagged)
    has_bounds = all("upper" in trial.tags for trial in tagged)
    series = []
    for i, name in enumerate(names[:SHOWN]):
        used = [t.tags["lengthscale"][i] if "lengthscale" in t.tags else math.exp(t.tags["theta"][i]) for t in tagged]
        series.append(Series(numbers, tuple(used), name, group=i))
        if has_bounds:
            series.append(Series(numbers, tuple(t.tags["upper"][i] for t in tagged), name, "limit", group=i))
    bounds = ", dashed lines the upper bounds that are cut when the model was too sure" if has_bounds else ""
    more = "" if len(names) <= SHOWN else f" The first {SHOWN} parameters are shown."
    caption = (
        f"Solid lines are the length-scales that the model used{bounds}; shorter ones make the search look at more "
        f"places.{more}"
    )
    plot = OverTrials(tuple(series), Scale("length-scale, in sides of the cube", is_log=True))
    return Story("lengthscales", "Length-scales over time", caption, (plot,))
