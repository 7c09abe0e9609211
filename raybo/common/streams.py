"""The standard output and the standard error of a process, with what C and child processes write to them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any


def flush() -> None:
    """Write what Python and C have buffered."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a job may have replaced or closed it
            stream.flush()
    _flush_c()()


@cache
def _flush_c() -> Callable[[], Any]:
    """Return a function that writes what C has buffered of standard output; of standard error it buffers nothing.

    It does not touch other streams: whoever reads one of them in another thread holds its lock.
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError, ValueError):
        library = ctypes.CDLL(None)
        stdout = ctypes.c_void_p.in_dll(library, "__stdoutp" if sys.platform == "darwin" else "stdout")
        return partial(library.fflush, stdout)
    return lambda: None  # a system whose C library is not found like this


@contextlib.contextmanager
def redirected(*descriptors: int, to: int) -> Iterator[None]:
    """Have 1, 2 or both lead to where another file descriptor does within the block, unless they are closed."""
    flush()
    with contextlib.ExitStack() as held:
        for descriptor in descriptors:
            if (sys.__stdout__, sys.__stderr__)[descriptor - 1] is None:  # closed, and may be any other file by now
                continue
            with contextlib.suppress(OSError):  # of a process without them
                before = os.dup(descriptor)
                held.callback(os.close, before)
                held.callback(os.dup2, before, descriptor)
                os.dup2(to, descriptor)
        held.callback(flush)
        yield
