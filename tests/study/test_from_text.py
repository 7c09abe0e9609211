"""Configurations that a user types."""

from __future__ import annotations

import pytest

import raybo
from raybo.common.errors import SpaceError
from raybo.study.from_text import read_row

BRANCHES = raybo.Space(
    {
        "model": raybo.Categorical(
            [{"kind": "svm", "C": raybo.Float(0, 1)}, {"kind": "rf", "depth": raybo.Integer(1, 9)}]
        )
    }
)


def test_choices_that_are_written_alike_are_typed_by_their_repr():
    space = raybo.Space({"c": raybo.Categorical([1, "1", True, "True", 0.5])})
    typed = {"1": 0, "'1'": 1, "True": 2, "'True'": 3, "0.5": 4}
    assert {text: read_row(space, {"c": text})[0] for text in typed} == typed
    with pytest.raises(SpaceError, match=r"c: '2' is not one of 1, '1', True, 'True', 0.5"):
        read_row(space, {"c": "2"})


@pytest.mark.parametrize("typed", ["C", "model.C"])
def test_the_short_name_of_a_branch_is_understood(typed):
    with pytest.raises(SpaceError, match=f"^{typed}: not a parameter of the space; did you mean 'model.svm.C'"):
        read_row(BRANCHES, {typed: "0.5"})
    with pytest.raises(SpaceError, match=r"did you mean 'model\.rf\.depth'"):
        read_row(BRANCHES, {"model.rf.dept": "3"})
