"""One benchmark in a process of its own, so that its memory, its imports and its end are its own too."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.figures import Figure, timed
from raybo.common.threads import limit_threads

FAILED = "the benchmark itself"


def measured(name: str, quick: bool, threads: int | None = None) -> Iterator[tuple[Figure, float]]:
    """The figures of a benchmark and the seconds that each took; if it fails, a last one that says so.

    Linear algebra and OpenMP have `threads` threads there; None: as they choose. A benchmark that takes hours by itself
    says in `IN_BRIEF` with which parameters it is run beside the others.
    """
    source, sink = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=measure, args=(name, quick, threads, sink))
    process.start()
    sink.close()
    try:
        while (row := source.recv()) is not None:
            yield row
    except EOFError:  # it has ended without its last word, and written why
        yield Figure(FAILED, "failed; see above", "to end", False), 0.0
    process.join()


def measure(name: str, quick: bool, threads: int | None, sink: Connection[Any, Any]) -> None:
    """Send a benchmark's figures, each with its seconds, and None at the end."""
    module = importlib.import_module(f"benchmarks.{name}")
    parameters = module.QUICK if quick else getattr(module, "IN_BRIEF", {})
    with contextlib.nullcontext() if threads is None else limit_threads(threads):
        for figure in timed(module.figures(**parameters)):
            sink.send(figure)
    sink.send(None)
