"""A trial's states and transitions: an occurrence in, instructions out. Pure; a study's loop performs them.

    state     occurrence      next               instructions
    waiting   submitted       running            none
    running   returned        finished           record told, free the worker
    running   bad result      failed             record failed, free the worker
    running   raised          failed             record failed, free the worker
    running   over limit      failed             record failed, free the worker
    running   out of memory   failed             record failed, free the worker
    running   worker lost     waiting            record retried, submit again     while attempts are left
    running   worker lost     lost               record failed, free the worker   after the last attempt
    running   preempted       waiting            record retried, submit again     its node was lost as announced
    running   never began     waiting            record retried, submit again     a node was lost on its way there
    either    study lost      waiting            record retried, submit again     the process that ran it is gone
    either    stopped         stopped            record stopped, free the worker
    running   pruned          leaving            record pruned                    the worker is free once it has gone
    running   paused          leaving            record paused                    likewise
    running   left            gone               record pruned, free the worker   the job gave the trial up itself
    leaving   any end         gone               free the worker                  of its process, however it ends
    paused    promoted        waiting            record resumed, submit again     a worker is idle
    failed    wanted again    waiting            record retried, submit again     the user has mended what failed
    lost      wanted again    waiting            record retried, submit again     likewise

Any other pair is a defect of the engine, and raises with the trial's story.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from raybo.record.events import KINDS, LOST, MEMORY, Event, EventData, Kind


class Phase(str, Enum):
    """The phase of a trial in the engine."""

    WAITING = "waiting"  # asked and committed, not running
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    LOST = "lost"
    STOPPED = "stopped"
    LEAVING = "leaving"  # pruned or paused, and its process is still there
    GONE = "gone"
    PAUSED = "paused"


class Occurrence(str, Enum):
    """Something that can happen to a trial."""

    SUBMITTED = "submitted"
    RETURNED = "returned"
    BAD_RESULT = "bad result"
    RAISED = "raised"
    OVER_LIMIT = "over limit"
    OUT_OF_MEMORY = "out of memory"
    WORKER_LOST = "worker lost"
    NEVER_BEGAN = "never began"
    PREEMPTED = "preempted"
    STUDY_LOST = "study lost"
    STOPPED = "stopped"
    PRUNED = "pruned"
    PAUSED = "paused"
    LEFT = "left"
    PROMOTED = "promoted"
    WANTED_AGAIN = "wanted again"


@dataclass(frozen=True)
class Step:
    """Instructions: the next phase, the event to record, and whether to submit the trial again or free its worker."""

    phase: Phase
    record: Kind | None = None
    submit: bool = False
    free: bool = False


ENDS_OF_A_PROCESS = (
    Occurrence.RETURNED,
    Occurrence.BAD_RESULT,
    Occurrence.RAISED,
    Occurrence.OVER_LIMIT,
    Occurrence.OUT_OF_MEMORY,
    Occurrence.WORKER_LOST,
    Occurrence.NEVER_BEGAN,
    Occurrence.PREEMPTED,
    Occurrence.LEFT,
    Occurrence.STOPPED,
)
_AGAIN = Step(Phase.WAITING, Kind.RETRIED, submit=True)
_STEPS: dict[tuple[Phase, Occurrence], Step] = {
    (Phase.WAITING, Occurrence.SUBMITTED): Step(Phase.RUNNING),
    (Phase.RUNNING, Occurrence.RETURNED): Step(Phase.FINISHED, Kind.TOLD, free=True),
    (Phase.RUNNING, Occurrence.BAD_RESULT): Step(Phase.FAILED, Kind.FAILED, free=True),
    (Phase.RUNNING, Occurrence.RAISED): Step(Phase.FAILED, Kind.FAILED, free=True),
    (Phase.RUNNING, Occurrence.OVER_LIMIT): Step(Phase.FAILED, Kind.FAILED, free=True),
    (Phase.RUNNING, Occurrence.OUT_OF_MEMORY): Step(Phase.FAILED, Kind.FAILED, free=True),
    (Phase.RUNNING, Occurrence.WORKER_LOST): _AGAIN,
    (Phase.RUNNING, Occurrence.NEVER_BEGAN): _AGAIN,
    (Phase.RUNNING, Occurrence.PREEMPTED): _AGAIN,
    (Phase.WAITING, Occurrence.STUDY_LOST): _AGAIN,
    (Phase.RUNNING, Occurrence.STUDY_LOST): _AGAIN,
    (Phase.WAITING, Occurrence.STOPPED): Step(Phase.STOPPED, Kind.STOPPED, free=True),
    (Phase.RUNNING, Occurrence.STOPPED): Step(Phase.STOPPED, Kind.STOPPED, free=True),
    (Phase.RUNNING, Occurrence.PRUNED): Step(Phase.LEAVING, Kind.PRUNED),
    (Phase.RUNNING, Occurrence.PAUSED): Step(Phase.LEAVING, Kind.PAUSED),
    (Phase.RUNNING, Occurrence.LEFT): Step(Phase.GONE, Kind.PRUNED, free=True),
    **{(Phase.LEAVING, end): Step(Phase.GONE, free=True) for end in ENDS_OF_A_PROCESS},
    (Phase.PAUSED, Occurrence.PROMOTED): Step(Phase.WAITING, Kind.RESUMED, submit=True),
    (Phase.FAILED, Occurrence.WANTED_AGAIN): _AGAIN,
    (Phase.LOST, Occurrence.WANTED_AGAIN): _AGAIN,
}
_GIVEN_UP = Step(Phase.LOST, Kind.FAILED, free=True)


def step(phase: Phase, occurrence: Occurrence, *, losses: int = 0, retries: int = 0) -> Step | None:
    """Return the transition for an occurrence, by the table; None if it is impossible in this phase.

    Args:
        phase: of the trial.
        occurrence: what has happened to it.
        losses: how often a worker of this trial has been lost, this time included.
        retries: how often a trial whose worker was lost may start again.
    """
    if occurrence is Occurrence.WORKER_LOST and phase is Phase.RUNNING and losses > retries:
        return _GIVEN_UP
    return _STEPS.get((phase, occurrence))


@dataclass(frozen=True)
class Life:
    """One trial's life in the engine, so far.

    Attributes:
        trial: its number.
        phase: its phase.
        attempt: number of the attempt that runs or is next, from 1.
        losses: how often it has lost its worker since it was last wanted again.
        story: the occurrences since this loop began, each with the phase that followed.
    """

    trial: int
    phase: Phase = Phase.WAITING
    attempt: int = 1
    losses: int = 0
    story: tuple[tuple[Occurrence, Phase], ...] = ()

    def after(self, occurrence: Occurrence, *, retries: int = 0) -> tuple[Life, Step]:
        """Return the life after an occurrence, and what is to be done.

        Raises:
            InvalidTransition: the occurrence is impossible in this phase.
        """
        losses = 0 if occurrence is Occurrence.WANTED_AGAIN else self.losses + (occurrence is Occurrence.WORKER_LOST)
        following = step(self.phase, occurrence, losses=losses, retries=retries)
        if following is None:
            raise InvalidTransition(self, occurrence)
        attempt = self.attempt + following.submit
        story = (*self.story, (occurrence, following.phase))
        return Life(self.trial, following.phase, attempt, losses, story), following


def event_after(
    life: Life, following: Step, occurrence: Occurrence, data: EventData, processes: int = 1
) -> Event | None:
    """Return the event that records an occurrence; None if nothing is recorded.

    Args:
        life: the trial's, after it.
        following: what is to be done.
        occurrence: what has happened.
        data: what the event holds of it.
        processes: how many the attempt had.
    """
    if following.record is None:
        return None
    data = {**data, "attempt": life.attempt}
    if processes > 1:
        data["processes"] = processes
    if following.submit:
        data["losses"] = life.losses
    if life.phase is Phase.LOST:
        data["kind"] = LOST
    elif occurrence is Occurrence.OUT_OF_MEMORY and following.free:
        data["kind"] = MEMORY
    return KINDS[following.record].of(life.trial, data)


class InvalidTransition(AssertionError):
    """A trial had an occurrence that is impossible in its phase: a defect of the engine, shown with the trial's story.

    Attributes:
        life: the trial's, up to then.
        occurrence: the impossible one.
    """

    def __init__(self, life: Life, occurrence: Occurrence) -> None:
        self.life = life
        self.occurrence = occurrence
        story = ", ".join(f"{what.value} -> {phase.value}" for what, phase in life.story) or "nothing had happened yet"
        super().__init__(
            f"trial {life.trial}: a trial that is {life.phase.value} cannot meet {occurrence.value!r}; "
            f"attempt {life.attempt}, {life.losses} workers lost, its story: {story}"
        )

    def __reduce__(self) -> tuple[type[InvalidTransition], tuple[Life, Occurrence]]:  # it travels between processes
        return InvalidTransition, (self.life, self.occurrence)
