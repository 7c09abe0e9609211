"""The output of a command in whose process trials run: a closed pipe or a full disk behind it is no trial's failure."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
from typing import TextIO

from raybo.common.errors import RayboError
from raybo.common.messages import first_line
from raybo.engine.lifecycle import Occurrence
from raybo.record.events import EventData

UNREAD = "nobody reads the output any more"


class Unwritable(RayboError):
    """The output cannot be written, as its disk is full; says so without a remedy, which depends on the command."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"the output cannot be written ({error.strerror or first_line(error)})")


class Outlet:
    """Tells whether a trial failed only because its output could not be written. Use as a context while trials run."""

    def __init__(self) -> None:
        self._copies: list[int] = []  # of the descriptors: a display that finds its pipe closed replaces its own

    def __enter__(self) -> Outlet:
        for descriptor in (1, 2):
            with contextlib.suppress(OSError):  # it is closed
                self._copies.append(os.dup(descriptor))
        return self

    def __exit__(self, *error: object) -> None:
        while self._copies:
            os.close(self._copies.pop())

    def require(self, occurrence: Occurrence, data: EventData) -> None:
        """Do nothing unless a trial ended like this because what it printed could not be written.

        Raises:
            BrokenPipeError: nobody reads it any more.
            Unwritable: it cannot be written for another reason.
        """
        if occurrence not in (Occurrence.RAISED, Occurrence.WORKER_LOST):
            return
        said = f"{data.get('reason')} {data.get('traceback')}"
        if ("BrokenPipeError" in said or "SIGPIPE" in said) and any(map(_is_unread, self._copies)):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        for stream in filter(None, (sys.stdout, sys.stderr)):
            error = write_error(stream, is_tried=occurrence is Occurrence.WORKER_LOST)
            if error is not None and f"[Errno {error.errno}]" in said:
                raise Unwritable(error) from error


def write_error(stream: TextIO, *, is_tried: bool) -> OSError | None:
    """Return the error with which a stream cannot be written; None if it can be, or is closed.

    Args:
        stream: what is buffered is written.
        is_tried: a line end is written too, as there may be nothing buffered.
    """
    try:
        stream.flush()
        if is_tried:
            stream.write("\n")
            stream.flush()
    except OSError as error:
        return error
    except ValueError:  # a job has closed it
        pass
    return None


def _is_unread(descriptor: int) -> bool:
    """Return True if the other end of a pipe or a connection is closed."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
