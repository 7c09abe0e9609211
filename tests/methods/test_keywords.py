"""The options that type checkers know are those that the methods have, of the same types."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Sequence

import pytest

import raybo
from raybo import methods
from raybo.common.errors import MethodError
from raybo.common.messages import ELSEWHERE
from raybo.methods.keywords import MethodOptions

TOLD = typing.get_type_hints(MethodOptions)


def kinds(hint):
    """What a value may be: literals by themselves, the rest by its type; any text for what may be one of some words."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return set(typing.get_args(hint))
    if origin in (typing.Union, types.UnionType):
        return set().union(*(kinds(each) for each in typing.get_args(hint)))
    if origin in (tuple, Sequence):  # any sequence is taken
        return {"several"}
    return {hint}


def test_every_option_of_every_method_is_there_and_no_other():
    wanted = {}
    for name in methods.METHODS:
        hints = typing.get_type_hints(methods.load(name))
        for field in dataclasses.fields(methods.load(name)):
            wanted.setdefault(field.name, set()).update(kinds(hints[field.name]))
    for found in wanted.values():
        if str in found:
            found -= {each for each in found if isinstance(each, str)}
        if float in found:
            found.discard(int)
    assert {name: kinds(hint) for name, hint in TOLD.items()} == wanted


def test_no_option_is_called_like_another_librarys_word_or_an_argument():
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
