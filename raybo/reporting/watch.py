"""Follows a running study from another process, by its journal alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment

from raybo import journal
from raybo.events import OPEN, State
from raybo.reporting.tables import best_view, heading, study_view, trials_table
from raybo.study import Study, load

LOOK_SECONDS = 1.0  # between looks at the journal


def follow(path: Path, see: Callable[[Study], None], *, pause: Callable[[float], None] = time.sleep) -> Study:
    """Call `see` with a study now and whenever something has happened in it, until nobody writes it any more.

    Args:
        path: the journal.
        see: what looks at the study.
        pause: waits for so many seconds.
    Raises:
        JournalError: there is no such journal, or it cannot be read.
    """
    last = -1
    while True:
        is_running = journal.in_use(path)  # before it is read, so that nothing written until then is missed
        study = load(path)
        number = study.events[-1].number if study.events else 0
        if number != last:
            last = number
            see(study)
        if not is_running:
            return study
        pause(LOOK_SECONDS)


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
    with Live(Window(None, last), console=console, refresh_per_second=2, screen=True) as live:
        study = follow(path, lambda study: live.update(Window(study, last), refresh=True))
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
        for count in range(min(self.last, len(study.trials), room), 0, -1):
            made = lines(trials_table(study, study.trials[-count:], one_line=True), height)
            made = [line for line in made if any(segment.text.strip() for segment in line)]
            if len(made) <= room:
                rows = made
                break
        for i, line in enumerate([*top, *rows, *best]):
            yield from ([Segment.line()] if i else [])
            yield from line
