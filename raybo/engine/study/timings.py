"""How fast a study goes: how long its recent suggestions and trials took, and what is therefore done ahead."""

from __future__ import annotations

import math
import statistics
from collections import deque
from dataclasses import dataclass, field

RECENT = 100  # suggestions and trials that count
HURRY = 0.01  # of a trial's time: what takes longer, of what is done between two trials, is done ahead
DISPATCH_SECONDS = 0.003  # from the end of a trial to the start of the next, by Ray alone
INSTANT = 0.001  # seconds of a processor: a suggestion that takes less is made on the spot, a thread costs as much
DEEPEST = 7  # trials that wait, for each worker
REPLACEABLE = 0.25  # of a trial's time: prepared proposals that took longer are used, whatever has come since


def _recent() -> deque[float]:
    return deque(maxlen=RECENT)


@dataclass(frozen=True)
class Timings:
    """What suggestions and trials took of late, in seconds.

    Attributes:
        workers: how many trials run at a time, by the plan.
        takes_all_room: whether that is all that Ray has room for.
        suggestions: of each suggestion that was used.
        spent: of a processor, of the same.
        trials: of each trial that finished.
        commits: from when a proposal was there until it was committed.
    """

    workers: int
    takes_all_room: bool
    suggestions: deque[float] = field(default_factory=_recent)
    spent: deque[float] = field(default_factory=_recent)
    trials: deque[float] = field(default_factory=_recent)
    commits: deque[float] = field(default_factory=_recent)

    @property
    def suggest_seconds(self) -> float | None:
        """The median of the suggestions; None before the first."""
        return statistics.median(self.suggestions) if self.suggestions else None

    def is_instant(self) -> bool:
        """Whether suggestions take no time, beyond any initial design; how busy the machine is does not matter."""
        return len(self.spent) == RECENT and max(self.spent) < INSTANT

    def is_short(self) -> bool:
        """Whether trials are so short that workers would wait for Ray: then one is always in its queue.

        Not where Ray has more room than this study is to use, as that one would run.
        """
        if self.workers == 1 or not self.takes_all_room or not self.trials:
            return False
        return statistics.median(self.trials) < DISPATCH_SECONDS / HURRY

    def waiting(self, room: int) -> int:
        """How many trials are to wait in Ray's queue, so that no worker waits for Ray or for the disk.

        By Little's law: as many as end while the next is on its way, from the end of a trial to the next one's start.
        """
        if not self.is_short():
            return 0
        on_its_way = DISPATCH_SECONDS + (statistics.median(self.commits) if self.commits else 0.0)
        ends = room * on_its_way / max(statistics.median(self.trials), on_its_way / DEEPEST)
        return max(1, math.ceil(ends))

    def is_hurried(self) -> bool:
        """Whether workers would wait for proposals: then each is prepared ahead, without the result that frees one.

        A sequential study always knows everything, and so does one whose trials are long beside its suggestions.
        """
        if self.workers == 1 or not self.suggestions or not self.trials:
            return False
        return statistics.median(self.suggestions) > HURRY * statistics.median(self.trials)

    def is_replaceable(self) -> bool:
        """Whether a worker loses less by waiting for a fresh proposal than a trial by knowing less."""
        return statistics.median(self.suggestions) < REPLACEABLE * statistics.median(self.trials)
