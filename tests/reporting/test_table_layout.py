"""Tables fit windows of any size without breaking or cutting a number."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

import raybo
from raybo.record.events import Failed
from raybo.record.states import State
from raybo.reporting.formatting import config_values
from raybo.reporting.table_layout import lines_of, named_grid, piece_of, text_table
from raybo.reporting.tables import best_view, study_view
from raybo.reporting.trial_view import trial_view
from raybo.reporting.trials_table import trials_table
from raybo.reporting.watch import Window
from raybo.study.study import Study
from tests.reporting.studies import run

SPACE = {"optimiser": {"learning_rate_of_the_last_layers": raybo.Float(1e-9, 1e9, log=True)}, "x": raybo.Float(-1, 0)}
STUDIES = [run("random", 40), run("random", 40, context={"load": raybo.Float(0, 1)}), run("random", 40, space=SPACE)]


def text_of(view, width, height=24):
    console = Console(width=width, height=height, force_terminal=True, color_system=None, file=io.StringIO())
    console.print(view)
    return console.file.getvalue()


def numbers(text):
    return set(re.findall(r"(?<![\w.+-])-?\d+\.\d+(?:e[+-]?\d+)?", text))


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("width", [30, 60, 80, 120, 250])
def test_no_number_is_broken_at_any_width(study, width):
    # all that is whole in a window of any width is whole in this one
    for view in (study_view(study, 10), best_view(study), trial_view(study, 3)):
        assert numbers(text_of(view, width)) <= numbers(text_of(view, 1_000))
    for trial in study.trials[-10:]:
        text = text_of(trials_table(study, [trial]), width)
        for _, value in config_values(study, trial):
            assert value in text
        assert trial.value is None or f"{trial.value:.6g}" in text


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("size", [(80, 24), (80, 12), (60, 15), (40, 10), (30, 6), (120, 30), (200, 60), (25, 3)])
def test_window_shows_the_newest_trials_and_the_best(study, size):
    width, height = size
    lines = text_of(Window(study, 60), width, height).splitlines()
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert f"{study.best.value:.6g}" in "\n".join(lines)
    listed = [int(line.split()[0]) for line in lines if re.match(r" *\d+ +(finished|failed|pending)", line)]
    assert listed == list(range(40 - len(listed), 40))
    if height >= 6:
        assert listed
    if size == (80, 24):
        assert len(listed) >= 14
    if size == (200, 60):
        assert len(listed) == 40
    assert numbers("\n".join(lines)) <= numbers(text_of(study_view(study, 60), 1_000))


def test_a_resized_window_is_filled_again():
    console = Console(width=80, height=24, force_terminal=True, color_system=None, file=io.StringIO())
    for width, height in ((80, 24), (50, 9), (100, 40)):
        console.size = (width, height)
        console.file = io.StringIO()
        console.print(Window(STUDIES[0], 100))
        lines = console.file.getvalue().splitlines()
        assert height - 2 <= len(lines) <= height
        assert max(map(len, lines)) <= width


def test_a_window_without_trials_or_results():
    study = run("random", 12, failing=1.0)
    assert study.count(State.FINISHED) == 0
    assert "0 finished" in text_of(Window(study, 20), 80)
    assert text_of(Window(None, 20), 80).strip() == ""
    empty = raybo.Study(study.description, [])
    assert "0 finished" in text_of(Window(empty, 20), 80)


def test_names_and_texts_are_shortened_but_never_numbers():
    assert piece_of("learning_rate", "0.000123457", 30) == "learning_rate=0.000123457"
    assert piece_of("learning_rate", "0.000123457", 20) == "…ng_rate=0.000123457"
    assert piece_of("learning_rate", "0.000123457", 5) == "0.000123457"
    assert piece_of("kernel", "a_very_long_word_of_a_text", 20) == "kernel=a_very_long_…"
    assert lines_of([("a", "1"), ("b", "2.5"), ("c", "x")], 10) == ["a=1,", "b=2.5, c=x"]
    assert lines_of([], 10) == [""]


def test_a_narrow_window_shows_the_failure_reason():
    study = run("random", 40)
    number = next(trial.number for trial in study.trials if trial.state is State.FAILED)
    renamed = [replace(e, reason="ValueError: it diverged") if isinstance(e, Failed) else e for e in study.events]
    failed = Study(study.description, renamed).trials[number]
    for width in (40, 80, 120):
        text = " ".join(text_of(trials_table(study, [failed]), width).split())
        assert re.search("ValueError:.* it.* diverged", text)


def test_tables_of_text_keep_their_numbers_whole():
    rows = [("a method with a very long name", "0.123456 ± 0.0123456", "wins against all of the others")]
    assert {"0.123456", "0.0123456"} <= set(text_of(text_table(("method", "value", "verdict"), rows), 40).split())
    assert "0.000123457" in text_of(named_grid([("a name that is very long indeed", "0.000123457")]), 24)
