"""The files in a trial's directory, read without leaving it: no link is followed, nothing but files is opened."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from raybo.common import systems

MOST = 1_000  # so many files are listed at most
DEEPEST = 8  # levels of directories that are searched below the trial's own
_DIRECTORY = os.O_RDONLY | systems.DIRECTORY | systems.NOFOLLOW | systems.CLOEXEC
_FILE = os.O_RDONLY | systems.NOFOLLOW | systems.NONBLOCK | systems.CLOEXEC


@dataclass(frozen=True)
class Left:
    """A file of a trial.

    Attributes:
        parts: its path below the trial's directory.
        size: in bytes.
        changed: when, in seconds since 1970.
    """

    parts: tuple[bytes, ...]
    size: int
    changed: float

    @property
    def key(self) -> str:
        """Its path, encoded for an address whatever bytes it has."""
        return base64.urlsafe_b64encode(b"/".join(self.parts)).decode()


def listed(directory: Path) -> list[Left]:
    """Return the files of a trial by their paths: at most MOST, and no links; none where links cannot be told."""
    found: list[Left] = []
    if not systems.OPENS_DIRECTORIES:
        return found
    try:
        with _opened(directory, ()) as top:
            found.extend(_files(top, ()))
    except OSError:  # there is none, or it is a link
        return []
    return sorted(found, key=lambda left: left.parts)


@contextmanager
def opened(directory: Path, key: str) -> Iterator[tuple[BinaryIO, str]]:
    """Open a file of a trial for reading; return it with its name.

    Args:
        directory: the trial's.
        key: of the file, see `Left.key`.
    Raises:
        FileNotFoundError: there is no such file in that directory.
    """
    try:
        parts = tuple(base64.urlsafe_b64decode(key.encode("ascii")).split(b"/"))
    except ValueError:
        raise FileNotFoundError(key) from None
    if not systems.OPENS_DIRECTORIES:
        raise FileNotFoundError(key)
    if any(part in (b"", b".", b"..") or b"\0" in part for part in parts) or len(parts) > DEEPEST + 1:
        raise FileNotFoundError(key)
    try:
        with _opened(directory, parts[:-1]) as inside:
            handle = os.open(parts[-1], _FILE, dir_fd=inside)
    except OSError as error:
        raise FileNotFoundError(key) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileNotFoundError(key)
    with open(handle, "rb") as file:
        yield file, os.fsdecode(parts[-1])


@contextmanager
def _opened(directory: Path, parts: tuple[bytes, ...]) -> Iterator[int]:
    """Open a directory below the trial's, step by step, and give its descriptor."""
    handle = os.open(directory, _DIRECTORY)
    try:
        for part in parts:
            inner = os.open(part, _DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _files(directory: int, above: tuple[bytes, ...]) -> Iterator[Left]:
    left = MOST
    with os.scandir(directory) as entries:
        for entry in entries:
            part = os.fsencode(entry.name)
            try:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    found = [Left((*above, part), status.st_size, status.st_mtime)]
                elif stat.S_ISDIR(status.st_mode) and len(above) < DEEPEST:
                    inner = os.open(part, _DIRECTORY, dir_fd=directory)
                    try:
                        found = list(_files(inner, (*above, part)))
                    finally:
                        os.close(inner)
                else:
                    continue
            except OSError:  # it has gone, or may not be read
                continue
            yield from found[:left]
            left -= len(found)
            if left <= 0:
                return
