"""Where what a job prints in the process of a command goes: nowhere, or to standard error beside JSON."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator

from raybo.common.streams import redirected


@contextlib.contextmanager
def job_output(*, quiet: bool, as_json: bool) -> Iterator[None]:
    """Show nothing of what a job prints in this process within the block or, for JSON, all of it on standard error.

    This holds for whatever writes to the file descriptors too: libraries in C and child processes.
    """
    with contextlib.ExitStack() as held:
        null = held.enter_context(open(os.devnull, "w", encoding="utf-8"))
        if quiet:
            held.enter_context(_own_warnings())
            held.enter_context(redirected(1, 2, to=null.fileno()))
            held.enter_context(contextlib.redirect_stdout(null))
            held.enter_context(contextlib.redirect_stderr(null))
        elif as_json:
            held.enter_context(redirected(1, to=null.fileno() if sys.__stderr__ is None else 2))
            held.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield


@contextlib.contextmanager
def _own_warnings() -> Iterator[None]:
    """Show raybo's own warnings within the block where standard error leads now."""
    if sys.__stderr__ is None:
        yield
        return
    stream = open(os.dup(2), "w", encoding="utf-8", errors="backslashreplace")
    handler, logger = logging.StreamHandler(stream), logging.getLogger("raybo")
    with stream:
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)
