"""The contract of `raybo.testing` on every method of raybo; a new one joins by its file."""

from __future__ import annotations

import pytest

from raybo import methods
from raybo.searcher import Searcher
from raybo.testing import MethodContract
from raybo.testing.histories import SPACES
from raybo.testing.methods import ODD, context_of

SLOW = {"mcmc"}  # a second per proposal
IN_ROUNDS = ("many_dimensions", "exp3")  # of methods whose every proposal builds on the tags of the one before


class OfRaybo(MethodContract):
    def marks(self, words):
        return [pytest.mark.slow] if SLOW & set(words.values()) else []

    def builds_on_last_tags(self, made):
        return any(name in type(made).__module__ for name in IN_ROUNDS)

    @pytest.mark.slow
    def test_no_option_leads_to_forbidden_points(self, name, words):
        super().test_no_option_leads_to_forbidden_points(name, words)

    @pytest.mark.slow
    @pytest.mark.parametrize("value", ODD)
    def test_a_number_at_or_beyond_the_end_of_its_range_is_refused_by_name_or_works(self, name, made, value):
        super().test_a_number_at_or_beyond_the_end_of_its_range_is_refused_by_name_or_works(name, made, value)

    @pytest.mark.parametrize("kind", ["every kind", pytest.param("the same point pending", marks=pytest.mark.slow)])
    def test_it_proposes_under_each_of_its_words(self, name, words, kind):
        super().test_it_proposes_under_each_of_its_words(name, words, kind)

    def test_another_seed_gives_another_first_point(self, name, made):
        studies = [Searcher(SPACES["six floats"], made, seed=seed, trials=10, **context_of(made)) for seed in (0, 1)]
        assert studies[0].ask().config != studies[1].ask().config


def _needs_context(name):
    return methods.load(name).needs_context


class TestMethods(OfRaybo):
    def cases(self):
        usual = (name for name in methods.METHODS if name not in SLOW and not _needs_context(name))
        return [*usual, *map(methods.kept, methods.RETIRED)]


@pytest.mark.slow
class TestContextMethods(OfRaybo):
    """They would take more than a third of the contract's time, as each of their proposals weighs many contexts."""

    def cases(self):
        return list(filter(_needs_context, methods.METHODS))


@pytest.mark.slow
@pytest.mark.usefixtures("short_chains")
class TestSlowMethods(OfRaybo):
    largest = 8

    def cases(self):
        return [name for name in methods.METHODS if name in SLOW]
