"""Signals, where Ray would do something else with them than other programs do."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HELD = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
CAN_WAIT = hasattr(signal, "pthread_sigmask")  # not on Windows
HELD_SECONDS = 15  # a signal is held for so long at most; then it ends the process wherever that is


def end_on_sigterm() -> None:
    """Have SIGTERM end this process of Ray's at once, as it ends any other.

    Ray's own handler raises SystemExit wherever the process is just then. In a job, nothing would tell that from a
    `sys.exit` of the job's own; the process of a study would live on, and answer nobody.
    """
    _reset(signal.SIGTERM)  # an actor is made in a thread, where Python sets no handler


@contextlib.contextmanager
def signals_held(ray: Any = None) -> Iterator[None]:
    """Have Ctrl-C, SIGTERM and SIGHUP wait while Ray starts or stops in this process, and then do what they do.

    In the middle of it, an exception ends in a segmentation fault or in a C++ stack. Handlers that Ray sets meanwhile
    do not stay.

    Args:
        ray: the module, if it starts processes meanwhile: for these, the signals are not to wait.
    """
    if not CAN_WAIT or threading.current_thread() is not threading.main_thread():  # signals are not handled here
        yield
        return
    came: list[int] = []
    handlers = {how: signal.getsignal(how) for how in HELD}
    is_done = threading.Event()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        threading.Thread(target=_lose_patience, args=(is_done, came), daemon=True).start()  # its signals wait as well
        if handlers[signal.SIGINT] is signal.default_int_handler:  # another thread might take it
            signal.signal(signal.SIGINT, lambda number, _: came.append(number))
        with _not_in_processes(ray) if ray is not None else contextlib.nullcontext():
            yield
    finally:
        is_done.set()
        for how, handler in handlers.items():
            if handler is not None:  # one that Python knows
                signal.signal(how, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number in came[:1]:
            signal.raise_signal(number)


@contextlib.contextmanager
def deaf_threads() -> Iterator[None]:
    """Have threads that are started meanwhile take no signals, which then wait while those of the main thread do."""
    if not CAN_WAIT:
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextlib.contextmanager
def _not_in_processes(ray: Any) -> Iterator[None]:
    """Have the processes that Ray starts begin without signals that wait.

    SIGTERM to the GCS goes on waiting, for good: instead of ending, it would serve nobody from then on, and wait for
    requests that it has yet to answer; after a minute, Ray would abort this process.
    """
    services = ray._private.services
    popen = services.ConsolePopen

    def start(command: Any, *args: Any, preexec_fn: Any = None, **keywords: Any) -> Any:
        is_gcs = Path(command[0]).name == "gcs_server"
        freed = (signal.SIGHUP,) if is_gcs else (signal.SIGTERM, signal.SIGHUP)  # Ray's own hold SIGINT

        def prepare() -> None:
            if preexec_fn is not None:
                preexec_fn()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, freed)

        started = popen(command, *args, preexec_fn=prepare, **keywords)
        if is_gcs:
            started.terminate = started.kill  # at the end Ray would wait a second for it
        return started

    services.ConsolePopen = start
    try:
        yield
    finally:
        services.ConsolePopen = popen


def held_signal() -> signal.Signals | None:
    """Return a signal to this process that waits; None if none does."""
    return next((how for how in HELD if how in signal.sigpending()), None)


def end_by(how: signal.Signals) -> None:
    """End this process by a signal, whatever it does with it, and even if it waits; in any thread."""
    _reset(how)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {how})
    os.kill(os.getpid(), how)


def _lose_patience(is_done: threading.Event, came: list[int]) -> None:
    """End this process by a signal that has waited for too long."""
    waited = 0
    while not is_done.wait(1.0):
        how = signal.Signals(came[0]) if came else held_signal()
        waited = 0 if how is None else waited + 1
        if how is not None and waited > HELD_SECONDS:
            end_by(how)


def _reset(how: signal.Signals) -> None:
    """Have a signal end this process, whatever handler it has; in any thread."""
    ctypes.CDLL(None).signal(ctypes.c_int(how), ctypes.c_void_p(signal.SIG_DFL.value))
