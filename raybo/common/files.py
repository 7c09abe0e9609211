"""Writing a file that a user has named, without harm to what is there."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from pathlib import Path

from raybo.common import systems
from raybo.common.errors import RayboError

STANDARD_OUTPUT = "-"


def write_file(path: Path | str, content: str | bytes) -> None:
    """Write a file in one step, so that whoever reads it meanwhile sees the old one or the new one.

    A link is followed: what it leads to is written. What is there but not a regular file, such as a pipe or a terminal,
    is written to as it is. A file that is replaced keeps its mode.

    Args:
        path: the file; "-" for standard output.
        content: text is written in UTF-8.
    Raises:
        RayboError: it cannot be written.
        BrokenPipeError: nobody reads it any more.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        if str(path) == STANDARD_OUTPUT:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        elif (descriptor := _descriptor(path)) is not None:
            sys.stdout.flush()  # keeps earlier output first
            with open(os.dup(descriptor), "wb") as file:  # not opened again: that would begin at a file's beginning
                file.write(data)
        elif is_stream(path):
            with open(os.open(path, os.O_WRONLY | systems.NOCTTY), "wb") as file:
                file.write(data)
        else:
            _replace(Path(os.path.realpath(path)), data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RayboError(f"{path}: it cannot be written ({error.strerror}); give another file") from error


def make_directory(path: Path | str) -> Path:
    """Make a directory that a user has named, with those above it, unless it is there; return it.

    Raises:
        RayboError: it cannot be made.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RayboError(f"{path}: no directory can be made there ({error.strerror}); give another one") from error
    return Path(path)


def is_stream(path: Path | str) -> bool:
    """Return True for standard output and anything that is neither a file nor a directory, such as a pipe.

    So are names of this process's open files, such as `/dev/stdout`, wherever they lead.
    """
    if str(path) == STANDARD_OUTPUT or _descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _descriptor(path: Path | str) -> int | None:
    """Return the file descriptor of this process that the path names, as `/dev/stdout` does; None for other paths."""
    path = Path(os.path.abspath(path))
    for _ in range(40):  # links, of which some systems follow no more
        if os.path.realpath(path.parent) in (f"/proc/{os.getpid()}/fd", "/dev/fd") and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)
    return None


def _replace(path: Path, data: bytes) -> None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mode = 0o666 & ~_umask()
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".raybo-")
    try:
        with open(handle, "wb") as file:
            file.write(data)
            os.chmod(file.fileno() if os.chmod in os.supports_fd else scratch, mode)
        os.replace(scratch, path)
    except BaseException:  # passed on; nothing half written stays
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
