"""One benchmark in a process of its own, so that its memory, its imports and its end are its own too."""

from __future__ import annotations

import importlib
import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.figures import Figure, timed

FAILED = "the benchmark itself"


def measured(name: str, quick: bool) -> Iterator[tuple[Figure, float]]:
    """The figures of a benchmark and the seconds that each took; if it fails, a last one that says so.

    A benchmark that takes hours by default says in `IN_BRIEF` with which parameters it is run beside the others.
    """
    source, sink = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=measure, args=(name, quick, sink))
    process.start()
    sink.close()
    try:
        while (row := source.recv()) is not None:
            yield row
    except EOFError:  # it has ended without its last word, and written why
        yield Figure(FAILED, "failed; see above", "to end", False), 0.0
    process.join()


def measure(name: str, quick: bool, sink: Connection[Any, Any]) -> None:
    """Send a benchmark's figures, each with its seconds, and None at the end."""
    module = importlib.import_module(f"benchmarks.{name}")
    parameters = module.QUICK if quick else getattr(module, "IN_BRIEF", {})
    for figure in timed(module.figures(**parameters)):
        sink.send(figure)
    sink.send(None)
