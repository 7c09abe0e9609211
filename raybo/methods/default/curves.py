"""How `auto` goes on where trials are ended early: a model of configuration and step at once, asked for the last step.

- One Gaussian process of curves (`surrogate.curves`): where each ends, what all do on their way, and what each does
  beside that. So what is seen early and cheaply of one configuration tells of another one's end. After Freeze-thaw
  (Swersky, Snoek, Adams, 2014, arXiv:1406.3896) and MOBSTER (Klein, Tiao, Lienart, Archambeau, Seeger, 2020,
  arXiv:2003.10865).
- It sees values in the units of the last step (`alignment`), made normal as the ends are that they promise.
- Of a trial the first report of each octave of steps counts, and the last: neighbours say the same twice. A finished
  trial is at the last step with its value, a failed one with the worst.
- The design is twice as long as elsewhere while its trials are ended cheaply: which hill is climbed is decided there.
- The next point maximises an upper bound of two standard deviations at the last step: early steps make the model surer
  than it should be. A pruned configuration that is expected to beat every finished one is run again instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from raybo.acquisition import UpperConfidence
from raybo.events import State, Tags
from raybo.history import History, Proposal, Record
from raybo.methods.apart import solve_apart
from raybo.methods.default.alignment import Line, Seen, lines
from raybo.methods.design import design_size, sobol_proposal
from raybo.methods.refits import AFRESH, is_kept
from raybo.space import Array
from raybo.surrogate import (
    CurvePoints,
    EndsOfCurves,
    Outputs,
    Standardised,
    Tamed,
    fit_curves,
    start_of_curves,
)

DESIGN = 10  # points
CHEAP_DESIGN = 20  # of them, as long as they have taken fewer steps than CHEAP whole runs
CHEAP = 2
LOOK = 13  # of a run, the part that a point of the design takes at least
ELSEWHERE = 0.2  # of all steps
OPTIMISM = 2.0  # standard deviations
ROWS = 600  # of all trials: where there are more, only the last report of each counts, of the newest and the best
FITTED_ROWS = 300
CUT = (State.PRUNED, State.PAUSED, State.STOPPED)  # they reported, and somebody ended or halted them
THETA = "curves"  # the tag that keeps the hyperparameters


@dataclass(frozen=True, eq=False)
class Ends:
    """What is expected of the ends of all trials that have reported or finished.

    Attributes:
        points: all that is known, in the units of `outputs`. gp: conditioned on them.
        outputs: from the maximised values to those units.
        trials: their numbers. mean, var: (k,) of the last step of each.
        incumbent: the best finished value in those units; -inf where none has finished.
        theta: the hyperparameters.
    """

    points: CurvePoints
    gp: EndsOfCurves
    outputs: Outputs
    trials: tuple[int, ...]
    mean: Array
    var: Array
    incumbent: float
    theta: Array


def has_cut_curves(history: History) -> bool:
    """Whether a trial was ended or halted on its way, so that there are curves to model."""
    return len(history.reports_in_order) > 0 and any(r.state in CUT and r.reports for r in history.records)


def propose_for_last_step(history: History, rng: np.random.Generator, initial: int | None, *, plain: bool) -> Proposal:
    """The design; then a pruned configuration that is worth a whole run, or the point of the highest bound at the end.

    Args:
        history: with curves.
        rng: for the search.
        initial: points of the design; None for the usual.
        plain: whether values are only standardised.
    """
    if len(history) < design_size(history, _design(history), initial) or _looks_elsewhere(history):
        return sobol_proposal(history, rng)
    ends = expected_ends(history, plain=plain)
    kept: Tags = {THETA: ends.theta.tolist()}
    if (again := worth_running_again(history, ends)) is not None:
        place = ends.trials.index(again)
        told = {"mean": float(ends.mean[place]), "std": math.sqrt(ends.var[place])}
        return Proposal(history.records[again].x, {"again": again, **told, **kept})
    gp = EndsOfCurves.of(ends.points, ends.theta, history.X_pending)
    best = history.records[ends.trials[int(np.argmax(ends.mean))]].x
    found = solve_apart("lbfgsb", UpperConfidence(gp, OPTIMISM), history, rng, size=1_000, starts=8, near=best[None, :])
    mean, var = gp.posterior(found.x[None, :])
    told = {"mean": float(mean[0]), "std": math.sqrt(var[0])}
    return Proposal(found.x, {"acquisition": "ucb", **told, **kept})


def expected_ends(history: History, *, plain: bool = False, refit: bool = True) -> Ends:
    """The model of all curves.

    Args:
        history: with at least one report.
        plain: whether values are only standardised.
        refit: whether the hyperparameters are estimated anew, unless there are none yet.
    """
    numbers = tuple(t for t, r in enumerate(history.records) if not r.has_failed and (r.reports or r.y is not None))
    records = [history.records[t] for t in numbers]
    rows = [list(_octaves(record)) for record in records]
    outputs: Outputs = (Standardised if plain else Tamed).of(_last_values(records))
    promised, _ = _aligned(records, rows, outputs)
    outputs = (Standardised if plain else Tamed).of(outputs.invert(promised))  # as the ends are, not the last reports
    promised, by_step = _aligned(records, rows, outputs)
    points = _points(history, records, rows, outputs, by_step)
    d = history.d
    last = history.last_tag(THETA)
    theta = None if last is None or len(last) != len(start_of_curves(d)) else np.array(last)
    if theta is None or (refit and not is_kept(history, len(points.y))):
        starts = [] if theta is None else [theta]
        if theta is None or len(history) % AFRESH == 0:
            starts.append(start_of_curves(d))
        theta = fit_curves(points, starts, at_most=FITTED_ROWS)
    gp = EndsOfCurves.of(points, theta)
    mean, var = gp.posterior(np.array([r.x for r in records]))
    finished = [r.y for r in records if r.y is not None]
    incumbent = float(outputs.apply(np.array([max(finished)]))[0]) if finished else -math.inf
    return Ends(points, gp, outputs, numbers, mean, var, incumbent, theta)


def worth_running_again(history: History, ends: Ends) -> int | None:
    """The pruned trial that is expected to beat whatever has finished; None where there is none.

    Whoever was run again is not a second time, and nobody is any more where one of these was ended no later than it had
    been: that rule does not look at the whole. Until one has finished only one at a time is.
    """
    again = [record for record in history.records if "again" in record.tags]
    if any(record.state is State.PRUNED and record.step <= _first_time(history, record).step for record in again):
        return None
    if ends.incumbent == -math.inf and any(record.state is State.PENDING for record in again):
        return None
    known = {record.x.tobytes() for record in history.records if record.state is not State.PRUNED}
    known |= {record.x.tobytes() for record in again}
    places = [
        place
        for place, trial in enumerate(ends.trials)
        if history.records[trial].state is State.PRUNED and history.records[trial].x.tobytes() not in known
    ]
    best = max(places, key=lambda place: ends.mean[place], default=None)
    return None if best is None or ends.mean[best] <= ends.incumbent else ends.trials[best]


def _first_time(history: History, again: Record) -> Record:
    return history.records[again.tags["again"]]


def explain_curves(tags: Tags) -> str:
    """Why a point was proposed; empty where these are not tags of a proposal for the last step."""
    if THETA not in tags:
        return ""
    expects = f"at the last step, expects {tags['mean']:+.2f} sd, uncertain by {tags['std']:.2f}"
    if "again" in tags:
        return f"trial {tags['again']} again, which was pruned and looks best by now: {expects}"
    return f"upper confidence bound {expects}"


def _design(history: History) -> int:
    """How many points are spread at first."""
    assert history.steps is not None
    is_cheap = sum(record.step for record in history.records) < CHEAP * history.steps
    return CHEAP_DESIGN if is_cheap else DESIGN


def _looks_elsewhere(history: History) -> bool:
    """Whether the design goes on with another point, as its points have had less than their share of all steps.

    One that has just been asked for counts as looked at.
    """
    assert history.steps is not None
    look = history.steps / LOOK
    spent = [max(look, record.step) if "sobol" in record.tags else 0.0 for record in history.records]
    return sum(spent) < ELSEWHERE * sum(record.step for record in history.records)


def _last_values(records: Sequence[Record]) -> Array:  # (n,)
    return np.array([r.y if r.y is not None else r.reports[-1][1] for r in records], dtype=np.float64)


def _aligned(
    records: Sequence[Record], rows: Sequence[Sequence[tuple[int, float]]], outputs: Outputs
) -> tuple[Array, dict[int, Line]]:  # (n,)
    """What the last value of each trial promises of its end, and the line of every step, in the units of `outputs`."""
    curves = [
        Seen(
            [step for step, _ in record.reports],
            outputs.apply(np.array([value for _, value in record.reports], dtype=np.float64)),
            None if record.y is None else float(outputs.apply(np.array([record.y]))[0]),
        )
        for record in records
    ]
    by_step = lines(curves, [step for seen in rows for step, _ in seen])
    promised = [
        by_step[curve.steps[-1]].at(curve.values[-1:])[0] if curve.end is None else curve.end for curve in curves
    ]
    return np.array(promised), by_step


def _points(
    history: History,
    records: list[Record],
    rows: list[list[tuple[int, float]]],
    outputs: Outputs,
    by_step: dict[int, Line],
) -> CurvePoints:
    """What counts of the trials: where on the axis of steps, and the value there in units of the end."""
    seen = []
    for record, reports in zip(records, rows, strict=True):
        values = outputs.apply(np.array([value for _, value in reports], dtype=np.float64))
        found = [
            (_place(step, history.steps), float(by_step[step].at(values[[i]])[0]))
            for i, (step, _) in enumerate(reports)
            if record.y is None or step < record.step
        ]
        if record.y is not None:
            found.append((1.0, float(outputs.apply(np.array([record.y]))[0])))
        seen.append(found)
    X = [record.x for record in records]
    if sum(map(len, seen)) > ROWS:
        seen = [found[-1:] for found in seen]
        last = np.array([value for ((_, value),) in seen])
        kept = np.union1d(np.argsort(-last, kind="stable")[: ROWS // 5], np.arange(max(0, len(seen) - ROWS), len(seen)))
        X, seen = [X[i] for i in kept], [seen[i] for i in kept]
    s, y = np.array([point for found in seen for point in found]).T
    repeated = np.repeat(np.array(X), [len(found) for found in seen], axis=0)
    failed = history.X_failed[-ROWS // 5 :]
    points = CurvePoints(repeated, s, y, tuple(history.cube.categorical))
    return points.with_ends(failed, np.full(len(failed), y.min())) if len(failed) else points


def _octaves(record: Record) -> Iterator[tuple[int, float]]:
    """The first report from step 2 on, the first from twice as far, and so on; and the last."""
    due = 2
    for step, y in record.reports:
        if step >= due or step == record.step:
            yield step, y
            while due <= step:
                due *= 2


def _place(step: int, steps: int | None) -> float:
    """Where a step lies between the first and the last, on a logarithmic axis."""
    assert steps is not None
    return min(1.0, math.log(step) / math.log(steps)) if steps > 1 else 1.0
