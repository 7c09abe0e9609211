"""Follows a running study from another process, through its journal alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment

from raybo import journal
from raybo.record.states import OPEN, State
from raybo.reporting.tables import best_view, heading, study_view
from raybo.reporting.trials_table import trials_table
from raybo.study.study import Study

LOOK_SECONDS = 1.0  # between looks at the journal
FRAME_SECONDS = 0.1  # the same where a table on a terminal is all that is made of it


def follow(
    path: Path,
    see: Callable[[Study], None],
    *,
    pause: Callable[[float], None] = time.sleep,
    every: float | None = None,
) -> Study:
    """Call `see` with a study now and whenever something has happened in it, until nobody writes it any more.

    It is read on from where it was read before, and is the same object every time. Half of the time at most is spent.

    Args:
        path: the journal.
        see: what looks at the study.
        pause: waits for so many seconds.
        every: seconds between looks; None for LOOK_SECONDS.
    Raises:
        JournalError: there is no such journal, or it cannot be read.
    """
    tail, study, times = journal.Tail(path), None, 0
    while True:
        begun = time.monotonic()
        is_running = journal.in_use(path)  # before it is read, so that nothing written until then is missed
        events = tail.read()
        if study is None or tail.times != times:
            study, times = Study(tail.description, events, path), tail.times
            see(study)
        elif events:
            study.extend(events)
            see(study)
        if not is_running:
            return study
        pause(max(LOOK_SECONDS if every is None else every, time.monotonic() - begun))


def watch_study(path: Path, console: Console, last: int) -> None:
    """Show a study until it ends: a table that fills a terminal's window, elsewhere a line whenever a trial ends."""
    if not console.is_terminal:
        seen = -1

        def tell(study: Study) -> None:
            nonlocal seen
            ended = len(study.trials) - study.count(*OPEN)
            if ended != seen:
                seen = ended
                console.print(repr(study), soft_wrap=True)

        console.print(study_view(follow(path, tell), last))
        return
    # drawn in this thread alone: another would read the study while it grows
    with Live(Window(None, last), console=console, auto_refresh=False, screen=True) as live:
        size = console.size

        def pause(seconds: float) -> None:
            nonlocal size
            time.sleep(seconds)
            if console.size != size:
                size = console.size
                live.refresh()

        def draw(study: Study) -> None:
            live.update(Window(study, last), refresh=True)

        study = follow(path, draw, pause=pause, every=FRAME_SECONDS)
    console.print(study_view(study, last))


@dataclass(frozen=True)
class Window:
    """A study in a terminal's window, whatever its size is when it is drawn: the heading, the newest trials, the best.

    Attributes:
        study: which; None before it has been read.
        last: trials at most.
    """

    study: Study | None
    last: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As many of the newest trials as there is room for, a line each; the best is always there."""
        study, (width, height) = self.study, console.size
        options = options.update(width=width, height=None)
        if study is None:
            return

        def lines(shown: RenderableType, most: int) -> list[list[Segment]]:
            return console.render_lines(shown, options, pad=False)[:most]

        has_best = study.count(State.FINISHED) or study.furthest is not None
        best = lines(best_view(study, one_line=True), max(2, height - 2)) if has_best else []
        top = lines(heading(study), max(0, min(3, height - len(best) - 6)))
        room = height - len(best) - len(top)
        rows = []
        count = min(self.last, len(study.trials), room)
        while count > 0:
            made = lines(trials_table(study, study.trials[-count:], one_line=True), 2 * height)
            made = [line for line in made if any(segment.text.strip() for segment in line)]
            if len(made) <= room:
                rows = made
                break
            count -= len(made) - room  # a line each
        for i, line in enumerate([*top, *rows, *best]):
            yield from ([Segment.line()] if i else [])
            yield from line
