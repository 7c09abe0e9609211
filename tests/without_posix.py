"""Makes this process look like one on Windows, as far as raybo asks: what it lacks cannot be imported or is not there.

Run as `python -m tests.without_posix SCRIPT ARGUMENT ...`. What raybo builds on is imported before, as it knows this
system for what it is. Windows' locks are imitated by those of Linux that belong to an open file.
"""

from __future__ import annotations

import asyncio  # noqa: F401
import importlib
import importlib.abc
import multiprocessing  # noqa: F401
import os
import runpy
import signal
import struct
import subprocess  # noqa: F401
import sys
import types
from collections.abc import Sequence

MODULES = ("fcntl", "grp", "pwd", "ray", "resource", "termios")
OF_OS = (
    "O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "fchmod", "fork", "geteuid", "getpgid",
    "getuid", "killpg", "pread", "pwrite", "sched_getaffinity", "setsid",
)  # fmt: skip
OF_SIGNAL = ("SIGALRM", "SIGHUP", "SIGKILL", "SIGUSR1", "pthread_sigmask", "setitimer", "sigpending")
BUILT_ON = (
    "aiohttp", "click", "concurrent.futures", "ctypes", "joblib", "logging.handlers", "numpy", "plotly", "rich.console",
    "rich.live", "scipy.linalg", "scipy.optimize", "scipy.stats", "sklearn.ensemble", "sklearn.model_selection",
    "sklearn.svm", "sqlite3", "tempfile", "webbrowser",
)  # fmt: skip


class Lacks(importlib.abc.MetaPathFinder):
    """Finds none of the modules that are lacking."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise as an import does that finds nothing."""
        if name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def take_away() -> None:
    """Take away what Windows does not have, and Ray."""
    import fcntl

    for name in BUILT_ON:
        importlib.import_module(name)

    def locking(file: int, mode: int, size: int) -> None:
        command = fcntl.F_OFD_SETLK if mode else fcntl.F_OFD_SETLKW
        fcntl.fcntl(file, command, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_CUR, 0, size, 0))

    windows = types.ModuleType("msvcrt")
    vars(windows).update(LK_NBLCK=1, LK_LOCK=0, locking=locking)
    sys.modules["msvcrt"] = windows
    for name in MODULES:
        for loaded in [each for each in sys.modules if each.partition(".")[0] == name]:
            del sys.modules[loaded]
    sys.meta_path.insert(0, Lacks())
    for name in OF_OS:
        delattr(os, name)
    for name in OF_SIGNAL:
        delattr(signal, name)
    os.supports_dir_fd, os.supports_fd = set(), set()


def main(command: Sequence[str]) -> None:
    """Run a script without it."""
    take_away()
    sys.argv = list(command)
    runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
