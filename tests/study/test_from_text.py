"""Configurations that a user types."""

from __future__ import annotations

import pytest

import raybo
from raybo.common.errors import SpaceError
from raybo.space import context_space, read_text
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


def test_choices_are_typed_in_any_spelling_that_means_one():
    space = raybo.Space({"c": raybo.Ordinal([0.0, 1e-05, 1.0]), "b": raybo.Categorical([True, None, "auto", "None"])})
    for texts, row in (({"c": "0"}, 0), ({"c": "1e-5"}, 1), ({"c": " 1"}, 2)):
        assert read_row(space, texts)[0] == row
    assert [read_row(space, {"b": text})[1] for text in ("true", "none", "auto", "'None'")] == [0, 1, 2, 3]
    for text in ("2", "nan", "Auto"):
        with pytest.raises(SpaceError, match="is not one of"):
            read_row(space, {"c": text})
    context = context_space({"load": raybo.Categorical([1e-05, 0.5])}, BRANCHES)
    assert read_text(context, "load", "1e-5") == 1e-05
