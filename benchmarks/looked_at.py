"""The cost of looking at a study of 20,000 trials: to load it, show it, watch it, and draw its report.

Eight parameters, integers and a category among them; one trial in twenty has failed. Seconds are of a processor, the
start of a command's process included. A frame of `raybo show --watch` is drawn after each further event.
"""

from __future__ import annotations

import contextlib
import io
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

import raybo
from benchmarks.figures import Figures, at_least, at_most, command
from benchmarks.report import study_of
from raybo.journal import Journal, Tail
from raybo.reporting.watch import Window
from raybo.searcher import Searcher
from raybo.study.study import Study

QUICK = {"trials": 2_000}
FRAMES = 50


def spent_by(*arguments: str) -> float:
    """Processor seconds of a command of raybo."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "raybo.cli", *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def frames_a_second(path: Path) -> float:
    """Measure how many frames of a window of 160 by 48 are drawn in a processor second, each with an event more."""
    tail, spent = Tail(path), 0.0
    events = tail.read()
    study = Study(tail.description, events, path)
    searcher = Searcher.of(study.description)
    for event in events:
        searcher.apply(event)
    console = Console(width=160, height=48, force_terminal=True, file=io.StringIO())
    with contextlib.closing(Journal(path, study.description)) as journal:
        for _ in range(FRAMES):
            journal.append([searcher.apply(searcher.propose(searcher.history))])
            begun = time.process_time()
            study.extend(tail.read())
            console.print(Window(study, 60))
            spent += time.process_time() - begun
    return FRAMES / spent


def figures(trials: int = 20_000) -> Figures:
    """A figure for each way to look at it."""
    made = study_of(trials)
    with tempfile.TemporaryDirectory() as directory:
        path, page = Path(directory, "study.db"), Path(directory, "report.html")
        with contextlib.closing(Journal(path, made.description)) as journal:
            journal.append(made.events)
        begun = time.process_time()
        raybo.load(path)
        spent, size = time.process_time() - begun, path.stat().st_size / 1e6
        yield at_most(2, spent, f"raybo.load, {trials:,} trials", "s of a processor", f"{size:.0f} MB")
        yield at_most(2, spent_by("show", str(path)), f"raybo show, {trials:,} trials", "s of a processor")
        what = f"frames of raybo show --watch, {trials:,} trials"
        yield at_least(10, frames_a_second(path), what, "in a second of a processor")
        spent = spent_by("plot", str(path), "-o", str(page))
        yield at_most(10, spent, f"raybo plot, {trials:,} trials", "s of a processor")
        yield at_most(10, page.stat().st_size / 1e6, "its page", "MB")


if __name__ == "__main__":
    command(figures)
