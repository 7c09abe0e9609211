"""Hides what differs between operating systems: flags of open files, locks, and what Windows does not do.

A flag that a system does not have is 0. Windows has no links to be wary of by default, and refuses to remove a file
that is open, where POSIX systems let it go on without its name.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
CLOEXEC: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)  # on Windows: bytes as they are
DIRECTORY: int = getattr(os, "O_DIRECTORY", 0)
NOCTTY: int = getattr(os, "O_NOCTTY", 0)

IS_POSIX = fcntl is not None
OPENS_DIRECTORIES = bool(DIRECTORY) and os.open in os.supports_dir_fd  # and files relative to them

_LOCKED_BYTE = 0x7FFF_0000  # beyond all that is in a file: others could not read a byte that Windows locks

# not TMPDIR where it can be avoided, as Ray's sockets need a short path
TEMPORARY = "/tmp" if IS_POSIX else tempfile.gettempdir()


def lock(file: int, *, shared: bool = False, wait: bool = False) -> None:
    """Lock an open file until it is closed or its process ends.

    Args:
        file: its descriptor.
        shared: others may lock it so too; on Windows nobody else.
        wait: wait for whoever holds it; on Windows for ten seconds.
    Raises:
        OSError: somebody holds the lock, or the file system has none.
    """
    if fcntl is not None:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        return
    msvcrt: Any = importlib.import_module("msvcrt")
    place = os.lseek(file, 0, os.SEEK_CUR)
    try:
        os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    finally:
        os.lseek(file, place, os.SEEK_SET)


def lock_byte(file: int, place: int) -> None:
    """Lock a byte for an open file, whatever else of it its process opens and closes; nothing where that cannot be.

    Raises:
        OSError: somebody holds the lock, or the file system has none.
    """
    if fcntl is not None and sys.platform == "linux":
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0))


def read_at(file: int, size: int, offset: int) -> bytes:
    """Read from a place in an open file."""
    if hasattr(os, "pread"):
        return os.pread(file, size, offset)
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, size)


def write_at(file: int, data: bytes, offset: int) -> int:
    """Write to a place in an open file; return how many bytes were written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(file, data, offset)
    os.lseek(file, offset, os.SEEK_SET)
    return os.write(file, data)


def remove_open(path: Path, close: Callable[[], object]) -> None:
    """Remove a file and close it: in this order, where it is nobody's meanwhile, and on Windows in the other.

    There a file that somebody else has opened by then stays, and is theirs.
    """
    if IS_POSIX:
        path.unlink(missing_ok=True)
        close()
        return
    close()
    with contextlib.suppress(OSError):
        path.unlink()


def is_mine(status: os.stat_result) -> bool:
    """True if a file is this user's; on Windows always."""
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()
