"""Limits how long the process of a study may be silent, and how often it may die, before its follower gives up.

Nothing here looks at a process, a clock or a file: the follower says what it has seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SILENT_SECONDS = 120.0  # a study's process that neither answers nor writes for so long is lost
LOOK_SECONDS = 10.0  # between two looks, more than this is not the study's silence: the follower itself was stopped
ALIKE = 5  # a study's process that dies so often in a row for one reason, and achieves nothing, is given up


@dataclass
class Silence:
    """The time for which a study's process has neither answered nor written.

    Time in which the follower itself did not run does not count: it was stopped, or the machine slept.

    Attributes:
        seconds: the time.
    """

    seconds: float = 0.0
    _looked: float | None = field(default=None, init=False)

    def look(self, now: float, heard: bool) -> None:
        """Note whether there was news since the last look.

        Args:
            now: the monotonic clock, in seconds.
            heard: whether the process has answered or written.
        """
        passed = 0.0 if self._looked is None else min(now - self._looked, LOOK_SECONDS)
        self.seconds = 0.0 if heard else self.seconds + passed
        self._looked = now


@dataclass
class Deaths:
    """The deaths of a study's processes.

    Attributes:
        left: how many more processes may be started.
        alike: how many have died in a row for one reason without achieving anything.
    """

    left: int
    alike: int = 0
    _last: tuple[str, int] | None = field(default=None, init=False)

    def add(self, reason: str, achieved: int) -> None:
        """Count a death.

        Args:
            reason: in words.
            achieved: how many events the journal holds; that trials start again does not count.
        """
        self.left -= 1
        self.alike = self.alike + 1 if self._last == (reason, achieved) else 1
        self._last = reason, achieved

    @property
    def is_hopeless(self) -> bool:
        """True if the next process would die as well."""
        return self.alike >= ALIKE

    @property
    def timeout(self) -> float:
        """Return the seconds that the next process may be silent: more and more while each dies like the last."""
        return SILENT_SECONDS * 2.0 ** max(0, self.alike - 1)
