"""Errors in a line, likely names, and values read from text."""

from __future__ import annotations

from typing import Literal

import pytest

from raybo.words import convert, first_line, in_words, nearest


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
    assert nearest("folds", ["kappa", "delta"]) == "; there are: kappa, delta"
    assert nearest("folds", []) == "; it has none"


@pytest.mark.parametrize(
    ("value", "hint", "meant"),
    [
        ("3", int, 3),
        ("3.0", int, 3),
        (3, float, 3.0),
        ("1e-3", float, 1e-3),
        ("Yes", bool, True),
        ("0", bool, False),
        ("None", int | None, None),
        ("7", int | None, 7),
        ("a,b", tuple[str, ...], ("a", "b")),
        ([1, "2"], tuple[int, ...], (1, 2)),
        ("lbfgsb", Literal["lbfgsb", "mixed"], "lbfgsb"),
        ("as it is", str, "as it is"),
    ],
)
def test_text_is_read_as_the_type_that_is_wanted(value, hint, meant):
    read = convert(value, hint)
    assert read == meant
    assert type(read) is type(meant)


@pytest.mark.parametrize(
    ("value", "hint", "wanted"),
    [
        ("3.5", int, "a whole number"),
        ("many", float, "a number"),
        (True, int, "a whole number"),
        ("perhaps", bool, "true or false"),
        ("many", int | None, "a whole number or none"),
        (7, tuple[int, ...], "a list"),
        ("fast", Literal["lbfgsb", "mixed"], "one of lbfgsb, mixed"),
        (7, str, "text"),
    ],
)
def test_what_cannot_be_read_says_what_it_must_be(value, hint, wanted):
    with pytest.raises(ValueError, match=f"^{wanted}$"):
        convert(value, hint)
