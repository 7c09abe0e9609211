"""The one writer: locks on a file beside the journal, which names its holder, and on the journal itself.

The first is what others look at and wait for. The second belongs to the journal whatever becomes of the first, and
whichever path leads to it: a range of bytes beyond all that SQLite locks, so that they do not get in each other's way,
locked for an open file and not for a process (`F_OFD_SETLK`). Closing any descriptor of the journal takes SQLite's own
locks from the process, so this one is kept until SQLite has let go, and a journal that this process holds is not opened
again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from raybo.common import systems
from raybo.common.errors import JournalError, JournalInUse

WAIT_SECONDS = 15.0  # for a writer whose driver is gone to disappear too: Ray takes up to eight seconds to notice
FIRST_BYTE = 1 << 62  # of the range; SQLite's are at 1 << 30

_BEGINS = b'{"driver": '

_NO_LOCKS = (errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # a file system's answer that has none

_held: set[tuple[int, int]] = set()  # devices and inodes of the journals that this process writes


@dataclass(frozen=True)
class Lock:
    """The lock that a writer holds.

    Attributes:
        path: the file beside the journal.
        file: the same, open and locked.
        journal: a descriptor of the journal, locked.
        made: the journal's path where it was made for the lock's sake; it is removed again if it stays empty.
    """

    path: Path
    file: TextIO
    journal: int
    made: Path | None


def lock_file(path: Path | str) -> Path:
    """The lock file of a journal, beside the file that all links lead to."""
    real = Path(os.path.realpath(path))
    return real.with_name(real.name + "-lock")


def in_use(path: Path | str) -> bool:
    """True if a process is writing the journal."""
    try:
        handle = os.open(lock_file(path), os.O_RDONLY | systems.NOFOLLOW | systems.NONBLOCK | systems.CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        systems.lock(handle, shared=True)  # given back as the file is closed
    except OSError as error:
        return error.errno not in _NO_LOCKS
    finally:
        os.close(handle)
    return False


def holder(path: Path | str) -> str:
    """The machine and the process that write the journal, in words; where the lock does not say, that it is one."""
    try:
        with lock_file(path).open(encoding="utf-8", errors="replace") as file:
            found = _holder(file)
    except OSError:
        found = {}
    return f"{found['host']} (process {found['process']})" if {"host", "process"} <= set(found) else "some machine"


def process_here(path: Path | str) -> int | None:
    """Return the process that writes the journal; None if none does, or if it is not known to be on this machine."""
    if not in_use(path):
        return None
    try:
        with lock_file(path).open(encoding="utf-8", errors="replace") as file:
            found = _holder(file)
    except OSError:
        return None
    process = found.get("process")
    return process if found.get("host") == socket.gethostname() and isinstance(process, int) else None


def acquire(path: Path, driver: int) -> Lock:
    """The locks, held; the file names its holder. Waits only for a holder whose driver is dead already."""
    beside = lock_file(path)
    give_up = time.monotonic() + WAIT_SECONDS
    while True:
        file = _opened(path, beside)
        try:
            systems.lock(file.fileno())
        except OSError as error:
            if error.errno in _NO_LOCKS:
                if os.fstat(file.fileno()).st_size == 0:
                    systems.remove_open(beside, file.close)
                else:
                    file.close()
                raise JournalError(
                    f"{path}: it cannot be locked ({error.strerror}); keep it on a file system with locks, such as a "
                    "local disk"
                ) from error
            held_by = _holder(file)
            file.close()
            if not (_driver_is_gone(held_by) or _is_superseded(held_by, driver)) or time.monotonic() > give_up:
                is_own = held_by.get("process") == os.getpid() and held_by.get("host") == socket.gethostname()
                remedy = "this one); close that searcher" if is_own else "); wait for it to end"
                raise JournalInUse(
                    f"{path}: another study is writing it (process {held_by.get('driver', '?')} on "
                    f"{held_by.get('host', '?')}{', ' * is_own}{remedy}, or use another file"
                ) from None
            time.sleep(0.1)
            continue
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(file.fileno()).st_ino == os.lstat(beside).st_ino:
                break
        file.close()  # its last holder removed it while we waited: lock the new one
    try:
        _require_lock_file(path, beside, file)
        journal, made = _lock_journal(path)
        try:
            _name_holder(path, file, driver)
        except BaseException:  # passed on, when nothing is held any more
            _let_go(journal, made)
            raise
    except BaseException:  # passed on, likewise
        with contextlib.suppress(JournalError):  # somebody's file that is no lock stays
            _require_lock_file(path, beside, file)
            systems.remove_open(beside, file.close)
        file.close()
        raise
    return Lock(beside, file, journal, made)


def release(lock: Lock) -> None:
    """Give the locks back, and leave no file. Not before SQLite has closed the journal."""
    _let_go(lock.journal, lock.made)
    with contextlib.suppress(FileNotFoundError):
        if os.fstat(lock.file.fileno()).st_ino == os.lstat(lock.path).st_ino:  # else it is somebody else's
            systems.remove_open(lock.path, lock.file.close)
    lock.file.close()


def _opened(path: Path, beside: Path) -> TextIO:
    """The lock file: no link to anywhere, no device, nobody's data."""
    flags = os.O_RDWR | os.O_CREAT | systems.NOFOLLOW | systems.NONBLOCK | systems.CLOEXEC
    try:
        return os.fdopen(os.open(beside, flags, 0o644), "r+", encoding="utf-8", errors="replace")
    except OSError as error:
        why = f"{beside.name} is a link" if error.errno == errno.ELOOP else str(error)
        raise JournalError(f"{path}: it cannot be locked ({why}); use a writable directory") from error


def _require_lock_file(path: Path, beside: Path, file: TextIO) -> None:
    status = os.fstat(file.fileno())
    begins = systems.read_at(file.fileno(), len(_BEGINS), 0) if stat.S_ISREG(status.st_mode) else b"?"
    if status.st_nlink > 1 or not _BEGINS.startswith(begins):  # what was cut short is a lock too
        raise JournalError(
            f"{path}: it cannot be locked ({beside.name} is there, and is not a lock file); move it away"
        )


def _holder(file: TextIO) -> dict[str, Any]:
    """Return the lock file's text about its holder; empty while it is being written, or if it is no lock."""
    try:
        file.seek(0)
        found = json.loads(file.read(10_000))
    except (ValueError, OSError, RecursionError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("driver"), int) else {}


def _name_holder(path: Path, file: TextIO, driver: int) -> None:
    text = json.dumps({"driver": driver, "process": os.getpid(), "host": socket.gethostname()})
    try:
        os.ftruncate(file.fileno(), 0)
        systems.write_at(file.fileno(), text.encode(), 0)
    except OSError as error:
        raise JournalError(f"{path}: it cannot be locked ({error.strerror}); make room on the disk") from error


# ---- the journal itself


def _lock_journal(path: Path) -> tuple[int, Path | None]:
    """A locked descriptor of the journal, and its path where it was not there before."""
    real = Path(os.path.realpath(path))
    made = None
    try:
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(real)
            if (status.st_dev, status.st_ino) in _held:
                raise _in_use_by_other_path(path)
        try:
            journal = os.open(real, os.O_RDWR | systems.NOFOLLOW | systems.CLOEXEC)
        except FileNotFoundError:
            journal, made = os.open(real, os.O_RDWR | os.O_CREAT | os.O_EXCL | systems.CLOEXEC, 0o644), real
    except OSError as error:
        raise JournalError(f"{path}: it cannot be locked ({error.strerror}); use another file") from error
    status = os.fstat(journal)
    try:
        if status.st_nlink > 1:
            raise JournalError(
                f"{path}: the file has another name (a hard link), under which SQLite would not find all of it; "
                "make this name a copy of its own: cp it to a new name, and mv that in its place"
            )
        _lock_bytes(path, journal)
    except BaseException:  # passed on; this process has no connection to the journal that this could harm
        os.close(journal)
        raise
    _held.add((status.st_dev, status.st_ino))
    return journal, made


def _lock_bytes(path: Path, journal: int) -> None:
    try:
        systems.lock_byte(journal, FIRST_BYTE)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise _in_use_by_other_path(path) from None
        if error.errno not in _NO_LOCKS:
            raise JournalError(f"{path}: it cannot be locked ({error.strerror}); use another file") from error


def _in_use_by_other_path(path: Path) -> JournalInUse:
    return JournalInUse(
        f"{path}: another study is writing it, by another path or without its lock file; wait for it to end, or use "
        "another file"
    )


def _let_go(journal: int, made: Path | None) -> None:
    status = os.fstat(journal)
    _held.discard((status.st_dev, status.st_ino))
    if made is not None and status.st_size == 0:
        systems.remove_open(made, lambda: os.close(journal))
    else:
        os.close(journal)


def _is_superseded(holder: Mapping[str, Any], driver: int) -> bool:
    """True if one driver has begun the holder's process, and us in its place: its Ray died under it."""
    here = holder.get("host") == socket.gethostname()
    return here and holder.get("driver") == driver and driver not in (holder.get("process"), os.getpid())


def _driver_is_gone(holder: Mapping[str, Any]) -> bool:
    if not holder:  # just being written: look again
        return True
    # nothing can be known of another machine's processes, and to ask after one on Windows is to end it
    if holder.get("host") != socket.gethostname() or not systems.IS_POSIX:
        return False
    try:
        os.kill(holder["driver"], 0)
        # one that was killed and that nobody has asked after is still there, as a zombie; the name before its state
        # is cut at any byte, and need not be UTF-8
        state = Path(f"/proc/{holder['driver']}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except ProcessLookupError:
        return True
    except (OSError, IndexError):  # another user's, or a system without /proc
        return False
    return state == b"Z"
