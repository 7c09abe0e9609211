"""Judges the first points that earlier studies led to by this study's own results.

They hold if the best of them is better than the median of the design, which no result has chosen; where there is no
design, of the other trials. While they hold, they take the place of as many points of the design. Otherwise no more of
them follow, the design is as long as it is without them, and methods are not shown their values: one value far below
all others among the first few costs a model more than it tells it. So what misleads costs the trials that it has led
to, and no more.

Where each of the studies lacks more than a quarter of the parameters, they have one first point, and methods are not
shown its value, though it holds: it lies where those studies held what they do not know, and a search that is drawn
there may not leave. So it costs its one trial at most.

If a configuration of an earlier study gives the same value again, to the digit, the study was of the very same job, and
methods are shown its results as if they were this study's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raybo.record.events import EarlierStudy, Told
from raybo.record.history import History
from raybo.record.origin import Origin
from raybo.record.record_table import RecordTable
from raybo.record.states import State
from raybo.record.trial import Record

RULE = 4  # version of the rule of first points; studies begun by an earlier one go on by it
MINDED_SINCE = 3  # the rule from which it matters that studies know too few parameters
JUST_SINCE = 4  # the rule from which nothing follows of a trial that was stopped, and no good of one that is infeasible
LACKED = 0.25  # share of the parameters; studies that each lack more of them know too little
SEVERAL = 3  # studies that vouch for a first point; one or two are a gamble, and have one, but never a further one
MOST = 3  # first points that are tried whatever comes
DESIGN = {"middle", "sobol"}  # tags of its points
SAME = 1e-6  # of the standard deviation of a study's values: within it, two of them are the same to the digit


def rule(history: History) -> int:
    """Return the version of the rule of first points: that of the earliest prior."""
    return min(prior.first_points for prior in history.priors)


def tried_whatever_comes(history: History) -> int:
    """Return at how many first points trials are made before it is known whether they hold."""
    if rule(history) == 1 or know_too_little(history):
        return 1
    return max(1, min(len(history.priors) // SEVERAL, MOST))


def have_further(history: History) -> bool:
    """Return True if one more first point follows where the first ones hold."""
    return len(history.priors) >= SEVERAL and not know_too_little(history)


def know_too_little(history: History) -> bool:
    """Return True if each earlier study lacks much of what this one varies, and that matters by the rule."""
    if not history.priors or rule(history) < MINDED_SINCE:
        return False
    varied = {axis for axis, levels in enumerate(history.cube.levels) if levels is None or len(levels) > 1}
    return all(len(varied - set(prior.axes)) > LACKED * len(varied) for prior in history.priors)


def led(history: History) -> list[Record]:
    """Return the trials at points that earlier studies led to, without those that were stopped, by the rule."""
    return [record for record in history.records if _is_led(record) and not _says_nothing(record, history)]


def hold(history: History) -> bool | None:
    """Return True if the points that earlier studies led to hold, None while that is not known."""
    if not history.priors:
        return None
    theirs = [record for record in led(history) if record.has_ended]
    ended = [record for record in history.records if record.has_ended and not _says_nothing(record, history)]
    own = [record for record in ended if not _is_led(record)]
    others = [record for record in own if DESIGN & record.tags.keys()] or own
    if not theirs or not others:
        return None
    step, is_just = _common_step([*theirs, *others]), rule(history) >= JUST_SINCE
    return max(_value(record, step, is_just) for record in theirs) > float(
        np.median([_value(record, step, is_just) for record in others])
    )


def _says_nothing(record: Record, history: History) -> bool:
    """Return True if a trial was stopped before its end, and is not only shown so to methods."""
    was_stopped = record.state is State.STOPPED and not isinstance(record.outcome, Told)
    return was_stopped and bool(history.priors) and rule(history) >= JUST_SINCE


def misled(history: History) -> int:
    """Return how many points earlier studies have led to in vain."""
    return len(led(history)) if hold(history) is False else 0


def as_methods_see_it(history: History) -> History:
    """Return a history with the results of the very same job, and without what earlier studies led to in vain."""
    prior = same_job(history)
    if prior is None:
        return without_misleading(history)
    known = zip(prior.X, prior.results, strict=False)  # those that failed come last, and have no result
    added = {(record.x.tobytes(), record.y) for record in history.records if _is_added(record, history)}
    entered = [
        Record(x, {"origin": Origin.ADDED.value}, State.FINISHED, y) for x, y in known if (x.tobytes(), y) not in added
    ]
    other = history.copy()
    other.records = RecordTable(history.d, [*entered, *history.records])
    return other


def same_job(history: History) -> EarlierStudy | None:
    """Return the earlier study that was of the very same job: a value of its came out the same; None if none was."""
    if history.reports_in_order:
        return None
    return next((prior for prior in history.priors if prior.results and _comes_out_the_same(prior, history)), None)


def _comes_out_the_same(prior: EarlierStudy, history: History) -> bool:
    """Return True if each configuration that both studies ran has the same value in both, and in no other trial.

    A value that other configurations have too, such as an accuracy of 1, says nothing, and is passed over.
    """
    X, y = prior.X[: len(prior.results)], np.array(prior.results)
    within, says = SAME * float(y.std()), False
    for record in history.records:
        if _is_added(record, history):  # from that study itself, perhaps
            continue
        at = np.abs(X - record.x).max(axis=1) < SAME
        if record.y is None or not at.any():
            continue
        if (np.abs(y[at] - record.y) > within).any():
            return False
        says |= not (np.abs(y[~at] - record.y) <= within).any()
    return says


def _is_added(record: Record, history: History) -> bool:
    """Return True if a result was added and that is minded, by the rule."""
    return record.tags.get("origin") == Origin.ADDED and rule(history) >= JUST_SINCE


def without_misleading(history: History) -> History:
    """Return a history without the values at points that earlier studies have led to in vain, as of stopped trials.

    Those of studies that know too little are left out though they hold. As long as it is not known whether
    they do, once they have all been asked for, they are left out too, for the method to make a design by which they are
    judged.
    """
    held = hold(history)
    is_open = held is None and (rule(history) == 1 or len(led(history)) < tried_whatever_comes(history))
    if is_open or (held and not know_too_little(history)):
        return history
    other, records = history.copy(), [_stopped(record) if _is_led(record) else record for record in history.records]
    other.records = RecordTable(history.d, records)
    return other


def _stopped(record: Record) -> Record:
    """Return a finished trial as if it had been stopped before it said anything."""
    if record.state is not State.FINISHED:
        return record
    return replace(record, state=State.STOPPED, y=None, Y=None, margins=None, reports=(), curves=(), early=None)


def _is_led(record: Record) -> bool:
    return record.tags.get("origin") == Origin.PRIOR


def _common_step(records: Sequence[Record]) -> int | None:
    """Return the last step that all trials with reports have reached; None if no trial was pruned."""
    if not any(record.state is State.PRUNED for record in records):
        return None
    return min((record.step for record in records if record.reports), default=None)


def _value(record: Record, step: int | None, is_just: bool) -> float:
    """Return a trial's value, or what it had reported by a step, maximised.

    Args:
        is_just: whether a trial that breaks a constraint counts as the worst, as one without a value does.
    """
    if is_just and record.margins is not None and (record.margins < 0.0).any():
        return -math.inf
    value = record.y if step is None else next((y for at, y in reversed(record.reports) if at <= step), None)
    return -math.inf if value is None else value
