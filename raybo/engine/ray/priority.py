"""Priorities of processes when processors are short: the study's, then its trials'.

Ray starts its workers at nice 15, including the study's own process, which is one of them. Beside its own busy trials,
or anything else, that process then gets a processor late, and meanwhile no worker has anything to do. On a Ray that
raybo starts, workers start at the user's own priority, and each lowers its own before it runs its first trial. On any
other Ray, priorities stay as its owner set them.
"""

from __future__ import annotations

import contextlib
import os
from functools import cache

OURS = "RAYBO_TRIAL_NICENESS"  # set for the workers of a Ray that raybo started
TRIALS = 15  # the niceness that Ray gives its workers

# the environment of a Ray that raybo starts, unless the user has set the first
SETTINGS = {"RAY_worker_niceness": "0", OURS: str(TRIALS)}


@cache  # once per worker: it would add up
def lower_priority() -> None:
    """Lower this worker's priority as Ray would have; called in a trial before any of the user's code runs.

    All its threads, as a numerical library may have begun its own when it was loaded; those begun later inherit it. On
    systems where a thread has no priority of its own, the process.
    """
    by = int(os.environ.get(OURS, 0))
    if by <= 0:
        return
    niceness = os.getpriority(os.PRIO_PROCESS, 0) + by
    with contextlib.suppress(OSError):  # a thread that has just ended, or a system without /proc
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, int(thread), niceness)
    os.setpriority(os.PRIO_PROCESS, 0, niceness)
