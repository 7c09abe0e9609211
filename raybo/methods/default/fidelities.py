"""The proposals of `auto` for a job with cheap versions: which configuration next, and at which fidelity.

A ladder of fidelities, each of which costs at most a quarter of the next, up to a whole run: only these are used. What
they cost is learnt from the trials, and is in proportion to the fidelity until two have ended. If no fidelity saves
as much, proposals are those of a job without cheap versions.

- The first configuration is in the middle of the space and runs whole, and then at the lowest fidelity, which shows
  what that saves. The others of the design, Sobol points, run at the lowest rung, until they have taken as long as two
  whole runs.
- From then on, as in successive halving: if a configuration is among the best third of those that have reached its
  rung, it runs at the next one. The highest rung is looked at first. Which are best is judged by the value expected of
  a whole run.
- If there is none, a new configuration runs at the lowest rung. It has the highest expected improvement for its cost or
  the highest upper bound of two standard deviations, of a whole run, one or the other by chance; for the bound, what
  waits is believed to end as expected.
- The configuration that looks best runs whole at once if no whole run has come to a value, or if looks have taken as
  long as two whole runs since the last one.
- At the end of a budget, when two more whole runs do not fit, and if one trial is left of those planned: a whole run of
  the highest expected improvement, of the new configuration or of those that look best; what cannot end in time is
  avoided.

The model is that of learning curves, one Gaussian process over configuration and fidelity (`parts.learning_curves`),
with a sum of functions of one axis each: what a fidelity adds to all values alike, and what holds at every fidelity.
Fidelities are expected to be much alike until the results say otherwise.

Ours; promotion is that of Li et al. (2020), see `schedulers.asha`, whose looks go on in the same trial, and by what was
measured. Models over configuration and fidelity: Kandasamy, Dasarathy, Schneider, Poczos (2017), "Multi-fidelity
Bayesian Optimisation with Continuous Approximations" (BOCA), arXiv:1703.06240.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.special import log_ndtr

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
from raybo.surrogate import structured_model

SAVES = 0.25  # of the cost of a rung, at most, is that of the rung below
ETA = 3  # one in so many goes on to the next rung, see RULES
DESIGN = 10  # configurations, all but the first at the lowest rung
DESIGN_COST = 2.0  # whole runs, whose time the looks of the design may take
EVERY = 2.0  # whole runs, whose time looks may take between two whole runs
END = 2.0  # whole runs that must fit into what is left for another look
OPTIMISM = 2.0  # standard deviations
BOUNDS = 0.5  # share of the new configurations that have the highest bound
RIVALS = 10  # configurations that look best, of which the last whole run is chosen
UNSURE = 0.5  # standard deviation of the logarithm of what a run takes, beside what the model says
LOOK = "look"  # the tag of a proposal: its fidelity's share of a whole run
BECAUSE = "look_because"  # the tag of the rule that proposed it
RULES = {
    "new": "a new configuration",
    "best": "among the best third of its level",
    "due": "it looks best, and a whole run is due",
    "end": "the end is near",
}


@dataclass(frozen=True, eq=False)
class Seen:
    """A configuration that has come to a value, at whatever fidelity.

    Attributes:
        x: (d,). mean: the value expected of a whole run. highest: fidelity at which it has run or runs.
    """

    x: Array
    mean: float
    highest: int


def propose_at_fidelity(
    history: History, rng: np.random.Generator, initial: int | None, transform: Transform
) -> Proposal | None:
    """Return the next configuration and its fidelity; None if no fidelity saves enough.

    The arguments are those of `curves.propose_for_last_step`.
    """
    fidelity = history.fidelity
    assert fidelity is not None
    proposed = [record for record in history.records if "origin" not in record.tags]
    is_last = history.planned is not None and history.planned - len(history) <= 1
    if not proposed:
        return middle_proposal(history, rng)
    if len(proposed) == 1 and not is_last:
        return Proposal(proposed[0].x, {"middle": True}, in_design=True, fidelity=fidelity.low)
    costs = TrialCosts.of(history)
    rungs = ladder(history, costs)
    if len(rungs) == 1:
        return None
    size = design_size(history, DESIGN, initial)
    if not reported(history) or (len(history) < size and not _looks_cost(history, costs, DESIGN_COST)):
        return replace(sobol_proposal(history, rng), fidelity=None if is_last else rungs[0])
    model = structured_model((*history.cube.categorical, False), is_sum=True, has_fidelity=True, mean="constant")
    fit = fit_curves(history, transform, model=model)
    seen = _seen(history, fit)
    waiting = [each for each in seen if each.highest < fidelity.high]
    if waiting and _is_due(history, fit, costs, is_best=waiting[0] is seen[0]):
        return _proposal(history, fit, waiting[0].x, None, "due")
    if is_last or _is_near_end(history, costs, seen[0].x):
        points = [*(each.x for each in waiting[:RIVALS]), _new_point(history, fit, seen, waiting, rng)]
        best = seen[0].mean if fit.incumbent == -math.inf else fit.incumbent
        worth = [_worth(history, fit, costs, x, best) for x in points]
        return _proposal(history, fit, points[int(np.argmax(worth))], None, "end")
    for low, following in reversed(list(pairwise(rungs))):
        reached = [each for each in seen if each.highest >= low or low == rungs[0]]
        for each in reached[: len(reached) // ETA]:
            if each.highest < following:
                return _proposal(history, fit, each.x, None if following == fidelity.high else following, "best")
    return _proposal(history, fit, _new_point(history, fit, seen, waiting, rng), rungs[0], "new")


def ladder(history: History, costs: TrialCosts | None) -> list[int]:
    """Return the fidelities that are used, ascending, by what they cost for the first configuration."""
    assert history.fidelity is not None
    levels, x = history.fidelity.levels, history.records[0].x
    found = [expected_seconds(costs, history, x, level) for level in levels[:-1]]
    found = np.maximum.accumulate([*found, expected_seconds(costs, history, x, None)]).tolist()
    rungs = [len(levels) - 1]
    for i in reversed(range(len(levels) - 1)):
        if found[i] <= SAVES * found[rungs[-1]]:
            rungs.append(i)
    return [levels[i] for i in reversed(rungs)]


def _seen(history: History, fit: FittedCurves) -> list[Seen]:
    """Return the configurations that have come to a value, those that look best first."""
    assert history.fidelity is not None
    highest = dict[bytes, int]()
    for record in history.records:
        key = record.x.tobytes()
        highest[key] = max(highest.get(key, 0), record.fidelity or history.fidelity.high)
    found = dict[bytes, Seen]()
    for number, mean in zip(reported(history), final_means(fit.gp, history).tolist(), strict=True):
        x = history.records[number].x
        found[x.tobytes()] = Seen(x, mean, highest[x.tobytes()])
    return sorted(found.values(), key=lambda each: -each.mean)


def _looks_cost(history: History, costs: TrialCosts | None, runs: float, *, since_whole: bool = False) -> bool:
    """Return True if the looks, all or those since the last whole run, have taken the time of `runs` whole ones."""
    looks = list[float]()
    for record in reversed(history.records):
        if record.fidelity is not None:
            looks.append(expected_seconds(costs, history, record.x, record.fidelity))
        elif since_whole:
            break
    return sum(looks) >= runs * expected_seconds(costs, history, history.records[0].x, None)


def _is_due(history: History, fit: FittedCurves, costs: TrialCosts | None, *, is_best: bool) -> bool:
    """Return True if it is time for a whole run of the configuration that looks best of those that wait for one.

    Args:
        is_best: it looks best of all.
    """
    if fit.incumbent == -math.inf:  # no whole run has come to a value
        return not any(record.state is State.PENDING and record.fidelity is None for record in history.records)
    return is_best and _looks_cost(history, costs, EVERY, since_whole=True)


def _is_near_end(history: History, costs: TrialCosts | None, x: Array) -> bool:
    """Return True if the budget does not allow two more whole runs."""
    if history.budget is None or costs is None:
        return False
    return seconds_left(history) < END * expected_seconds(costs, history, x, None)


def _new_point(
    history: History, fit: FittedCurves, seen: list[Seen], waiting: list[Seen], rng: np.random.Generator
) -> Array:  # (d,)
    """Return the point of the highest improvement for its cost or of the highest bound, whichever is drawn."""
    assert history.fidelity is not None
    running = [record for record in history.records if record.state is State.PENDING]
    points = [at_step(record.x[None, :], _place(history.fidelity, record.fidelity)) for record in running]
    if is_bound := rng.random() < BOUNDS:
        points += [at_step(each.x[None, :], 1.0) for each in waiting]
    curves = fit.gp.curves.believing(np.vstack(points)) if points else fit.gp.curves
    at_top = replace(fit, members=(AtLastStep(curves),), incumbent=max(fit.incumbent, seen[0].mean))
    worth = at_top.bound(OPTIMISM) if is_bound else per_cost(at_top.improvement(), history)
    return solve_apart("lbfgsb", worth, history, rng, size=500, starts=4, near=fit.near).x


def _worth(history: History, fit: FittedCurves, costs: TrialCosts | None, x: Array, best: float) -> float:
    """Return the logarithm of what a whole run is expected to gain over the best value, if it ends in time."""
    mean, variance = fit.gp.posterior(x[None, :])
    std = max(math.sqrt(max(float(variance[0]), 0.0)), LEAST_STD)
    worth = math.log(std) + float(log_tau((mean - best) / std)[0])
    if history.budget is not None and costs is not None:
        ratio = seconds_left(history) / expected_seconds(costs, history, x, None)
        worth += float(log_ndtr(math.log(ratio) / UNSURE))
    return worth


def _proposal(history: History, fit: FittedCurves, x: Array, level: int | None, because: str) -> Proposal:  # (d,)
    assert history.fidelity is not None
    look = round((level or history.fidelity.high) / history.fidelity.high, 6)
    return Proposal(x, {LOOK: look, BECAUSE: because, **fit.prediction(x), **fit.tags}, fidelity=level)


def _place(fidelity: Fidelity, level: int | None) -> float:
    return 1.0 if level is None else fidelity.place(level)


def explain_fidelity(tags: Tags) -> str:
    """Return why a configuration and its fidelity were proposed; empty if these are not the tags of such a proposal."""
    if LOOK not in tags:
        return ""
    what = "a whole run" if tags[LOOK] == 1.0 else f"a look at {100 * tags[LOOK]:.3g}% of a whole run"
    return f"{what}, {RULES[tags[BECAUSE]]}: as a whole run, {prediction_in_words(tags)}"
