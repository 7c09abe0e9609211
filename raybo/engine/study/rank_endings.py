"""The end of a trial of several processes, from the ends of all of them. Pure.

When one of them fails, the others fail too, as they lose the connection to it, and theirs is often the first that is
heard. So the worst is told, of several alike the earliest:

    what a process has met                  because
    too little memory                       Ray ends its neighbours with it
    its worker was lost                     no exception of another process ends a worker
    its own exception, a bad result         others lose their connection to it
    a limit, or the job gave itself up
    an exception about a lost connection    an echo, unless it is all that there is
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from raybo.engine.lifecycle import Occurrence
from raybo.record.events import EventData

ECHO = re.compile(
    r"^(Connection\w*Error|BrokenPipeError|EOFError|Dist\w*Error|IncompleteReadError)\b"
    r"|gloo|nccl|connection (was )?(reset|closed|refused|aborted)|broken pipe|socket ?(error|closed|timeout)",
    re.IGNORECASE,
)


def is_echo(reason: str) -> bool:
    """True if the reason of a failure is a lost connection: another process's end."""
    return ECHO.search(reason) is not None


@dataclass(frozen=True)
class RankEnding:
    """The end of one process of a trial.

    Attributes:
        occurrence, data: what happened, and the data of the event that would record it.
        at: when it was heard of, by the monotonic clock, in seconds.
    """

    occurrence: Occurrence
    data: EventData
    at: float

    @property
    def is_good(self) -> bool:
        """True if the process ended by itself, without a fault."""
        return self.occurrence is Occurrence.RETURNED

    @property
    def is_echo(self) -> bool:
        """True if it tells of nothing but a lost connection: of another process's end."""
        return self.occurrence is Occurrence.RAISED and is_echo(self.data.get("reason", ""))


_WORST_FIRST = (
    Occurrence.OUT_OF_MEMORY,
    Occurrence.OVER_LIMIT,
    Occurrence.WORKER_LOST,
    Occurrence.NEVER_BEGAN,
    Occurrence.RAISED,
    Occurrence.BAD_RESULT,
    Occurrence.LEFT,
)


def ending_of_all(endings: Mapping[int, RankEnding], count: int) -> tuple[Occurrence, EventData]:
    """Return what happened to a trial of several processes, and the data of its event.

    Args:
        endings: of the processes that have ended by themselves, by rank; at least that of rank 0, or a bad one.
        count: how many processes there are.
    """
    bad = {rank: ending for rank, ending in endings.items() if not ending.is_good}
    if not bad:
        return endings[0].occurrence, endings[0].data

    def badness(rank: int) -> tuple[bool, int, float]:
        ending = bad[rank]
        return ending.is_echo, _WORST_FIRST.index(ending.occurrence), ending.at

    rank = min(bad, key=badness)
    ending = bad[rank]
    if ending.occurrence is Occurrence.LEFT and 0 in bad and bad[0].occurrence is Occurrence.LEFT:
        return bad[0].occurrence, bad[0].data
    reason = f"rank {rank} of {count}: {ending.data.get('reason', ending.occurrence.value)}"
    return ending.occurrence, {**ending.data, "reason": reason}
