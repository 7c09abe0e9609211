"""Histories of reports, written down, for the tests of schedulers."""

from __future__ import annotations

from raybo.record.events import KINDS, Asked, Kind, Reported
from raybo.record.goals import Goals
from raybo.record.history import History
from raybo.space import Float, Space

CUBE = Space({"x": Float(0, 1), "z": Float(0, 1)}).cube


def empty(steps, sign=1.0):
    """A history of nothing."""
    return History(CUBE, Goals(modes=("max" if sign > 0 else "min",)), steps=steps)


def ask(history, x=(0.5, 0.5)):
    """One more trial; its number."""
    number = len(history)
    history.apply(Asked(number, x=list(map(float, x)), tags={}))
    return number


def report(history, trial, value, step):
    """Return a trial's value at a step, in the user's sign."""
    history.apply(Reported(trial, attempt=1, step=step, value=float(value)))


def end(history, trial, kind=Kind.TOLD, **data):
    """End a trial, or pause it; by default it finishes with its last report."""
    if kind is Kind.TOLD and not data:
        data = {"value": history.value_of(history.records[trial].reports[-1][1])}
    history.apply(KINDS[kind].of(trial, data))


def follow(history, trial, scheduler, action, step):
    """Perform a verdict on a trial."""
    if action == "prune":
        end(history, trial, Kind.PRUNED, step=step)
    elif action == "pause":
        end(history, trial, Kind.PAUSED, step=step)
    elif step == history.steps:
        end(history, trial)


def curve(history, values, x=(0.5, 0.5), steps=None):
    """Add a trial with these reports, by default at steps 1, 2, ...; return its number."""
    trial = ask(history, x)
    for step, value in zip(steps or range(1, len(values) + 1), values, strict=True):
        report(history, trial, value, step)
    return trial
