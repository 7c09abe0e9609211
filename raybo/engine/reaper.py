"""Ends what is left of a local Ray once the command that started it is gone, and removes its directory.

Ray's agents need half a minute to notice that their Ray has died, and nobody removes what was in its directory. This
runs as a process of its own, from its file and with the standard library only, so that it starts in no time.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

LOCK = ".raybo-in-use"  # in a directory, locked by its owner; opened by whoever looks whether it has one
LOOK_SECONDS = 0.5  # between checks whether the command lives
END_SECONDS = 15.0  # in which what is left is ended


def processes_in(directory: str, *, only_rays: bool = True) -> list[int]:
    """Return the processes of this user, or only those of Ray, that have a file of the directory open, not its lock."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with contextlib.suppress(OSError):  # no process, or gone
            if not name.isdigit() or os.stat(f"/proc/{name}").st_uid != os.getuid():
                continue
            with open(f"/proc/{name}/cmdline", "rb") as file:
                command = file.read()
            # Ray's names of workers and agents, and what they are called as they start
            if only_rays and not command.startswith(b"ray::") and b"/ray/" not in command:
                continue
            if any(file.startswith(f"{directory}/") and file != f"{directory}/{LOCK}" for file in _open_files(name)):
                found.append(int(name))
    return found


def _open_files(process: str) -> Iterator[str]:
    for each in os.listdir(f"/proc/{process}/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile
            yield os.readlink(f"/proc/{process}/fd/{each}")


def end_processes(directory: str, seconds: float = END_SECONDS) -> bool:
    """Kill Ray's other processes that use a directory, while there are any; False if some are left after that time."""
    give_up = time.monotonic() + seconds
    while found := set(processes_in(directory)) - {os.getpid()}:  # a script in a directory `ray` is called like Ray's
        if time.monotonic() > give_up:
            return False
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    return True


@contextlib.contextmanager
def reaped(directory: Path) -> Iterator[None]:
    """End the processes of a Ray that uses a directory when this block is left, or this process is lost."""
    command = [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(directory)]
    reaper = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,  # Ctrl-C and the end of a terminal are none of its business
    )
    try:
        yield
    finally:
        end_processes(str(directory), seconds=5.0)
        reaper.kill()
        reaper.wait()


def main() -> None:
    """Wait for the end of the command, this process's parent, and clear up after it."""
    command, directory = int(sys.argv[1]), sys.argv[2]
    while os.getppid() == command:
        time.sleep(LOOK_SECONDS)
    if end_processes(directory):
        time.sleep(LOOK_SECONDS)  # a worker that was just being started is there by now
        end_processes(directory)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
