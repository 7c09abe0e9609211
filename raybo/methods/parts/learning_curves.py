"""How `auto` goes on where trials are ended early: a model of configuration and step at once, asked for the last step.

- One Gaussian process over the configuration and the logarithm of the step, so that what is seen early and cheaply of
  one configuration tells of another one's end, and what the first steps are worth is learnt from those that went on.
  Freeze-thaw (Swersky, Snoek, Adams, 2014, arXiv:1406.3896) and MOBSTER (Klein, Tiao, Lienart, Archambeau, Seeger,
  2020, arXiv:2003.10865) model curves so, with kernels of their own for the step; Matern-5/2 with a length-scale in the
  logarithm is ours, and makes predictions and gradients those of any other axis.
- Of a trial the first report of each octave of steps counts, and the last: neighbours say the same twice. A finished
  trial is at the last step with its value, a failed one with the worst.
- The next point maximises an upper bound of two standard deviations at the last step: early steps make the model surer
  than it should be. A pruned configuration that is expected to beat every finished one is run again instead. Beside
  that the ends of what was pruned are believed to be as expected: unsure of them it would propose neighbours of these,
  which would be pruned too, over and over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from raybo.acquisition import UpperConfidence
from raybo.common.errors import NumericalError
from raybo.methods.parts.initial_design import design_size, sobol_proposal
from raybo.methods.parts.multi_objective import Transform
from raybo.methods.parts.next_point import solve_apart
from raybo.methods.parts.refit_schedule import is_kept, last_estimate, starts_of_fit
from raybo.record.events import State, Tags
from raybo.record.history import History, Proposal, Record
from raybo.space import Array
from raybo.surrogate import GP, Likelihood, Model, Observations, Outputs, Tamed, fit_map, standard_model
from raybo.surrogate.fit import IMPOSSIBLE

DESIGN = 10  # points
OPTIMISM = 2.0  # standard deviations
ROWS, ROWS_OF_MANY = 300, 200  # points of curves that the model is made of, see `_chosen`
MANY = 150  # trials, from which on a proposal takes less: where most end at their first step, there are a thousand
KEPT_SHARE = 50  # from MANY on a fit is kept until trials have grown by so much of themselves
CUT = (State.PRUNED, State.PAUSED, State.STOPPED)  # they reported, and somebody ended or halted them
WITHIN = 10.0  # standard deviations from the ends' mean: where steps are put that are too far off for any model
FAR_OFF = 1e4  # the same: nearer than this none is
LEAST_VARIANCE = 1e-18  # of an end, below which only rounding is left
Row: TypeAlias = tuple[Record, float, float]  # a trial, the place of a step on its axis, and the value there
THETA = "curves"  # the tag that keeps the hyperparameters


@dataclass(frozen=True, eq=False)
class AtLastStep:
    """The posterior at the last step, as one over configurations.

    Attributes:
        curves: over (d + 1,) points, a configuration and where its step lies in [0, 1].
    """

    curves: GP

    def posterior(self, X: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m,)
        """Mean and variance at the rows of X."""
        return self.curves.posterior(at_step(X, 1.0))

    def posterior_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:  # (m,), (m,), (m, d), (m, d)
        """Mean and variance at the rows of X, and their gradients in x."""
        mean, var, dmean, dvar = self.curves.posterior_gradient(at_step(X, 1.0))
        return mean, var, dmean[:, :-1], dvar[:, :-1]

    def joint(self, X: Array) -> tuple[Array, Array]:  # (m,), (m, m)
        """Mean and covariance at the rows of X together."""
        return self.curves.joint(at_step(X, 1.0))


@dataclass(frozen=True, eq=False)
class Ends:
    """What is expected of the ends of all trials that have reported or finished.

    Attributes:
        gp: conditioned on all that is known, in the units of `outputs`.
        outputs: from the maximised values to those units.
        trials: their numbers. mean: (k,), of the last step of each.
        cut: (c, d), points of those that it is made of and that were ended or halted on their way.
        incumbent: the best finished value in those units; -inf where none has finished.
        theta: the hyperparameters. tag: under which name they are kept.
    """

    gp: GP
    outputs: Outputs
    trials: tuple[int, ...]
    mean: Array
    cut: Array
    incumbent: float
    theta: Array
    tag: str

    def believed(self, X: Array) -> Ends:  # (m, d)
        """The same, sure of the ends at these points and of those that were cut, which are taken to be as expected."""
        return replace(self, gp=self.gp.believing(at_step(np.vstack([X, self.cut]), 1.0)))

    def prediction(self, x: Array) -> Tags:  # (d,)
        """Mean and standard deviation at the last step of a configuration, as tags."""
        mean, var = AtLastStep(self.gp).posterior(x[None, :])
        return {"mean": float(mean[0]), "std": math.sqrt(max(float(var[0]), LEAST_VARIANCE))}

    @property
    def kept(self) -> Tags:
        """What the next fit starts from, as tags."""
        return {self.tag: self.theta.tolist()}


@dataclass(frozen=True, eq=False)
class FittedCurves:
    """The same as a fit of one number among several: its posterior is that at the last step."""

    ends: Ends

    @property
    def gp(self) -> AtLastStep:
        """The posterior over configurations."""
        return AtLastStep(self.ends.gp)

    @property
    def outputs(self) -> Outputs:
        """From the maximised values to its units."""
        return self.ends.outputs

    @property
    def tags(self) -> Tags:
        """What the next fit starts from."""
        return self.ends.kept

    def prediction(self, x: Array) -> Tags:  # (d,)
        """Mean and standard deviation at the last step of a configuration, as tags."""
        return self.ends.prediction(x)


def has_cut_curves(history: History) -> bool:
    """Whether a trial was ended or halted on its way, so that there are curves to model up to a known last step."""
    return (
        history.steps is not None
        and len(history.reports_in_order) > 0
        and any(r.state in CUT and r.reports for r in history.records)
    )


def propose_for_last_step(
    history: History, rng: np.random.Generator, initial: int | None, outputs: Transform
) -> Proposal:
    """The design; then a pruned configuration that is worth a whole run, or the point of the highest bound at the end.

    Args:
        history: with curves.
        rng: for the search.
        initial: points of the design; None for the usual.
        outputs: makes the transform of the values.
    """
    if len(history) < design_size(history, DESIGN, initial):
        return sobol_proposal(history, rng)
    ends = expected_ends(history, outputs)
    if (again := worth_running_again(history, ends)) is not None:
        x = history.records[again].x
        return Proposal(x, {"again": again, **ends.prediction(x), **ends.kept})
    sure = ends.believed(history.points(State.PENDING))
    best = history.records[ends.trials[int(np.argmax(ends.mean))]].x
    worth = UpperConfidence(AtLastStep(sure.gp), OPTIMISM)
    size, starts = (1_000, 8) if len(history) < MANY else (300, 4)
    found = solve_apart("lbfgsb", worth, history, rng, size=size, starts=starts, near=best[None, :])
    return Proposal(found.x, {"acquisition": "ucb", **sure.prediction(found.x), **ends.kept})


def fitted_curves(history: History, outputs: Transform, tag: str) -> FittedCurves | None:
    """The model of one number's curves, as a fit at the last step; None where none was ended on its way.

    Args:
        history: of that number alone.
        outputs: makes the transform of its values.
        tag: whose estimate it is beside those of other models.
    """
    if not has_cut_curves(history):
        return None
    ends = expected_ends(history, outputs, tag=f"{tag}_{THETA}")
    silent = [r.x for r in history.records if r.state is State.PENDING or (r.state is State.PRUNED and not r.reports)]
    believed = np.array(silent, dtype=np.float64).reshape(-1, history.d)
    return FittedCurves(ends.believed(believed))


def expected_ends(history: History, outputs: Transform = Tamed.of, *, refit: bool = True, tag: str = THETA) -> Ends:
    """The model of all curves.

    Args:
        history: with at least one report.
        outputs: makes the transform of the values.
        refit: whether the hyperparameters are estimated anew, unless there are none yet.
        tag: under which name they are kept.
    """
    numbers = tuple(t for t, r in enumerate(history.records) if not r.has_failed and (r.reports or r.y is not None))
    records = [history.records[t] for t in numbers]
    last = np.array([r.y if r.y is not None else r.reports[-1][1] for r in records], dtype=np.float64)
    units = outputs(last)
    at_most = ROWS if len(history) < MANY else ROWS_OF_MANY
    rows = _chosen(records, history.steps, at_most)
    worst = float(last.min())
    observations = _observations(history, rows, units, worst, at_most)
    model = standard_model()
    try:
        theta = _estimate(history, observations, model, refit, tag)
    except NumericalError:  # early steps so far off that no length-scales explain them beside the ends
        observations = _observations(history, rows, units, worst, at_most, within=WITHIN)
        theta = _estimate(history, observations, model, refit, tag)
    gp = GP.of(observations, model, theta)
    mean = gp.mean(at_step(np.array([r.x for r in records]), 1.0))
    finished = [r.y for r in records if r.y is not None]
    incumbent = float(units.apply(np.array([max(finished)]))[0]) if finished else -math.inf
    cut = np.array(
        [record.x for record, place, _ in rows if record.state in CUT and place == _place(record.step, history.steps)]
    )
    return Ends(gp, units, numbers, mean, cut.reshape(-1, history.d), incumbent, theta, tag)


def _estimate(history: History, observations: Observations, model: Model, refit: bool, tag: str) -> Array:  # (p,)
    """The hyperparameters, those of the last fit where it is kept.

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
    """Whether this is one of the trials that a fit to n observations is kept for."""
    return len(history) % (len(history) // KEPT_SHARE) > 0 if len(history) >= MANY else is_kept(history, n)


def worth_running_again(history: History, ends: Ends) -> int | None:
    """The pruned trial that is expected to beat whatever has finished; None where there is none.

    No trial is run again twice, and none is any more once one of these was pruned again: that rule does not look at the
    whole. Until a trial has finished, only one at a time is run again.
    """
    again = [record for record in history.records if "again" in record.tags]
    if any(record.state is State.PRUNED for record in again):
        return None
    if ends.incumbent == -math.inf and any(record.state is State.PENDING for record in again):
        return None
    known = {record.x.tobytes() for record in history.records if record.state is not State.PRUNED}
    places = [
        place
        for place, trial in enumerate(ends.trials)
        if history.records[trial].state is State.PRUNED and history.records[trial].x.tobytes() not in known
    ]
    best = max(places, key=lambda place: ends.mean[place], default=None)
    return None if best is None or ends.mean[best] <= ends.incumbent else ends.trials[best]


def explain_curves(tags: Tags) -> str:
    """Why a point was proposed; empty where these are not tags of a proposal for the last step."""
    if THETA not in tags:
        return ""
    expects = f"at the last step, expects {tags['mean']:+.2f} sd, uncertain by {tags['std']:.2f}"
    if "again" in tags:
        return f"trial {tags['again']} again, which was pruned and looks best by now: {expects}"
    return f"upper confidence bound {expects}"


def at_step(X: Array, place: float) -> Array:  # (m, d) -> (m, d + 1)
    """Configurations with the place of a step on its axis."""
    return np.column_stack([X, np.full(len(X), place)])


def _observations(
    history: History, rows: list[Row], outputs: Outputs, worst: float, at_most: int, within: float = math.inf
) -> Observations:
    """What the model is made of; no value farther than `within` standard deviations from the ends' mean."""
    failed = history.X_failed[-at_most // 5 :]
    X = np.column_stack([np.array([record.x for record, _, _ in rows]), [place for _, place, _ in rows]])
    y = np.array([value for _, _, value in rows] + [worst] * len(failed))
    flags = (*history.cube.categorical, False)
    return Observations.of(np.vstack([X, at_step(failed, 1.0)]), np.clip(outputs.apply(y), -within, within), flags)


def _chosen(records: list[Record], steps: int | None, at_most: int) -> list[Row]:
    """What the model is made of, in the order of the trials.

    The last one of each trial; then the others of those that came furthest. Where even the last ones are too many: of
    those that came furthest, of equals the best, a third; of the newest a third; of all, evenly spread, the rest.
    """
    lasts = [_last(record, steps) for record in records]
    n = len(records)
    by_reach = sorted(range(n), key=lasts.__getitem__, reverse=True)
    if n > at_most:
        kept = {*by_reach[: at_most // 3], *range(n - at_most // 3, n)}
        others = [i for i in range(n) if i not in kept]
        kept |= {others[j] for j in np.linspace(0, len(others) - 1, at_most - len(kept)).astype(int)}
        return [(records[i], *lasts[i]) for i in sorted(kept)]
    befores = [list[tuple[float, float]]() for _ in records]
    left = at_most - n
    for i in by_reach:
        before = _before_last(records[i], steps)
        left -= len(before)
        if left < 0:
            break
        befores[i] = before
    return [(records[i], *point) for i in range(n) for point in [*befores[i], lasts[i]]]


def _last(record: Record, steps: int | None) -> tuple[float, float]:
    """Where on the axis of steps a trial has come to, and the value there."""
    return (_place(record.step, steps), record.reports[-1][1]) if record.y is None else (1.0, record.y)


def _before_last(record: Record, steps: int | None) -> list[tuple[float, float]]:
    """The same of its first report from step 2 on, its first from twice as far, and so on."""
    due, found = 2, []
    for step, y in record.reports:
        if due <= step < record.step:
            found.append((_place(step, steps), y))
            while due <= step:
                due *= 2
    return found


def _place(step: int, steps: int | None) -> float:
    """Where a step lies between the first and the last, on a logarithmic axis."""
    assert steps is not None
    return min(1.0, math.log(step) / math.log(steps)) if steps > 1 else 1.0
