"""Text that others have chosen is shown on a terminal, and does not command it."""

from __future__ import annotations

import io
import re
import sys

import pytest

import raybo
from raybo import cli
from raybo.common.terminal import visible
from raybo.engine.console import SafeConsole
from raybo.engine.progress import Display
from raybo.engine.status import Status
from raybo.journal import Journal
from tests.reporting.studies import failed_study

OSC = "\x1b]0;owned\x07"
CLEAR = "\x1b[2J"
NASTY = f"a{CLEAR}{OSC}\x9b1m\x08\x7f\u202eb"
SHOWN = r"a\x1b[2J\x1b]0;owned\x9b1m\x7f\u202eb"  # rich itself leaves out \x07 and \x08
# colours, how a live display moves, and the screen that it takes and gives back
OURS = re.compile(r"\x1b\[(\d+(;\d+)*)?m|\x1b\[\?25[lh]|\x1b\[\?1049[lh]|\x1b\[\d*[AHKG]|\r")


def commands_in(text):
    """Return the characters that would command a terminal, without rich's own."""
    return re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", OURS.sub("", text))


def test_what_commands_a_terminal_is_made_visible():
    assert visible(NASTY) == r"a\x1b[2J\x1b]0;owned\x07\x9b1m\x08\x7f\u202eb"
    assert visible("plain\ttext\nin ünïcode, 試験 🙂") == "plain\ttext\nin ünïcode, 試験 🙂"
    assert visible("file-\udcff") == r"file-\udcff"
    assert visible(visible(NASTY)) == visible(NASTY)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """The script in this process, where a journal is as nasty as it can be."""
    monkeypatch.chdir(tmp_path)
    study = failed_study({NASTY: raybo.Categorical([NASTY, "x" + OSC])}, NASTY, name=NASTY, metric="m" + CLEAR)
    journal = Journal(tmp_path / "job.db", study.description)
    journal.append(study.events)
    journal.close()

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["raybo", *map(str, arguments)])
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cli.sys, "exit", lambda code: None)
            cli.main()
        return "".join(capsys.readouterr())

    return run


@pytest.mark.parametrize("colours", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "job.db"],
        ["show", "job.db", "--trial", "1"],
        ["show", "job.db", "--trial", "0"],
        ["show", "job.db", "--watch"],
        ["show", "job.db", "--replay"],
        ["show", f"no{NASTY}.db"],
        [f"show{NASTY}"],
        ["show", "job.db", f"--{NASTY}"],
        ["enqueue", "job.db", f"{NASTY}=1"],
        ["export", "job.db", "--to", NASTY, "-o", "x"],
        ["tune", f"{NASTY}.py"],
    ],
    ids=lambda arguments: visible(" ".join(arguments)) if isinstance(arguments, list) else str(arguments),
)
def test_no_command_passes_on_what_it_is_given(run, monkeypatch, arguments, colours):
    if colours:
        monkeypatch.setenv("FORCE_COLOR", "1")
    told = run(*arguments)
    assert told
    assert commands_in(told) == []


def test_escaping_keeps_text_and_line_breaks(run):
    told = run("show", "job.db", "--trial", "1")
    assert SHOWN in told
    assert "Traceback:\n  line\n" in told


def test_the_live_display_is_not_commanded():
    file = io.StringIO()
    console = SafeConsole(file=file, force_terminal=True, width=100, highlight=False)
    status = Status(
        metric=NASTY, planned=2, finished=1, failed=0, running=1, best=(0, 0.5), suggest_seconds=0.1, elapsed=1.0,
        left=1.0, notes=[f"trial 1 failed: {NASTY}"], last_event=3, printed=[(1, NASTY)],
    )  # fmt: skip
    with Display(console) as display:
        display(status)
    assert SHOWN in file.getvalue()
    assert commands_in(file.getvalue()) == []
    assert "\x1b[" in file.getvalue()  # rich's own
