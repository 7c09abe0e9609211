"""Values read from text, as the type that is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from raybo.common.parsing import convert


class Words(str, Enum):
    FEW = "few"


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
        ("1,2", list[int], [1, 2]),
        ("1,2", Sequence[float], [1.0, 2.0]),
        ("1,a", tuple[int, str], (1, "a")),
        ((1, 2), list[int], (1, 2)),  # only text is read
        ("lbfgsb", Literal["lbfgsb", "mixed"], "lbfgsb"),
        ("2", Literal[1, 2], 2),
        (np.True_, bool, True),
        ("2", np.float64, 2.0),
        ("2", np.int64, 2),
        ("as it is", Any, "as it is"),
        ("as it is", Words, "as it is"),
        ("as it is", str, "as it is"),
    ],
)
def test_text_is_parsed_by_annotation(value, hint, meant):
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
        ("1,2,3", tuple[int, str], "a list of 2"),
        ("3", Literal[1, 2], "one of 1, 2"),
        # what a job would take for its own, letter by letter
        ("1,2", list, r"of type list, which text is not \(annotated as list\[int\], say, it would be read as one\)"),
        ("1,2", tuple, r"of type tuple, which text is not \(annotated as tuple\[int, ...\], say, .*"),
        ("{}", dict[str, int], "of type dict, which text is not"),
        ("2020-01-01", date | None, "of type date, which text is not or none"),
    ],
)
def test_unparsable_text_names_the_expected_type(value, hint, wanted):
    with pytest.raises(ValueError, match=f"^{wanted}$"):
        convert(value, hint)
