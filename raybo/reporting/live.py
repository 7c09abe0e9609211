"""The live display of a running study: one line that moves on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from raybo.terminal_text import without_colours

if TYPE_CHECKING:
    from raybo.engine.plan import Status

LINE_SECONDS = 5.0  # between plain lines, unless the best has improved


class Display:
    """Shows each `Status` it is called with. Use as a context, so that the terminal is left in order."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None
        self._last: tuple[float, tuple[object, ...]] = (0.0, ())

    def __enter__(self) -> Display:
        if self._live is not None:
            self._live.start()
            self._live.update(Text("starting Ray ...", style="dim"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, status: Status) -> None:
        """Show a status, and what has happened to single trials since the last one."""
        if status.unprinted:
            self.console.print(Text(f"... {status.unprinted} lines that trials printed are left out", style="dim"))
        for trial, line in status.printed:
            self.console.print(Text(f"{trial:>4} | {without_colours(line)}", style="dim"), soft_wrap=True)
        for note in status.notes:
            self.console.print(Text(note, style="yellow"))
        if self._live is not None:
            self._live.update(_panel(status))
        elif self._is_news(status):
            self.console.print(Text(str(status)), soft_wrap=True)

    def _is_news(self, status: Status) -> bool:
        shown, facts = self._last
        now = (status.best, status.finished, status.failed)
        done = status.finished + status.failed >= status.planned
        improved = not facts or now[0] != facts[0]
        if now == facts or not (improved or done or time.monotonic() - shown > LINE_SECONDS):
            return False
        self._last = (time.monotonic(), now)
        return True


def _panel(status: Status) -> Group:
    done = status.finished + status.failed
    bar = Table.grid(padding=(0, 1))
    bar.add_row(
        ProgressBar(total=status.planned, completed=done, width=30),
        Text(f"{done}/{status.planned}", style="bold"),
        Text(_clock(status.elapsed)),
        Text("" if status.left is None else f"about {_clock(status.left)} left", style="dim"),
    )
    facts = Table.grid(padding=(0, 2))
    for _ in range(4):
        facts.add_column(no_wrap=True)
    best = "none yet" if status.best is None else f"{status.best[1]:.6g} (trial {status.best[0]})"
    suggestion = "" if status.suggest_seconds is None else f"{1_000 * status.suggest_seconds:.0f} ms a suggestion"
    facts.add_row(
        Text.assemble(f"{status.best_is} {status.metric} ", (best, "bold green")),
        Text(f"{status.running} running"),
        Text(f"{status.failed} failed", style="red" if status.failed else "dim"),
        Text(suggestion, style="dim"),
    )
    return Group(bar, facts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
