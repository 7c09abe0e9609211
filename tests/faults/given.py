"""A clock for deadlines that stands still while this process gets no processor.

Beside enough others, a study in the background gets a second of processor time in ten minutes, and so do the checks of
it. That it does nothing then is no fault of its own.
"""

from __future__ import annotations

import threading
import time
from functools import cache

TICK_SECONDS = 0.05
MOST_SECONDS = 0.1  # that one tick counts


class _Clock:
    def __init__(self) -> None:
        self.seconds = 0.0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            before = time.monotonic()
            time.sleep(TICK_SECONDS)
            self.seconds += min(time.monotonic() - before, MOST_SECONDS)


@cache
def _clock() -> _Clock:
    return _Clock()


def now() -> float:
    """Return the seconds in which this process was given a processor when it asked for one, since the first call."""
    return _clock().seconds
