"""Interruptions of this process, Ctrl-C and the end of a trial's time, kept away from what must not be cut in two."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import TracebackType

SOONEST_SECONDS = 1e-3  # a timer of 0 seconds never rings


class OutOfTime(BaseException):
    """Raised in a trial whose time is over."""


class Guard:
    """A lock within which the thread that made it is not interrupted: that happens when the block is left.

    Only the main thread of a process can be interrupted; elsewhere this is a lock and nothing else.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owner = threading.get_ident()
        self._depth = 0
        self._waiting: BaseException | None = None
        self.can_interrupt = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        if threading.get_ident() == self._owner:
            self._depth += 1
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
        if threading.get_ident() != self._owner:
            return
        self._depth -= 1
        if not self._depth and self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            raise waiting

    def interrupt(self, error: BaseException) -> None:
        """Raise an error now, or when the guarded block is left."""
        if not self._depth:
            raise error
        self._waiting = error

    @contextlib.contextmanager
    def ctrl_c(self) -> Iterator[None]:
        """Have Ctrl-C wait for the end of guarded blocks."""
        before = signal.getsignal(signal.SIGINT)
        if not self.can_interrupt or before is not signal.default_int_handler:  # whoever has another knows better
            yield
            return
        signal.signal(signal.SIGINT, lambda number, frame: self.interrupt(KeyboardInterrupt()))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextlib.contextmanager
    def time_limit(self, seconds: float | None) -> Iterator[None]:
        """Raise `OutOfTime` in the block after these seconds, if this thread can be interrupted."""
        if seconds is None or not self.can_interrupt or not hasattr(signal, "setitimer"):
            yield
            return
        is_over = False

        def ring(number: int, frame: object) -> None:
            if not is_over:
                self.interrupt(OutOfTime())

        before, begun = signal.signal(signal.SIGALRM, ring), time.monotonic()
        left, interval = signal.setitimer(signal.ITIMER_REAL, max(seconds, SOONEST_SECONDS))
        try:
            yield
        finally:
            is_over = True
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)
            if left:  # somebody else's timer goes on
                rest = max(left - (time.monotonic() - begun), SOONEST_SECONDS)
                signal.setitimer(signal.ITIMER_REAL, rest, interval)
            if isinstance(self._waiting, OutOfTime):
                self._waiting = None
