"""The display of a running study: one moving line on a terminal, sparse plain lines elsewhere."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import sys
import types

import pytest
from rich.console import Console

from raybo.engine import progress
from raybo.engine.progress import Display
from raybo.engine.status import Status, clock

STATUS = Status(
    metric="accuracy",
    planned=60,
    finished=10,
    failed=2,
    running=4,
    best=(7, 0.98765432),
    suggest_seconds=0.0123,
    elapsed=75.0,
    left=3_725.0,
    notes=[],
    last_event=40,
)
NEW = dataclasses.replace(STATUS, finished=0, failed=0, running=0, best=None, suggest_seconds=None, left=None)


def shown(*statuses, terminal=False, width=120):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None)
    with Display(console) as display:
        for status in statuses:
            display(status)
            if terminal:
                display._live.refresh()
    return console.file.getvalue()


def test_a_status_is_one_line():
    line = str(STATUS)
    assert line == "12/60 trials, best 0.987654 (trial 7), 4 running, 2 failed, suggestion 12 ms, 62.1 min left"
    pruned = str(dataclasses.replace(STATUS, pruned=3, saved=0.25))
    assert pruned.startswith("15/60 trials, ")
    assert ", 3 pruned (25% of the steps saved)" in pruned
    assert str(NEW) == "0/60 trials, best none yet, 0 running, 0 failed"


def test_plain_lines_are_printed_only_for_news():
    again = dataclasses.replace(STATUS, running=3, elapsed=80.0)
    more = dataclasses.replace(STATUS, finished=11)  # no better, and too soon
    better = dataclasses.replace(STATUS, finished=12, best=(11, 0.99))
    done = dataclasses.replace(STATUS, finished=58, best=(11, 0.99))
    lines = shown(NEW, STATUS, again, more, better, done, done).splitlines()
    assert [line.split()[0] for line in lines] == ["0/60", "12/60", "14/60", "60/60"]


def test_count_is_printed_after_some_seconds(monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    lines = shown(STATUS, dataclasses.replace(STATUS, finished=11)).splitlines()
    assert [line.split()[0] for line in lines] == ["12/60", "13/60"]


def test_notes_are_shown_as_written():
    noted = dataclasses.replace(STATUS, notes=["trial 3 failed: ValueError: [bold]x[/bold]", "trial 4 lost: died"])
    for terminal in (False, True):
        text = shown(noted, terminal=terminal)
        assert "trial 3 failed: ValueError: [bold]x[/bold]" in text
        assert "trial 4 lost: died" in text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_terminal_shows_all_facts_of_a_status(width):
    text = " ".join(shown(NEW, STATUS, terminal=True, width=width).split())
    for fact in ("12/60", "1:15", "about 62.1 min left", "0.987654", "4 running", "2 failed", "12 ms per suggestion"):
        assert fact in text or width < 120
    assert "12/60" in text


def test_two_days_are_shown_as_days():
    assert [clock(seconds) for seconds in (75.0, 3_909.0, 172_799.0, 240_000.0)] == [
        "1:15", "1:05:09", "47:59:59", "2 days 18:40:00",
    ]  # fmt: skip
    assert ", 2.78 days left" in str(dataclasses.replace(STATUS, left=2.4e5))


def test_terminal_shows_the_best_configuration_and_what_runs():
    status = dataclasses.replace(
        STATUS,
        best_config="lr=0.01, depth=3",
        configs=[(15, "lr=0.5, depth=2"), (14, "lr=0.2, depth=9")],
        reporting=[(12, 7, 0.25)],
        steps=20,
    )
    lines = [" ".join(line.split()) for line in shown(status, terminal=True).splitlines()]
    best = lines.index("lr=0.01, depth=3")
    assert "best accuracy 0.987654 (trial 7)" in lines[best - 1]
    assert lines[best + 1 : best + 4] == [
        "trial 12: 0.25 at 7/20",
        "trial 15: lr=0.5, depth=2",
        "trial 14: lr=0.2, depth=9",
    ]
    assert lines[best + 4].startswith("1 more")


def test_terminal_is_restored_after_an_error():
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None)
    display = Display(console)
    with contextlib.suppress(KeyboardInterrupt), display:
        display(STATUS)
        raise KeyboardInterrupt
    text = console.file.getvalue()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor was hidden, and shows again


def test_plain_output_keeps_what_is_announced():
    console = Console(file=io.StringIO(), width=120)
    with Display(console) as display:
        progress.announce(progress.Each([lambda status: None, display]), "Starting Ray ...")
        display(NEW)
    lines = console.file.getvalue().splitlines()
    assert lines == ["Starting Ray ...", str(NEW)]


def test_a_terminal_drops_what_was_announced():
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    with Display(console) as display:
        display.announce("Starting Ray ...")
        display._live.refresh()
        assert "Starting Ray ..." in console.file.getvalue()
        display(STATUS)
        assert "Starting Ray" not in str(display._live.get_renderable())


# ---- what a user of raybo.tune sees


def said_by(watch, *statuses):
    with progress.watching(watch) as seen:
        for status in statuses:
            seen(status)


def test_print_prints_only_news(capsys):
    again = dataclasses.replace(STATUS, running=3, elapsed=80.0, left=3_000.0)
    more = dataclasses.replace(again, finished=11, notes=["trial 3 failed: ValueError: x"])
    said_by(print, NEW, NEW, STATUS, again, again, more, dataclasses.replace(more, notes=[]))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["0/60", "12/60", "trial", "13/60"]


def test_a_function_gets_no_announcement(capsys):
    seen = []
    progress.announce(seen.append, "Starting Ray ...")
    assert seen == []
    with progress.watching(print) as watch:
        progress.announce(watch, "Starting Ray ...")
    assert capsys.readouterr().out == "Starting Ray ...\n"


def test_a_function_sees_every_status():
    seen = []
    said_by(seen.append, STATUS, STATUS)
    assert seen == [STATUS, STATUS]


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("looking", "tested"), [(True, False), (True, True), (False, False)])
def test_progress_is_shown_by_default_on_a_terminal(looking, tested, monkeypatch):
    screen = Screen() if looking else io.StringIO()
    monkeypatch.setattr(progress.sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    if not tested:
        monkeypatch.delenv("PYTEST_CURRENT_TEST")
    with progress.watching(None) as seen:
        assert isinstance(seen, Display) == (looking and not tested)
        if seen is not None:
            seen(STATUS)
    assert ("0.987654" in screen.getvalue()) == (looking and not tested)
    with progress.watching(False) as seen:
        assert seen is None


def test_a_notebook_shows_one_line_that_is_updated(monkeypatch, capsys):
    shown = []

    class Handle:
        def update(self, what):
            shown.append(("update", repr(what)))

    def display(what, *, display_id):
        shown.append(("display", what._repr_html_()))
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    notebook = types.ModuleType("IPython")
    notebook.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    more = dataclasses.replace(STATUS, finished=11, notes=["trial 3 failed: x"])
    said_by(None, STATUS, STATUS, more)
    assert shown == [("display", f"<pre>{STATUS}</pre>"), ("update", str(more))]
    assert capsys.readouterr().out == "trial 3 failed: x\n"
