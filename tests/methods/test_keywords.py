"""The options that type checkers know are those that the methods have, of the same types."""

from __future__ import annotations

import typing
from collections.abc import Sequence

import pytest

import raybo
from raybo import methods
from raybo.common.errors import MethodError
from raybo.common.messages import ELSEWHERE
from raybo.methods.keywords import MethodOptions
from tests.generated import generated

TOLD = typing.get_type_hints(MethodOptions)


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_what_is_generated_is_up_to_date(path):
    """The options of every method and no other, and the tables of the pages."""
    wanted = generated()[path]
    is_same = path.read_text(encoding="utf-8") == wanted
    assert is_same, f"run `python -m tests.generated`, which writes {path.name} from the registries"


def test_keywords_match_all_options():
    assert set(TOLD) == {option for name in methods.METHODS for option, _, _ in methods.describe(name)[1]}
    assert TOLD["solver"] == typing.Literal["random-grid", "lbfgsb", "nelder-mead", "cg"]
    assert TOLD["lengthscale"] == float | Sequence[float] | None
    assert TOLD["hyperparameters"] is str


def test_option_names_do_not_clash():
    import inspect

    assert not set(ELSEWHERE) & set(TOLD)
    for takes in (raybo.tune, raybo.Searcher):
        assert not (set(inspect.signature(takes).parameters) - {"options"}) & set(TOLD)
        assert not set(inspect.signature(takes).parameters) & set(ELSEWHERE)


@pytest.mark.parametrize(
    ("word", "ours"), [("n_trials", "trials"), ("direction", "mode"), ("sampler", "method"), ("random_state", "seed")]
)
def test_other_libraries_words_are_answered_with_ours(word, ours):
    with pytest.raises(MethodError, match=rf"there is no option '{word}': raybo calls it {ours}"):
        raybo.Searcher({"x": raybo.Float(0, 1)}, **{word: 3})


def test_only_what_is_near_is_offered():
    with pytest.raises(MethodError, match=r"there is no method 'foo'; available: auto, ei, random, "):
        methods.load("foo")
    with pytest.raises(MethodError, match=r"there is no method 'GP_UCB'; did you mean 'gp-ucb'\?"):
        methods.load("GP_UCB")
