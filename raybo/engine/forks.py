"""Keeps what a trial forks from standing in for its worker.

A forked process holds the sockets of its parent open, and it is by its sockets that Ray learns of a worker's death.
Without this, a trial whose worker was killed would be waited for until the last process was gone that it had forked:
those of a data loader or of a pool, say, which wait for ever.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from functools import cache


@cache  # once a worker: what is registered stays
def part_with_forks() -> None:
    """Close Ray's sockets in whatever this process forks from now on; called before any of the user's code runs."""
    before = {os.fstat(descriptor).st_ino for descriptor in _sockets()}
    served = {port for descriptor in _sockets() if (port := _port(descriptor)) is not None}

    def part() -> None:
        for descriptor in _sockets():
            with contextlib.suppress(OSError):
                # Ray's servers have accepted more since then, on the same ports
                if os.fstat(descriptor).st_ino in before or _port(descriptor) in served:
                    os.close(descriptor)

    os.register_at_fork(after_in_child=part)


def _sockets() -> list[int]:
    """This process's open sockets."""
    found = []
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # the directory's own, which is closed again
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                found.append(int(name))
    return found


def _port(descriptor: int) -> int | None:
    """The port of this process's end of an Internet socket; None for others."""
    with socket.socket(fileno=os.dup(descriptor)) as duplicate:
        name = duplicate.getsockname()
        return name[1] if isinstance(name, tuple) and len(name) > 1 else None
