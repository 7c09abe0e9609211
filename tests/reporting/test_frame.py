"""A few far worse values stretch neither an axis nor a scale of colours, and are marked at its edge."""

from __future__ import annotations

import base64
import re
import zlib

import numpy as np
import pytest

import raybo
from raybo.record.goals import Goal
from raybo.reporting.frame import Frame, colour_range
from raybo.reporting.packed import ALPHABET, packed
from raybo.reporting.parameter_figures import wrapped
from raybo.reporting.run_figures import best_so_far
from raybo.reporting.summary import facts, settings
from tests.reporting.studies import run

VALUES = np.append(np.linspace(1.0, 2.0, 20), 900.0)


@pytest.mark.parametrize(("mode", "symbol"), [("min", "triangle-up"), ("max", "triangle-down")])
def test_far_worse_values_are_outside_the_frame(mode, symbol):
    goal = Goal(mode)
    frame = Frame.of(goal, VALUES if mode == "min" else -VALUES)
    assert list(np.flatnonzero(frame.is_outside)) == [20]
    low, high = frame.ends
    assert low < frame.worst < high
    assert high - low < 1.3  # what is inside takes the frame, not the room that it might have taken
    assert frame.symbol == symbol
    assert frame.note == " 1 far worse value is outside the frame."


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize(("ranges", "is_outside"), [(5.9, False), (6.1, True)])
def test_the_frame_reaches_six_interquartile_ranges(mode, ranges, is_outside):
    values = np.append(np.arange(100.0), 75.0 + 50.0 * ranges)  # the quartiles are 25 and 75
    frame = Frame.of(Goal(mode), values if mode == "min" else -values)
    assert frame.is_outside[-1] == is_outside
    assert not frame.is_outside[:-1].any()


def test_what_must_be_seen_is_inside_the_frame():
    frame = Frame.of(Goal("min"), VALUES, inside=np.array([900.0]))
    assert not frame.is_outside.any()
    assert frame.note == ""


@pytest.mark.parametrize("mode", ["min", "max"])
def test_what_is_far_worse_than_the_rest_of_what_must_be_seen_is_outside(mode):
    sign = 1.0 if mode == "min" else -1.0
    values = np.concatenate([np.linspace(1.0, 2.0, 20), [6.0, 7.0, 8.0, 9.0, 900.0]])
    assert list(np.flatnonzero(Frame.of(Goal(mode), sign * values).is_outside)) == [20, 21, 22, 23, 24]
    frame = Frame.of(Goal(mode), sign * values, inside=sign * values[20:])
    assert list(np.flatnonzero(frame.is_outside)) == [24]


def test_wide_positive_losses_are_on_a_logarithmic_axis():
    frame = Frame.of(Goal("min"), np.logspace(-2, 3, 30))
    assert frame.layout["type"] == "log"
    assert frame.ends[0] < 0.01
    assert frame.ends[1] > 1000.0


def test_an_outlier_alone_makes_no_axis_logarithmic():
    frame = Frame.of(Goal("min"), np.append(np.linspace(1.0, 2.0, 20), 1e6))
    assert frame.layout["type"] == "linear"
    assert list(np.flatnonzero(frame.is_outside)) == [20]
    held = Frame.of(Goal("min"), np.append(np.linspace(1.0, 2.0, 20), 1e6), inside=np.array([1e6]))
    assert held.layout["type"] == "log"


def test_a_bad_corner_does_not_take_all_colours():
    z = np.array([[0.0, 1.0, 2.0], [1.0, 500.0, np.nan]])
    assert colour_range(Goal("min"), z) == (0.0, 2.5)
    assert colour_range(Goal("max"), -z) == (-2.5, 0.0)
    assert colour_range(Goal("max"), np.linspace(0.0, 1.0, 11)) == (0.0, 1.0)


def test_every_trial_has_a_mark_in_best_so_far():
    def cliff(study):
        numbers = [n for trace in figure.data if trace.mode == "markers" for n in trace.x]
        return sorted(numbers) == list(range(len(study.trials)))

    study = run("random", 40, space={"x": raybo.Float(1e-3, 1e3, log=True)}, mode="max")
    figure = best_so_far(study).figure
    assert cliff(study)
    study = run("random", 40, space={"x": raybo.Integer(0, 2), "y": raybo.Categorical([0, 0.5, 1000])}, mode="min")
    figure = best_so_far(study).figure
    assert cliff(study)


def test_packed_text_is_plain_and_comes_back():
    text = "</script><!-- <script> " + "plot" * 500
    short = packed(text)
    assert not re.search("[<\\\\\"'\\s]", short)
    assert set(short) <= set(ALPHABET)
    assert zlib.decompress(base64.b85decode(short.replace(",", "<"))).decode() == text
    assert len(short) < len(text) / 5


def test_facts_stand_in_rows_of_equal_length():
    study = run("random", 20)
    html = facts(study)
    tiles, columns = html.count('class="fact '), int(re.search(r"--columns: (\d+)", html)[1])
    assert columns <= 7
    assert -tiles % columns <= 1


def test_settings_and_search_space_are_tables_of_their_own():
    first, second = re.findall(r"<section>.*?</section>", settings(run("random", 6)), re.S)
    assert "<h2>Settings</h2>" in first
    assert "seed" in first
    assert "momentum" not in first
    assert "<h2>Search space</h2>" in second
    assert "momentum" in second


def test_long_names_are_broken_where_words_end():
    assert wrapped("min_child_weight", 10) == "min_child_<br>weight"
    assert wrapped("abcdefghijklmno", 10) == "abcdefghij<br>klmno"
    assert wrapped("a<b", 10) == "a&lt;b"
