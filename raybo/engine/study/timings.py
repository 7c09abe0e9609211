"""Measures a study's recent suggestions and trials, and decides by that what is done ahead of time."""

from __future__ import annotations

import math
import statistics
from collections import deque
from dataclasses import dataclass, field

RECENT = 100  # the last suggestions and trials that count
HURRY = 0.01  # work between two trials that takes more than this share of a trial's time is done ahead
DISPATCH_SECONDS = 0.003  # Ray's own time from the end of a trial to the start of the next
INSTANT = 0.001  # a suggestion that takes fewer processor seconds is made without a thread, which costs as much
DEEPEST = 7  # at most so many trials wait for each worker
KNOWN_TO_EACH = 4  # results at least for each trial that waits, until there are RECENT: few trials must not run blind
REPLACEABLE = 0.25  # a prepared proposal that took more than this share of a trial's time is always used


def _recent() -> deque[float]:
    return deque(maxlen=RECENT)


@dataclass(frozen=True)
class Timings:
    """Durations of recent suggestions and trials, in seconds.

    Attributes:
        workers: how many trials run at a time, by the plan.
        takes_all_room: whether Ray has no room for more.
        suggestions: of each suggestion that was used.
        spent: processor time of each suggestion that was used.
        trials: of each trial that finished.
        commits: from each proposal to its commit.
    """

    workers: int
    takes_all_room: bool
    suggestions: deque[float] = field(default_factory=_recent)
    spent: deque[float] = field(default_factory=_recent)
    trials: deque[float] = field(default_factory=_recent)
    commits: deque[float] = field(default_factory=_recent)

    @property
    def suggest_seconds(self) -> float | None:
        """Median of the suggestions; None before the first."""
        return statistics.median(self.suggestions) if self.suggestions else None

    def is_instant(self) -> bool:
        """True if suggestions take no time, beyond any initial design, however busy the machine is."""
        return len(self.spent) == RECENT and max(self.spent) < INSTANT

    def is_short(self) -> bool:
        """True if trials are so short that workers would wait for Ray, so that one is always kept in its queue.

        False if Ray has more room than this study is to use: the queued trial would run.
        """
        if self.workers == 1 or not self.takes_all_room or not self.trials:
            return False
        return statistics.median(self.trials) < DISPATCH_SECONDS / HURRY

    def waiting(self, room: int) -> int:
        """Return how many trials wait in Ray's queue, so that no worker waits for Ray or for the disk.

        By Little's law: as many as end while the next is on its way, from the end of a trial to the next one's start.
        Fewer at the beginning of a study, where what each trial learns from the results is worth more than the wait.
        """
        if not self.is_short():
            return 0
        on_its_way = DISPATCH_SECONDS + (statistics.median(self.commits) if self.commits else 0.0)
        ends = room * on_its_way / max(statistics.median(self.trials), on_its_way / DEEPEST)
        most = math.inf if len(self.trials) == RECENT else len(self.trials) // KNOWN_TO_EACH
        return int(min(max(1, math.ceil(ends)), most))

    def is_hurried(self) -> bool:
        """True if workers would wait for proposals, so that each is prepared without the result that frees one.

        In a sequential study each proposal knows all results, and so it does if trials are long beside suggestions.
        """
        if self.workers == 1 or not self.suggestions or not self.trials:
            return False
        return statistics.median(self.suggestions) > HURRY * statistics.median(self.trials)

    def is_replaceable(self) -> bool:
        """True if a worker loses less by waiting for a fresh proposal than a trial loses by an outdated one."""
        return statistics.median(self.suggestions) < REPLACEABLE * statistics.median(self.trials)
