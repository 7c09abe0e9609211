"""Directories that last as long as a study or an attempt: closed to other users, and removed later if it is killed.

Each holds a file that its owner keeps locked. The system releases the lock when the owner dies, however it dies, and
this shows in every process namespace: a directory whose lock can be taken has no owner any more. What is left of Ray's
processes there is ended. A worker or an agent of a Ray that ends makes the directory anew, without a lock: that goes
too, if it holds Ray's sessions only, and nobody uses it. Nothing else is ever removed, whatever it is called.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from raybo.common import systems
from raybo.common.errors import RayError
from raybo.engine.reaper import END_SECONDS, LOCK, end_processes, processes_in

TEMPORARY = systems.TEMPORARY
MADE = re.compile(r"raybo-[0-9]+-[a-z0-9_]{8}")  # the names of these directories
RAY = "ray"  # the part of one that a local Ray uses


@contextlib.contextmanager
def private_directory() -> Iterator[Path]:
    """Yield a new directory that only this user may enter. Those that killed processes have left are removed first.

    Raises:
        RayError: it cannot be made.
    """
    directory = None
    try:
        remove_leftovers(TEMPORARY)
        directory = Path(tempfile.mkdtemp(prefix=f"raybo-{os.getpid()}-", dir=TEMPORARY))
        lock = _locked(directory)
    except OSError as error:
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)
        raise RayError(
            f"{TEMPORARY}: no directory can be made there ({error.strerror}); make it writable, with room"
        ) from error
    try:
        yield directory
    finally:
        if systems.IS_POSIX:
            _empty(directory)
            os.close(lock)
        else:
            os.close(lock)
            shutil.rmtree(directory, ignore_errors=True)


def remove_leftovers(temporary: str) -> None:
    """Remove such directories of this user whose owner is dead; none where directories cannot be opened."""
    if not systems.OPENS_DIRECTORIES:
        return
    with os.scandir(temporary) as found:
        names = [entry.name for entry in found if entry.name.startswith("raybo-")]
    for name in names:
        with contextlib.suppress(OSError):  # not a directory, another user's, gone, or not one of these
            _remove_if_dead(Path(temporary, name))


def _remove_if_dead(directory: Path) -> None:
    here = os.open(directory, os.O_RDONLY | systems.DIRECTORY | systems.NOFOLLOW | systems.CLOEXEC)
    try:
        if not systems.is_mine(os.fstat(here)):
            return
        try:
            lock = os.open(LOCK, os.O_RDWR | systems.NOFOLLOW | systems.NONBLOCK | systems.CLOEXEC, dir_fd=here)
        except FileNotFoundError:
            if _is_of_a_dead_ray(directory):
                shutil.rmtree(directory, ignore_errors=True)
            return
        try:
            if stat.S_ISREG(os.fstat(lock).st_mode):
                systems.lock(lock)
                if os.stat(LOCK, dir_fd=here).st_ino == os.fstat(lock).st_ino:
                    end_processes(str(directory), END_SECONDS)
                    _empty(directory)
        finally:
            os.close(lock)
    finally:
        os.close(here)


def _is_of_a_dead_ray(directory: Path) -> bool:
    """True if processes of a Ray that ended have made it again: it holds sessions of Ray's only, and nobody uses it."""
    if MADE.fullmatch(directory.name) is None or os.listdir(directory) != [RAY]:
        return False
    is_rays = all(name.startswith("session_") for name in os.listdir(directory / RAY))
    return is_rays and not processes_in(str(directory), only_rays=False)


def _locked(directory: Path) -> int:
    """Return a locked descriptor of the directory's lock; the file gets its name once it is locked."""
    unnamed = directory / f"{LOCK}-new"
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | systems.NOFOLLOW | systems.CLOEXEC, 0o600)
    systems.lock(lock)
    if systems.IS_POSIX:  # elsewhere what is open keeps its name
        unnamed.rename(directory / LOCK)
    return lock


def _empty(directory: Path) -> None:
    """Remove a directory whose lock is held, the lock last, so that the next study can finish a removal."""
    with contextlib.suppress(OSError):  # dying processes of Ray may still write there: the next study removes the rest
        for entry in list(os.scandir(directory)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != LOCK:
                os.unlink(entry.path)
        if os.listdir(directory) == [LOCK]:
            os.unlink(directory / LOCK)
            directory.rmdir()
