"""Decides a worker's next action, and what is done ahead of time for it. Pure; the loop performs it.

    what        if; the first that holds
    leave       more workers are open than trials are to be in flight
    leave       the study is being stopped: trials that have not been submitted are left to the next loop
    resume      a trial was in flight when the last loop of this study was lost, was enqueued by the user, or had failed
                and is wanted again
    promote     a paused trial is to continue
    leave       enough trials have been asked for
    propose     otherwise

While trials run, the next one waits in Ray's queue if trials are short, and its proposal is made ahead of time if
workers would have to wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from raybo.engine.study.timings import Timings


class Turn(Enum):
    """A worker's next action."""

    RESUME = "resume"
    PROMOTE = "promote"
    PROPOSE = "propose"
    LEAVE = "leave"


class Ahead(Enum):
    """An action ahead of time, while trials run."""

    TRIAL = "trial"
    PROPOSAL = "proposal"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Situation:
    """The facts on which a worker's next action depends.

    Attributes:
        room: how many trials run at a time.
        interrupted: how many trials are to run before any new one: left by the last loop, enqueued, or failed and
            wanted again.
        is_stopping: whether the study is being stopped.
        has_asked_enough: whether no more trials are wanted.
        is_proposing: whether a worker is waiting for a proposal now.
        promotes: whether a paused trial is to continue.
    """

    room: int
    interrupted: int = 0
    is_stopping: bool = False
    has_asked_enough: bool = False
    is_proposing: bool = False
    promotes: bool = False


def max_in_flight(room: int, timings: Timings) -> int:
    """Return how many trials Ray has at a time: those that run, and more if workers would wait for the next."""
    return room + timings.waiting(room)


def turn(worker: int, now: Situation, timings: Timings) -> Turn:
    """Return the next step of a worker, numbered from 0."""
    if worker >= max_in_flight(now.room, timings) or now.is_stopping:
        return Turn.LEAVE
    if now.interrupted:
        return Turn.RESUME
    if now.promotes:
        return Turn.PROMOTE
    return Turn.LEAVE if now.has_asked_enough else Turn.PROPOSE


def ahead(now: Situation, timings: Timings) -> Ahead:
    """Return the work to prepare while trials run, as workers would wait for it."""
    if timings.is_short():
        return Ahead.TRIAL
    if timings.is_hurried() and not (now.is_proposing or now.has_asked_enough):
        return Ahead.PROPOSAL
    return Ahead.NOTHING
