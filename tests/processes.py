"""Processes that tests start, as the system sees them, and what it leaves them of its time."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace


def is_alive(pid):
    """Return True if a process runs: one that has ended and is not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


WATCH = """
import os, time
last, longest = time.monotonic(), 0.0
while os.getppid() == {parent}:
    time.sleep(0.01)
    last, before = time.monotonic(), last
    longest = max(longest, last - before - 0.01)
    print(longest, flush=True)
"""


@contextlib.contextmanager
def longest_pause():
    """Yield what has, once the block is left, its longest wait for a processor.

    Attribute `seconds`.
    """
    found = SimpleNamespace(seconds=0.0)
    with tempfile.TemporaryFile("w+") as said:
        watcher = subprocess.Popen([sys.executable, "-c", WATCH.format(parent=os.getpid())], stdout=said)
        try:
            yield found
        finally:
            watcher.kill()
            watcher.wait()
            said.seek(0)
            found.seconds = float(said.read().split()[-1])
