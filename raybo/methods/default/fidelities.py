"""The proposals of `auto` for a job with cheap versions: which configuration next, and at which fidelity.

The model is that of learning curves, one Gaussian process over configuration and fidelity (`parts.learning_curves`),
with a sum of functions of one axis each: what a fidelity adds to all values alike, and what holds at every fidelity.
Fidelities are expected to be much alike until the results say otherwise.

- The first configuration is in the middle of the space and runs whole; the others of the design, Sobol points, run at
  the lowest fidelity. If no whole run comes to a value, the configuration that looks best is the next.
- From then on, one of these: the configuration of the highest expected improvement at the highest fidelity, or one of
  those that look best and have not run whole. Each may run at any fidelity above its last.
- What is gained by a whole run is its expected improvement on the best one, EI(mean, sd). What is gained by a look at
  a fidelity z is that of the whole run that may follow it, EI(mean, s) over the best that is known or expected of
  others, where s = cov(f(x, z), f(x, 1)) / sd(y(x, z)) is by how much the look is expected to move the mean at the top.
- The proposal is what gains most for its expected seconds; of a look, with those of the whole run times the
  probability that it follows, P(mean moves above that best). As a budget is used, time weighs less, see
  `acquisition.cost`, and what cannot end in the time that is left is avoided.

So a fidelity that says little of the highest is worth no look, and the rest is a matter of what it costs.

Ours, after Kandasamy, Dasarathy, Schneider, Poczos (2017), "Multi-fidelity Bayesian Optimisation with Continuous
Approximations" (BOCA), arXiv:1703.06240, which also chooses the point at the highest fidelity and then the cheapest
fidelity that still says something of it; for value per cost, Klein, Falkner, Bartels, Hennig, Hutter (2017), "Fast
Bayesian Optimization of Machine Learning Hyperparameters on Large Datasets" (FABOLAS), arXiv:1605.07079.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import log_ndtr, ndtr

from raybo.acquisition.improvement import log_tau
from raybo.methods.parts.curve_data import at_step
from raybo.methods.parts.fitted_model import Transform, prediction_in_words
from raybo.methods.parts.initial_design import design_size, middle_proposal, sobol_proposal
from raybo.methods.parts.learning_curves import LEAST_STD, AtLastStep, FittedCurves, final_means, fit_curves, reported
from raybo.methods.parts.next_point import solve_apart
from raybo.methods.parts.trial_costs import TrialCosts, expected_seconds, per_cost, seconds_left
from raybo.record.events import Tags
from raybo.record.fidelity import Fidelity
from raybo.record.history import History, Proposal
from raybo.record.states import State
from raybo.space import Array
from raybo.surrogate import GP, structured_model

DESIGN = 10  # configurations, all but the first at the lowest fidelity
RIVALS = 10  # of the configurations that are known, how many may run at a higher fidelity
LOOK = "look"  # the tag of a proposal: its fidelity's share of a whole run
UNSURE = 0.5  # standard deviation of the logarithm of what a run takes, beside what the model says


def propose_at_fidelity(
    history: History, rng: np.random.Generator, initial: int | None, transform: Transform
) -> Proposal:
    """Return the next configuration and its fidelity; the arguments are those of `curves.propose_for_last_step`."""
    fidelity = history.fidelity
    assert fidelity is not None
    if len(history) < design_size(history, DESIGN, initial) or not reported(history):
        if all("origin" in record.tags for record in history.records):
            return middle_proposal(history, rng)
        is_last = history.planned is not None and history.planned - len(history) <= 1
        return replace(sobol_proposal(history, rng), fidelity=None if is_last else fidelity.low)
    model = structured_model((*history.cube.categorical, False), is_sum=True, has_fidelity=True, mean="constant")
    fit = fit_curves(history, transform, model=model)
    pending = [record for record in history.records if record.state is State.PENDING]
    rows = [at_step(record.x[None, :], _place(fidelity, record.fidelity)) for record in pending]
    gp = fit.gp.curves.believing(np.vstack(rows)) if rows else fit.gp.curves
    rivals = _rivals(history, fit)
    known = float(final_means(fit.gp, history).max())
    best = fit.incumbent
    if best == -math.inf:  # no whole run has ended
        if not any(record.fidelity is None for record in pending) and rivals:
            return _proposal(history, fit, rivals[0][0], None)
        best = known
    at_top = replace(fit, members=(AtLastStep(gp),), incumbent=best)
    found = solve_apart(
        "lbfgsb", per_cost(at_top.improvement(), history), history, rng, size=500, starts=4, near=fit.near
    )
    costs, worth = TrialCosts.of(history), list[tuple[float, int, Array, int | None]]()
    for i, (x, above, other) in enumerate([(found.x, 0, max(best, known)), *rivals]):
        levels = [level for level in fidelity.levels if level > above]
        if history.planned is not None and history.planned - len(history) <= 1:
            levels = levels[-1:]
        for level, value in zip(levels, _worth(history, gp, costs, x, levels, best, max(best, other)), strict=True):
            worth.append((value, -i, x, None if level == fidelity.high else level))
    chosen = max(worth, key=lambda each: each[:2])
    return _proposal(history, fit, *chosen[2:])


def _proposal(history: History, fit: FittedCurves, x: Array, level: int | None) -> Proposal:  # (d,)
    assert history.fidelity is not None
    look = round((level or history.fidelity.high) / history.fidelity.high, 6)
    return Proposal(x, {LOOK: look, **fit.prediction(x), **fit.tags}, fidelity=level)


def _rivals(history: History, fit: FittedCurves) -> list[tuple[Array, int, float]]:
    """Return the configurations that look best of those that have not run whole, best first.

    Each with its highest fidelity so far, and with the highest value expected of any other.
    """
    assert history.fidelity is not None
    highest = dict[bytes, int]()  # by configuration, as far as it has run or runs
    for record in history.records:
        key = record.x.tobytes()
        highest[key] = max(highest.get(key, 0), record.fidelity or history.fidelity.high)
    means = dict[bytes, tuple[float, Array]]()
    for number, mean in zip(reported(history), final_means(fit.gp, history).tolist(), strict=True):
        means[history.records[number].x.tobytes()] = mean, history.records[number].x
    order = sorted(means, key=lambda key: -means[key][0])
    first, second = means[order[0]][0], means[order[1]][0] if len(order) > 1 else -math.inf
    return [
        (means[key][1], highest[key], second if key == order[0] else first)
        for key in order
        if highest[key] < history.fidelity.high
    ][:RIVALS]


def _worth(
    history: History,
    gp: GP,
    costs: TrialCosts | None,
    x: Array,
    levels: list[int],
    best: float,
    other: float,
) -> list[float]:
    """Return what is gained by running a configuration at each of these levels for what it takes, as logarithms.

    Args:
        history: what is known.
        gp: over configuration and fidelity.
        costs: of the trials; None if they are not known.
        x: (d,), the configuration.
        levels: ascending; the last is a whole run.
        best: of the whole runs.
        other: the highest value that is known or expected of any other configuration.
    """
    assert history.fidelity is not None
    points = np.vstack([at_step(x[None, :], history.fidelity.place(level)) for level in levels])
    mean, cov = gp.joint(points)
    var = np.maximum(np.diag(cov), LEAST_STD**2)
    whole = expected_seconds(costs, history, x, None)
    found = []
    for i, level in enumerate(levels):
        is_whole = level == history.fidelity.high
        moved = math.sqrt(var[i]) if is_whole else abs(cov[i, -1]) / math.sqrt(var[i] + gp.noise_variance)
        moved, above = max(moved, LEAST_STD), best if is_whole else other
        z = (mean[-1] - above) / moved
        seconds = expected_seconds(costs, history, x, level)
        spent = seconds if is_whole else seconds + float(ndtr(z)) * whole
        value = math.log(moved) + float(log_tau(np.array([z]))[0]) - (1.0 - history.used_share) * math.log(spent)
        if history.budget is not None:
            needed = seconds if is_whole else seconds + whole
            value += float(log_ndtr((math.log(max(seconds_left(history), 1e-3)) - math.log(needed)) / UNSURE))
        found.append(value)
    return found


def _place(fidelity: Fidelity, level: int | None) -> float:
    return 1.0 if level is None else fidelity.place(level)


def explain_fidelity(tags: Tags) -> str:
    """Return why a configuration and its fidelity were proposed; empty if these are not the tags of such a proposal."""
    if LOOK not in tags:
        return ""
    what = "a whole run" if tags[LOOK] == 1.0 else f"a look at {100 * tags[LOOK]:.3g} % of a whole run"
    return f"{what}, the most gain for its time: as a whole run, {prediction_in_words(tags)}"
