"""Errors in a line, and likely names."""

from __future__ import annotations

import pytest

from raybo.common.messages import counted, first_line, in_words, nearest


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
