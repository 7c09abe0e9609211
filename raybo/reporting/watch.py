"""Follows a running study from another process, by its journal alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.live import Live

from raybo import journal
from raybo.events import State
from raybo.reporting.tables import study_view
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
    """Show a study until it ends: on a terminal a table that moves, elsewhere a line whenever something has ended."""
    if not console.is_terminal:
        seen = -1

        def tell(study: Study) -> None:
            nonlocal seen
            ended = len(study.trials) - study.count(State.PENDING)
            if ended != seen:
                seen = ended
                console.print(repr(study), soft_wrap=True)

        console.print(study_view(follow(path, tell), last))
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop", transient=True) as live:
        room = max(1, min(last, console.height - 12))
        study = follow(path, lambda study: live.update(study_view(study, room), refresh=True))
    console.print(study_view(study, last))
