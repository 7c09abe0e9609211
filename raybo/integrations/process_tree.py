"""Runs a command and ends all processes that come of it: as a script of its own, without raybo's other code.

It is no child of the process that wants the command run, so that it outlives its SIGKILL. It knows of that by the end
of its standard input, adopts what launchers leave behind (on Linux), and prints the command's exit code at the end.

    python process_tree.py SECONDS COMMAND ...
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

LOOK_SECONDS = 0.05
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of Linux


def main() -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    status = os.dup(1)  # and what the command prints goes where that of the trial does
    os.dup2(2, 1)
    grace, command = float(sys.argv[1]), sys.argv[2:]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_with_signals, pass_fds=()
        )
    except OSError as error:
        os.write(status, f"cannot be started: {error}\n".encode())
        return
    code: int | None = None
    while code is None and not select.select([0], [], [], LOOK_SECONDS)[0]:
        code = process.poll()
    end(process, grace if code is None else 0.0)
    os.write(status, f"{process.wait() if code is None else code}\n".encode())


def _with_signals() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end(process: subprocess.Popen[bytes], grace: float) -> None:
    """End a command and its descendants: by SIGTERM, which launchers pass on, and after a grace by SIGKILL."""
    until = time.monotonic() + grace
    if grace:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
    while time.monotonic() < until and (process.poll() is None or descendants()):
        _reap(process)
        time.sleep(LOOK_SECONDS)
    if process.poll() is None:  # without /proc, its group is all that is known
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    while left := descendants():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _reap(process)
        time.sleep(0.01)


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Take the exit codes of ended processes that were adopted."""
    process.poll()
    for pid in descendants():
        if pid != process.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def descendants() -> set[int]:
    """Return the processes that descend from this one, zombies excluded."""
    parents = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", errors="replace") as file:
                    state, parent = file.read().rpartition(")")[2].split()[:2]
                if state != "Z" or int(parent) == os.getpid():
                    parents[int(name)] = (int(parent), state)
    found = {os.getpid()}
    while more := {pid for pid, (parent, _) in parents.items() if parent in found} - found:
        found |= more
    return {pid for pid in found - {os.getpid()} if parents[pid][1] != "Z"}


if __name__ == "__main__":
    main()
