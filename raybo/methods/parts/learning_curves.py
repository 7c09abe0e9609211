"""Extrapolates learning curves: a model of configuration and step at once, which predicts values at the last step.

One Gaussian process over the configuration and the logarithm of the step, so that early and cheap values of one
configuration inform about the final values of others, and full curves show what early steps are worth. Freeze-thaw
(Swersky, Snoek, Adams, 2014, arXiv:1406.3896) and MOBSTER (Klein, Tiao, Lienart, Archambeau, Seeger, 2020,
arXiv:2003.10865) model curves so, with kernels of their own for the step; Matern-5/2 with a length-scale in the
logarithm is ours, and makes predictions and gradients those of any other axis.

`curve_data` chooses the reports. A failed trial is at the last step with the worst value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from raybo.common.errors import NumericalError
from raybo.methods.parts.curve_data import Row, at_step, chosen_trials, rows_of_curves
from raybo.methods.parts.fitted_model import FittedSurrogate, Transform
from raybo.methods.parts.refit_schedule import is_kept, last_estimate, starts_of_fit
from raybo.record.goals import within_reach
from raybo.record.history import History
from raybo.record.states import State
from raybo.space import Array
from raybo.surrogate import GP, Likelihood, Model, Observations, Outputs, Tamed, fit_map, standard_model
from raybo.surrogate.fit import IMPOSSIBLE

ROWS = 300  # points of curves that the model is made of
ROWS_OF_MANY = 200  # points of curves that the model is made of if there are many trials
MANY = 150  # trials from which on proposals are made faster: if most end at their first step, there are a thousand
KEPT_SHARE = 50  # from MANY trials on a fit is kept until they have grown by this part of themselves
CUT = (State.PRUNED, State.PAUSED, State.STOPPED)  # states of trials that reported and did not run to their end
WITHIN = 10.0  # standard deviations from the mean of final values to which values too far off for any model are moved
FAR_OFF = 1e4  # standard deviations below which no value is too far off for a model
LEAST_STD = 1e-9  # of a final value; a smaller one is rounding
THETA = "curves"  # the tag that keeps the hyperparameters


@dataclass(frozen=True, eq=False)
class AtLastStep:
    """The posterior at the last step, as a surrogate over configurations.

    Attributes:
        curves: over (d + 1,) points, a configuration and the place of its step in [0, 1].
    """

    curves: GP

    def mean(self, X: Array) -> Array:  # (m, d) -> (m,)
        """Return the mean at the rows of X, without the solves that a variance takes."""
        return self.curves.mean(at_step(X, 1.0))

    def posterior(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m,)
        """Return mean and variance at the rows of X."""
        return self.curves.posterior(at_step(X, 1.0))

    def posterior_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:  # (m,), (m,), (m, d), (m, d)
        """Return mean and variance at the rows of X, and their gradients in x."""
        mean, var, dmean, dvar = self.curves.posterior_gradient(at_step(X, 1.0))
        return mean, var, dmean[:, :-1], dvar[:, :-1]

    def joint(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, m)
        """Return mean and covariance at the rows of X together."""
        return self.curves.joint(at_step(X, 1.0))

    def believing(self, X: Array) -> AtLastStep:  # (m, d)
        """Return the posterior if the final values at these points were as expected."""
        return AtLastStep(self.curves.believing(at_step(X, 1.0)))


FittedCurves: TypeAlias = FittedSurrogate[AtLastStep]


def has_cut_curves(history: History) -> bool:
    """True if a trial with reports did not run to its end, and the last step is known."""
    return (
        history.steps is not None
        and len(history.reports_in_order) > 0
        and any(r.state in CUT and r.reports for r in history.records)
    )


def fitted_curves(history: History, transform: Transform, tag: str) -> FittedCurves | None:
    """Fit the curves of one number, sure of what pruned and pending trials come to; None if no curve was cut.

    Args:
        history: of that number alone.
        transform: makes the transform of its values.
        tag: begins the name of the tag that keeps the hyperparameters.
    """
    if not has_cut_curves(history):
        return None
    fit = fit_curves(history, transform, tag=f"{tag}_{THETA}")
    silent = [r.x for r in history.records if r.state is State.PENDING or (r.state is State.PRUNED and not r.reports)]
    return believing_ends(fit, history, np.array(silent, dtype=np.float64).reshape(-1, history.d))


def fit_curves(
    history: History,
    transform: Transform = Tamed.of,
    *,
    refit: bool = True,
    tag: str = THETA,
    model: Model | None = None,
) -> FittedCurves:
    """Fit the model of all curves; its best point has the highest mean at the last step, observed or not.

    The incumbent is -inf if no trial has finished.

    Args:
        history: with at least one report.
        transform: makes the transform of the values.
        refit: estimate the hyperparameters even if there are some already.
        tag: the name of the tag that keeps the hyperparameters.
        model: what is assumed; None for the standard model.
    Raises:
        NumericalError: no hyperparameters explain the observations.
    """
    records = [history.records[number] for number in reported(history)]
    last = within_reach(np.array([r.y if r.y is not None else r.reports[-1][1] for r in records], dtype=np.float64))
    outputs, worst = transform(last), float(last.min())
    rows = rows_of_curves(records, history.span, _at_most(history))
    observations = _observations(history, rows, outputs, worst)
    model = standard_model() if model is None else model
    try:
        theta = _estimate(history, observations, model, refit, tag)
    except NumericalError:  # early values so far off that no length-scales explain them beside the final ones
        observations = _observations(history, rows, outputs, worst, within=WITHIN)
        theta = _estimate(history, observations, model, refit, tag)
    surrogate = AtLastStep(GP.of(observations, model, theta))
    best = records[int(np.argmax(final_means(surrogate, history)))].x
    finished = [r.y for r in records if r.y is not None]
    incumbent = float(outputs.apply(np.array([max(finished)]))[0]) if finished else -math.inf
    seen, none = np.array([record.x for record in records]), np.empty((0, history.d))
    return FittedSurrogate((surrogate,), outputs, incumbent, best, none, {tag: theta.tolist()}, seen=seen)


def reported(history: History) -> list[int]:
    """Return the numbers of the trials that have reported or finished, and have not failed."""
    return [t for t, r in enumerate(history.records) if not r.has_failed and (r.reports or r.y is not None)]


def final_means(surrogate: AtLastStep, history: History) -> Array:  # (k,)
    """Return the expected final value of each trial of `reported`."""
    return surrogate.mean(np.array([history.records[number].x for number in reported(history)]))


def believing_ends(fit: FittedCurves, history: History, X: Array) -> FittedCurves:  # (m, d)
    """Return the fit if final values at these points, and of all trials that were cut, were as expected."""
    return replace(fit, members=(fit.gp.believing(np.vstack([X, cut_points(history)])),))


def cut_points(history: History) -> Array:  # (c, d)
    """Return the points of the trials that the model knows and that did not run to their end."""
    records = [history.records[number] for number in reported(history)]
    chosen = chosen_trials(records, history.span, _at_most(history))
    return np.array([records[i].x for i in chosen if records[i].state in CUT]).reshape(-1, history.d)


def _at_most(history: History) -> int:
    return ROWS if len(history) < MANY else ROWS_OF_MANY


def _estimate(history: History, observations: Observations, model: Model, refit: bool, tag: str) -> Array:  # (p,)
    """Return the hyperparameters, those of the last fit while it is kept.

    Raises:
        NumericalError: none explain the observations, or those of the last fit do not explain values that are far off.
    """
    d = history.d + 1
    theta = last_estimate(history, model, d, tag)
    if theta is None or (refit and not _is_kept(history, len(observations.X))):
        return fit_map(observations, model, starts_of_fit(history, model, d, theta))
    if np.abs(observations.y).max() > FAR_OFF and Likelihood(observations, model).log_density(theta) <= -IMPOSSIBLE:
        raise NumericalError("what is known of early steps is not explained by the hyperparameters that were kept")
    return theta


def _is_kept(history: History, n: int) -> bool:
    """True if the fit to n observations is kept for the next trial."""
    return len(history) % (len(history) // KEPT_SHARE) > 0 if len(history) >= MANY else is_kept(history, n)


def _observations(
    history: History, rows: list[Row], outputs: Outputs, worst: float, within: float = math.inf
) -> Observations:
    """Return the data of the model; no value is farther than `within` standard deviations from the mean."""
    failed = history.X_failed[-_at_most(history) // 5 :]
    X = np.column_stack([np.array([record.x for record, _, _ in rows]), [place for _, place, _ in rows]])
    y = np.array([value for _, _, value in rows] + [worst] * len(failed))
    flags = (*history.cube.categorical, False)
    return Observations.of(np.vstack([X, at_step(failed, 1.0)]), np.clip(outputs.apply(y), -within, within), flags)
