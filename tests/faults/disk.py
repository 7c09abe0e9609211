"""Provide a small disk that can be filled: a file system of its own in memory."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

MEBIBYTES = 64  # the journals of a thousand kills
BLOCKS = (65_536, 4_096, 1)  # bytes: coarse at first, to the last one then


def is_possible() -> bool:
    """Return True if this process may mount a file system."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    try:
        with Disk():
            return True
    except subprocess.CalledProcessError:
        return False


class Disk:
    """The disk; on leaving the context it is gone, with all that it holds.

    Attributes:
        directory: where it is mounted.
    """

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="rb-disk-", dir="/tmp"))
        self._ballast = self.directory / "ballast"

    def __enter__(self) -> Disk:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={MEBIBYTES}m", "tmpfs", str(self.directory)]
        try:
            subprocess.run(mount, check=True, capture_output=True)
        except BaseException:
            self.directory.rmdir()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "-l", str(self.directory)], check=True)
        self.directory.rmdir()

    def make_directory(self) -> Path:
        """A directory on it that nobody else uses."""
        return Path(tempfile.mkdtemp(dir=self.directory))

    def fill(self) -> None:
        """Leave no byte free."""
        with self._ballast.open("ab", buffering=0) as ballast:
            for size in BLOCKS:
                try:
                    while True:
                        ballast.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        """Make room again."""
        self._ballast.unlink(missing_ok=True)
