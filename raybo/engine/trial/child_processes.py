"""Separates the processes that a trial forks from Ray, so that none stands in for its worker.

A forked process holds its parent's sockets open, and Ray learns of a worker's death through its sockets. Without this
module, if a trial's worker were killed, Ray would wait for the trial until the last process that it had forked was
gone: those of a data loader or a pool, say, which wait for ever.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from functools import cache


@cache  # once per worker: what is registered stays
def isolate_child_processes() -> None:
    """Close Ray's sockets in whatever this process forks from now on. Call it before any of the user's code runs."""
    before = {os.fstat(descriptor).st_ino for descriptor in _sockets()}
    served = {port for descriptor in _sockets() if (port := _port(descriptor)) is not None}

    def separate() -> None:
        for descriptor in _sockets():
            with contextlib.suppress(OSError):
                # Ray's servers have accepted more since then, on the same ports
                if os.fstat(descriptor).st_ino in before or _port(descriptor) in served:
                    os.close(descriptor)

    os.register_at_fork(after_in_child=separate)


def _sockets() -> list[int]:
    """Return this process's open sockets."""
    found = []
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # the directory's own, which is closed again
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                found.append(int(name))
    return found


def _port(descriptor: int) -> int | None:
    """Return the port of this process's end of an Internet socket; None for others."""
    with socket.socket(fileno=os.dup(descriptor)) as duplicate:
        name = duplicate.getsockname()
        return name[1] if isinstance(name, tuple) and len(name) > 1 else None
