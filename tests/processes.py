"""Processes that tests start, as the system sees them, and what it leaves them of its time."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path


def is_alive(pid):
    """Return True if a process runs: one that has ended and is not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextlib.contextmanager
def longest_pause():
    """Yield a function that returns the longest time, in seconds, for which the machine kept this process waiting."""
    over, longest = threading.Event(), 0.0

    def watch():
        nonlocal longest
        last = time.monotonic()
        while not over.wait(0.01):
            last, before = time.monotonic(), last
            longest = max(longest, last - before - 0.01)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield lambda: longest
    finally:
        over.set()
        thread.join()
