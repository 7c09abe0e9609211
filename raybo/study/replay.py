"""Proposes every trial of a study again, and judges its reports again, from its journal alone.

It shows that each proposal and each verdict followed from what it had seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raybo.methods.method import EXPECTS
from raybo.record.events import Asked, Paused, Pruned, Reported, Resumed, Told
from raybo.record.ledger import Ledger
from raybo.record.origin import Origin
from raybo.searcher import Searcher
from raybo.searcher.named import given_row
from raybo.study.study import Study, require_study

ROUNDING = 1e-6  # relative: other processors and versions of numpy were seen to differ by 3e-12 at most


@dataclass(frozen=True)
class Replayed:
    """One trial proposed again.

    Attributes:
        trial: its number.
        differs: what is not as it was: "x", "tags", "fidelity", or several; empty where the proposal is the same.
        is_rounding: whether only last digits differ, as on another processor or under another version of numpy.
        distance: how far the point is from the recorded one, on the axis where it is furthest; axes have length 1.
        tags: names of the tags that differ by more than rounding.
    """

    trial: int
    differs: tuple[str, ...]
    is_rounding: bool = False
    distance: float = 0.0
    tags: tuple[str, ...] = ()


def replay(study: Study) -> Iterator[Replayed]:
    """Propose each trial again after the events that it had seen, in order; those that a user named are left out.

    Of a configuration that a user enqueued in part, the rest is proposed again.

    Proposals are the same to the last digit on the machine that made them. Other processors and other versions of numpy
    or scipy may round otherwise.
    """
    require_study(study, "replay")
    searcher = Searcher.of(study.description)
    ahead = iter(study.events)
    for asked in study.events:
        if not isinstance(asked, Asked):
            continue
        is_partial = asked.origin is Origin.ENQUEUED and "given" in asked.tags
        if not is_partial and asked.origin not in (None, Origin.PRIOR):
            continue
        while searcher.ledger.last_event < asked.seen:
            searcher.apply(next(ahead))
        if is_partial:
            again = searcher.enqueued(searcher.history, given_row(study.space, asked), spent=asked.spent)
        else:
            again = searcher.propose(searcher.history, asked.context_in(study.context), spent=asked.spent)
        yield _compared(again, asked)


def _compared(again: Asked, asked: Asked) -> Replayed:
    if EXPECTS not in asked.tags:  # a journal of an earlier version; it says why, and no method reads it
        again = replace(again, tags={name: tag for name, tag in again.tags.items() if name != EXPECTS})
    names = again.tags.keys() | asked.tags.keys()
    tags = tuple(sorted(name for name in names if not _are_near(again.tags.get(name), asked.tags.get(name))))
    pairs = {
        "x": (again.x, asked.x),
        "tags": (again.tags, asked.tags),
        "fidelity": (again.fidelity, asked.fidelity),
    }
    differs = tuple(name for name, (now, then) in pairs.items() if now != then)
    return Replayed(
        asked.trial,
        differs,
        is_rounding=bool(differs) and not tags and again.fidelity == asked.fidelity and _are_near(again.x, asked.x),
        distance=float(np.max(np.abs(again.point - asked.point), initial=0.0)),
        tags=tags,
    )


def _are_near(now: Any, then: Any) -> bool:
    """True if two values of JSON differ by rounding at most."""
    if isinstance(now, dict) and isinstance(then, dict):
        return now.keys() == then.keys() and all(_are_near(now[key], then[key]) for key in now)
    if isinstance(now, list) and isinstance(then, list):
        return len(now) == len(then) and all(map(_are_near, now, then))
    if isinstance(now, float) and isinstance(then, float):
        return now == then or math.isclose(now, then, rel_tol=ROUNDING, abs_tol=ROUNDING * 1e-3)
    return bool(now == then)


@dataclass(frozen=True)
class Judged:
    """One verdict given again.

    Attributes:
        trial: whose.
        step: after which step.
        verdict: what it is now: "go", "prune", "pause", or "resume".
        recorded: what it was.
    """

    trial: int
    step: int
    verdict: str
    recorded: str


def replay_verdicts(study: Study) -> Iterator[Judged]:
    """Judge each report again on which a verdict could be given, after the events that there were, in order.

    That a paused trial goes on is checked likewise. What users ended themselves is left out, and so are reports that a
    constraint judged in the scheduler's place, and the last report of a trial that was stopped or lost before it was
    told a verdict.
    """
    rule = Searcher.of(study.description).rule
    if rule is None:
        return
    given = {
        (event.trial, event.seen): _action(event)
        for event in study.events
        if isinstance(event, (Pruned, Paused)) and event.rule == rule.name
    }
    later = (Told, Pruned, Paused)  # which show, as a later report does, that there was an answer to those before
    answered = {event.trial: event.number for event in study.events if event.report or isinstance(event, later)}
    ledger = Ledger(study.space, study.goals, study.context, study.steps, rule.metric, study.history.generation)
    for event in study.events:
        if isinstance(event, Resumed):
            now = rule.promoted(ledger.history)
            yield Judged(event.trial, event.step or 0, "resume" if now == event.trial else "pause", "resume")
        ledger.apply(event)
        if isinstance(event, Reported) and not event.repeated and rule.can_judge(ledger.history, event.trial):
            trial = event.trial
            is_answered = answered[trial] > event.number and not event.broken(study.goals)
            recorded = given.get((trial, event.number), "go" if is_answered else None)
            if recorded is not None:
                verdict = rule.verdict(ledger.history, trial)
                yield Judged(trial, event.step, verdict.action, recorded)


def _action(verdict: Pruned | Paused) -> str:
    return "pause" if isinstance(verdict, Paused) else "prune"
