"""The progress of a running study: live on a terminal, an updated line in a notebook, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import html
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from raybo.common.messages import time_in_words
from raybo.common.terminal import without_colours
from raybo.engine.ray.signals import deaf_threads
from raybo.engine.status import clock

if TYPE_CHECKING:
    from raybo.engine.status import Status

Watch: TypeAlias = Callable[["Status"], object]

REPORTING = 4  # the last values of so many running trials are shown
LINE_SECONDS = 5.0  # between two plain lines, unless the best has improved


class Display:
    """Shows each `Status` it is called with. Use as a context, so that the terminal is left in order."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None
        self._last: tuple[float, tuple[object, ...]] = (0.0, ())

    def __enter__(self) -> Display:
        if self._live is not None:
            with deaf_threads():
                self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def announce(self, text: str) -> None:
        """Show what is done before there is a status: a terminal until there is one, plain output for good."""
        if self._live is not None:
            self._live.update(Text(text, style="dim"))
        else:
            self.console.print(Text(text), soft_wrap=True)

    def __call__(self, status: Status) -> None:
        """Show a status, and the notes and lines since the last one."""
        if status.unprinted:
            self.console.print(Text(f"... {status.unprinted} lines printed by trials are left out", style="dim"))
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
        now = status.facts
        done = status.planned is not None and status.finished + status.failed >= status.planned
        improved = not facts or now[0] != facts[0]
        if now == facts or not (improved or done or time.monotonic() - shown > LINE_SECONDS):
            return False
        self._last = (time.monotonic(), now)
        return True


class Each:
    """Shows each `Status` to several that watch."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self.watches = watches

    def __call__(self, status: Status) -> None:
        """Show a status to each."""
        for watch in self.watches:
            watch(status)

    def announce(self, text: str) -> None:
        """Announce to each that takes it what is done before there is a status."""
        for watch in self.watches:
            announce(watch, text)


def announce(watch: Watch | None, text: str) -> None:
    """Say what is done before there is a status, if what watches the study takes more than statuses."""
    if isinstance(watch, (Display, Each, Lines, NotebookLine)):
        watch.announce(text)


@contextlib.contextmanager
def watching(watch: Watch | Literal[False] | None) -> Iterator[Watch | None]:
    """Yield what watches a study: `print` shows only news; None chooses what suits a terminal, a notebook or a file."""
    if watch is False:
        yield None
    elif watch is print:
        yield Lines(print)
    elif watch is not None:
        yield watch
    elif _in_notebook():
        yield NotebookLine()
    elif sys.stdout is not None and sys.stdout.isatty() and "PYTEST_CURRENT_TEST" not in os.environ:
        from raybo.engine.console import SafeConsole

        with Display(SafeConsole(highlight=False)) as display:
            yield display
    else:
        yield None


class Lines:
    """Prints each note, and a line if a status has news: another best, or a trial that has ended."""

    def __init__(self, print_line: Callable[[str], object]) -> None:
        self._print = print_line
        self._last: tuple[object, ...] | None = None

    def announce(self, text: str) -> None:
        """Print what is done before there is a status."""
        self._print(text)

    def __call__(self, status: Status) -> None:
        """Print what is new."""
        for note in status.notes:
            self._print(note)
        if status.facts != self._last:
            self._last = status.facts
            self._print(str(status))


class NotebookLine:
    """A status as one line under a notebook's cell, updated in place; notes stay above it."""

    def __init__(self) -> None:
        self._shown: Any = None
        self._text = ""

    def announce(self, text: str) -> None:
        """Show what is done before there is a status."""
        self._show(text)

    def __call__(self, status: Status) -> None:
        """Update the line."""
        for note in status.notes:
            print(note)  # noqa: T201  # into the cell, as a user's own prints
        self._show(str(status))

    def _show(self, text: str) -> None:
        from IPython.display import display

        if text == self._text:
            return
        self._text = text
        if self._shown is None:
            self._shown = display(self, display_id=True)
        else:
            self._shown.update(self)

    def __repr__(self) -> str:
        """The line as plain text."""
        return self._text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self._text)}</pre>"


def _in_notebook() -> bool:
    """True if this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _panel(status: Status) -> Group:
    bar = Table.grid(padding=(0, 1))
    left = "" if status.left is None else f"about {time_in_words(round(status.left))} left"
    if status.budget is None:
        done: tuple[float, float] = status.ended, status.planned or 0
        texts = [Text(status.count, style="bold"), Text(clock(status.elapsed)), Text(left, style="dim")]
    else:
        done = status.budget[0], status.budget[1].amount
        texts = [Text(f"{status.count} trials", style="bold"), Text(status.spent), Text(left, style="dim")]
    bar.add_row(ProgressBar(total=done[1], completed=done[0], width=30), *texts)
    facts = Table.grid(padding=(0, 2))
    for _ in range(4):
        facts.add_column(no_wrap=True)
    name, reached = status.so_far
    of = "" if status.front is not None else f" {status.metric}"
    suggestion = "" if status.suggest_seconds is None else f"{1_000 * status.suggest_seconds:.0f} ms per suggestion"
    facts.add_row(
        Text.assemble(f"{name}{of} ", (reached, "bold green")),
        Text(f"{status.running} running"),
        Text(f"{status.failed} failed", style="red" if status.failed else "dim"),
        Text(suggestion, style="dim"),
    )
    outlook = [Text(status.outlook, style="dim")] if status.outlook else []
    why = [Text(f"stopping: {status.reason}", style="dim")] if status.reason else []
    best = [_line(f"  {status.best_config}", "")] if status.best_config else []
    return Group(bar, facts, *best, *_running(status), *outlook, *why)


def _running(status: Status) -> list[Text]:
    """Return a line for each of the trials that run, with its last report, and one on those that were pruned."""
    configs = dict(status.configs)
    reports = {
        number: f"{value:.5g} at {step}{'' if status.steps is None else f'/{status.steps}'}"
        for number, step, value in status.reporting
    }
    numbers = [*(number for number in reports), *(number for number in configs if number not in reports)][:REPORTING]
    lines = [
        f"trial {number}: {'; '.join(filter(None, [reports.get(number), configs.get(number)]))}" for number in numbers
    ]
    if lines and (more := max(status.running, len(reports)) - len(lines)) > 0:
        lines.append(f"{more} more")
    return [_line(line, "dim") for line in [*lines, status.apart.removeprefix(", ")] if line]


def _line(text: str, style: str) -> Text:
    return Text(text.replace("\n", " "), style, no_wrap=True, overflow="ellipsis")
