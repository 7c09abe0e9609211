"""Errors in a line, and likely names."""

from __future__ import annotations

import pytest

from raybo.common.messages import counted, first_line, in_words, nearest, three_figures, time_in_words


class Silent(Exception):
    """Fails even to be printed."""

    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "line", "words"),
    [
        (ValueError("\n  too large \nby far"), "too large", "ValueError: too large"),
        (KeyError(), "KeyError", "KeyError"),
        (Silent(), "Silent", "Silent"),
    ],
)
def test_an_error_in_a_line(error, line, words):
    assert first_line(error) == line
    assert in_words(error) == words


def test_the_nearest_name_or_all_of_them():
    assert nearest("kapa", ["kappa", "delta"]) == "; did you mean 'kappa'?"
    assert nearest("folds", ["kappa", "delta"]) == "; available: kappa, delta"
    assert nearest("folds", []) == "; it has none"


def test_one_thing_is_not_several():
    assert [counted(n, "trial") for n in (0, 1, 2)] == ["0 trials", "1 trial", "2 trials"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.01234, "0.0123 s"), (45.0, "45 s"), (750.0, "12.5 min"), (1.2e4, "3.33 h"), (2.4e5, "2.78 days"),
     (1e9, "11,600 days")],
)  # fmt: skip
def test_a_long_time_is_in_hours_or_days(seconds, words):
    assert time_in_words(seconds) == words


def test_a_large_number_has_no_exponent():
    assert [three_figures(number) for number in (0.01234, 45.67, 99.96, 31_416.0, 2.4e6)] == [
        "0.0123", "45.7", "100", "31,400", "2,400,000",
    ]  # fmt: skip
