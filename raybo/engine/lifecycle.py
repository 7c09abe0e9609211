"""A trial's states and transitions: what happened in, what to do out. Pure; the study actor performs it.

    state     occurrence      next               instructions
    waiting   submitted       running            none
    running   returned        finished           record told, free the worker
    running   bad result      failed             record failed, free the worker
    running   raised          failed             record failed, free the worker
    running   over limit      failed             record failed, free the worker
    running   worker lost     waiting            record retried, submit again     while attempts are left
    running   worker lost     lost               record failed, free the worker   after the last attempt
    running   never began     waiting            record retried, submit again     a node was lost on its way there
    either    study lost      waiting            record retried, submit again     the process that ran it is gone
    either    stopped         stopped            record stopped, free the worker

Any other pair is a defect of the engine and raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from raybo.events import Kind


class Phase(str, Enum):
    """Where a trial stands in the engine."""

    WAITING = "waiting"  # asked and committed, not running
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    LOST = "lost"
    STOPPED = "stopped"


class Occurrence(str, Enum):
    """What can happen to a trial."""

    SUBMITTED = "submitted"
    RETURNED = "returned"
    BAD_RESULT = "bad result"
    RAISED = "raised"
    OVER_LIMIT = "over limit"
    WORKER_LOST = "worker lost"
    NEVER_BEGAN = "never began"
    STUDY_LOST = "study lost"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Step:
    """What follows: the next phase, the event to record, and whether to submit the trial again or free its worker."""

    phase: Phase
    record: Kind | None = None
    submit: bool = False
    free: bool = False


_AGAIN = Step(Phase.WAITING, Kind.RETRIED, submit=True)
_STEPS: dict[tuple[Phase, Occurrence], Step] = {
    (Phase.WAITING, Occurrence.SUBMITTED): Step(Phase.RUNNING),
    (Phase.RUNNING, Occurrence.RETURNED): Step(Phase.FINISHED, Kind.TOLD, free=True),
    (Phase.RUNNING, Occurrence.BAD_RESULT): Step(Phase.FAILED, Kind.FAILED, free=True),
    (Phase.RUNNING, Occurrence.RAISED): Step(Phase.FAILED, Kind.FAILED, free=True),
    (Phase.RUNNING, Occurrence.OVER_LIMIT): Step(Phase.FAILED, Kind.FAILED, free=True),
    (Phase.RUNNING, Occurrence.WORKER_LOST): _AGAIN,
    (Phase.RUNNING, Occurrence.NEVER_BEGAN): _AGAIN,
    (Phase.WAITING, Occurrence.STUDY_LOST): _AGAIN,
    (Phase.RUNNING, Occurrence.STUDY_LOST): _AGAIN,
    (Phase.WAITING, Occurrence.STOPPED): Step(Phase.STOPPED, Kind.STOPPED, free=True),
    (Phase.RUNNING, Occurrence.STOPPED): Step(Phase.STOPPED, Kind.STOPPED, free=True),
}
_GIVEN_UP = Step(Phase.LOST, Kind.FAILED, free=True)


def step(phase: Phase, occurrence: Occurrence, *, losses: int = 0, retries: int = 0) -> Step:
    """What follows an occurrence.

    Args:
        losses: how often a worker of this trial has been lost, this time included.
        retries: how often a lost worker's trial may start again.
    Raises:
        AssertionError: the occurrence is impossible in this phase.
    """
    if (phase, occurrence) not in _STEPS:
        raise AssertionError(f"a trial that is {phase.value} cannot meet {occurrence.value!r}")
    if occurrence is Occurrence.WORKER_LOST and losses > retries:
        return _GIVEN_UP
    return _STEPS[phase, occurrence]
