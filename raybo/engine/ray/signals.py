"""Signals, where Ray would do something else with them than other programs do."""

from __future__ import annotations

import ctypes
import signal


def end_on_sigterm() -> None:
    """Have SIGTERM end this process of Ray's at once, as it ends any other.

    Ray's own handler raises SystemExit wherever the process is just then. In a job, nothing would tell that from a
    `sys.exit` of the job's own; the process of a study would live on, and answer nobody.
    """
    # an actor is made in a thread, where Python sets no handler
    ctypes.CDLL(None).signal(ctypes.c_int(signal.SIGTERM), ctypes.c_void_p(signal.SIG_DFL.value))
