"""Keeps numerical libraries to the threads a process was given.

More BLAS threads than cores make small linear algebra many times slower, and a Ray worker learns its share only after
numpy has been loaded, too late for environment variables.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import cast

from threadpoolctl import ThreadpoolController

_known: tuple[int, ThreadpoolController] | None = None


def limit_threads(threads: int) -> AbstractContextManager[object]:
    """Return a context in which BLAS and OpenMP use at most `threads` threads in this process."""
    global _known
    loaded = len(sys.modules)  # finding the libraries takes a millisecond: done again only after something was imported
    if _known is None or _known[0] != loaded:
        _known = loaded, ThreadpoolController()
    return cast("AbstractContextManager[object]", _known[1].limit(limits=max(1, threads)))
