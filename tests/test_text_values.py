"""Values read from text, as the type that is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from raybo.text_values import convert


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
        ("1e3", int, 1000),
        ("9007199254740993", int, 2**53 + 1),  # which no float is
        (10**400, int, 10**400),
        (np.int64(5), int, 5),
        (np.float32(0.5), float, 0.5),
        ("a/b", Path, Path("a/b")),
        ("a/b", type(Path()), Path("a/b")),
        ("a/b", Path | None, Path("a/b")),
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
        (7, Path, "a path"),
        (10**400, float, "a number"),
        ("1e400", int, "a whole number"),
    ],
)
def test_what_cannot_be_read_says_what_it_must_be(value, hint, wanted):
    with pytest.raises(ValueError, match=f"^{wanted}$"):
        convert(value, hint)
