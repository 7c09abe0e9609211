"""The output of a trial, captured in its worker: of Python and of C, from threads and from processes that it starts.

While a trial runs, its worker's file descriptors 1 and 2 lead to a file of that worker, in the directory of Ray's logs.
A thread sends new output from there to the study several times a second; the rest goes with the trial's result. Output
is not lost with its worker: if a worker on the study's own node dies, the study reads its file.

The file begins with a line that identifies the output: the study, the trial, the attempt, where in the file that
output begins, and how many bytes came before. It is a file, not a pipe, so that whoever writes to it never waits.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from raybo.common import streams, systems

KEPT_BYTES = 100_000  # the last of a trial's output
FILE_BYTES = 10 * KEPT_BYTES  # a worker's file that is longer begins anew
SEND_SECONDS = 0.25
WAIT_SECONDS = 5.0  # a trial's result waits at most so long for the study to receive its output
HEADER_BYTES = 128
PREFIX = "raybo-output-"

Owner: TypeAlias = tuple[str, int, int]  # study, trial, attempt
Chunk: TypeAlias = tuple[int, bytes]  # its first byte's place in the output of an attempt, and its content
Send: TypeAlias = Callable[[int, bytes], Any]


class Capture:
    """Captures the output of this process while a trial runs in it.

    Args:
        directory: in which its file is made.
    """

    def __init__(self, directory: Path) -> None:
        self._own, path = tempfile.mkstemp(prefix=PREFIX, dir=directory)
        self._written = os.open(path, os.O_WRONLY | os.O_APPEND | systems.NOFOLLOW | systems.CLOEXEC)
        self._before = (os.dup(1), os.dup(2))
        self._lock = threading.Lock()
        self._running = threading.Event()
        self._send: Send | None = None
        self._owner: Owner = ("", 0, 0)
        self._at = 0  # in the file: what follows has not been sent
        self._sent = 0  # bytes of this attempt that have been sent
        self._last: Any = None
        threading.Thread(target=self._keep_sending, name="raybo-output", daemon=True).start()

    def begin(self, owner: Owner, send: Send) -> None:
        """Capture what is printed from now on."""
        streams.flush()
        with self._lock:
            size = os.fstat(self._own).st_size
            if size > HEADER_BYTES:
                os.ftruncate(self._own, HEADER_BYTES)
            self._owner, self._send, self._sent, self._last = owner, send, 0, None
            self._start()
        for descriptor in (1, 2):
            os.dup2(self._written, descriptor)
        self._running.set()

    def end(self) -> tuple[Chunk, Any]:
        """Stop capturing; return what has not been sent, and what sending the last chunk returned."""
        streams.flush()
        self._running.clear()
        for descriptor, before in zip((1, 2), self._before, strict=True):
            os.dup2(before, descriptor)
        with self._lock:
            self._send = None
            return self._unsent(), self._last

    def _start(self) -> None:
        header = " ".join(map(str, (*self._owner, HEADER_BYTES, self._sent)))
        systems.write_at(self._own, header.ljust(HEADER_BYTES - 1).encode() + b"\n", 0)
        self._at = HEADER_BYTES

    def _keep_sending(self) -> None:
        while True:
            self._running.wait()
            time.sleep(SEND_SECONDS)
            with self._lock:
                if self._send is not None:
                    offset, data = self._unsent()
                    if data:
                        self._last = self._send(offset, data)
                    if self._at > FILE_BYTES:  # what is printed at this very moment is lost
                        os.ftruncate(self._own, HEADER_BYTES)
                        self._start()

    def _unsent(self) -> Chunk:
        """Return the last of what was printed since the previous call."""
        size = os.fstat(self._own).st_size
        new = max(0, size - self._at)
        self._at, self._sent = size if new else self._at, self._sent + new
        data = systems.read_at(self._own, min(new, KEPT_BYTES), size - min(new, KEPT_BYTES)) if new else b""
        return self._sent - len(data), data


@cache  # once per worker
def _capture(directory: Path) -> Capture | None:
    try:
        return Capture(directory)
    except OSError:  # no such place, no room: the trial runs all the same
        return None


@contextlib.contextmanager
def capture_output(directory: Path, owner: Owner, send: Send, rest: list[Chunk]) -> Iterator[None]:
    """Capture what this process prints within the block.

    Args:
        directory: the one of this worker's file.
        owner: the attempt whose output it is.
        send: called with chunks of it from another thread; returns Ray's reference to that call.
        rest: the last chunk is appended to it, if there is one.
    """
    capture = _capture(directory)
    if capture is None:
        yield
        return
    capture.begin(owner, send)
    try:
        yield
    finally:
        chunk, last = capture.end()
        if last is not None:
            import ray

            wait: Any = ray.wait
            wait([last], timeout=WAIT_SECONDS)  # or the result might arrive before it
        if chunk[1]:
            rest.append(chunk)


def read_unsent(directory: Path, owner: Owner, received: int) -> Chunk:
    """Read what a trial printed and its worker, which died, did not send.

    Args:
        directory: of the files of this node's workers.
        owner: the attempt whose output is wanted.
        received: how many bytes of it are known.
    """
    for path in directory.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
            study, trial, attempt, start, before = file.readline(HEADER_BYTES).decode().split()
            if (study, int(trial), int(attempt)) == owner:
                end = file.seek(0, os.SEEK_END)
                first = max(int(start) + max(0, received - int(before)), end - KEPT_BYTES)
                file.seek(first)
                return int(before) + first - int(start), file.read(KEPT_BYTES)
    return received, b""
