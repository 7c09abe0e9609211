"""What a worker of a study does next, and what is done ahead of time for it. Pure; the loop performs it.

    what        when, the first that holds
    leave       more workers are open than trials are to be in flight
    leave       the study is being stopped: what has not been submitted stays as it is, for the next loop
    resume      a trial was in flight when the last loop of this study was lost, the user has named it, or it had failed
                and is wanted again
    promote     a paused trial is to go on
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
    """What a worker does next."""

    RESUME = "resume"
    PROMOTE = "promote"
    PROPOSE = "propose"
    LEAVE = "leave"


class Ahead(Enum):
    """What is done ahead while trials run."""

    TRIAL = "trial"
    PROPOSAL = "proposal"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Situation:
    """What a worker's next step depends on.

    Attributes:
        room: how many trials run at a time.
        interrupted: how many trials of the last loop, of those that the user has named, and of those that had failed,
            are still to be run.
        is_stopping: whether the study ends before its end.
        has_asked_enough: whether no trial more is wanted.
        is_proposing: whether a worker is waiting for a proposal now.
        promotes: whether a paused trial is to go on.
    """

    room: int
    interrupted: int = 0
    is_stopping: bool = False
    has_asked_enough: bool = False
    is_proposing: bool = False
    promotes: bool = False


def max_in_flight(room: int, timings: Timings) -> int:
    """How many trials are given to Ray at a time: those that run, and where workers would wait for the next, more."""
    return room + timings.waiting(room)


def turn(worker: int, now: Situation, timings: Timings) -> Turn:
    """What this worker, numbered from 0, does next."""
    if worker >= max_in_flight(now.room, timings) or now.is_stopping:
        return Turn.LEAVE
    if now.interrupted:
        return Turn.RESUME
    if now.promotes:
        return Turn.PROMOTE
    return Turn.LEAVE if now.has_asked_enough else Turn.PROPOSE


def ahead(now: Situation, timings: Timings) -> Ahead:
    """What to have ready, while trials run, of what workers would wait for."""
    if timings.is_short():
        return Ahead.TRIAL
    if timings.is_hurried() and not (now.is_proposing or now.has_asked_enough):
        return Ahead.PROPOSAL
    return Ahead.NOTHING
