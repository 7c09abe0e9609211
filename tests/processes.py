"""Processes that tests start, as the system sees them."""

from __future__ import annotations

from pathlib import Path


def is_alive(pid):
    """Return True if a process runs: one that has ended and is not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
