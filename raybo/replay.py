"""Proposes every trial of a study again from its journal alone, to show that each followed from what it had seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from raybo.events import Kind
from raybo.study import Study, searcher_of


@dataclass(frozen=True)
class Replayed:
    """One trial proposed again.

    Attributes:
        trial: its number.
        differs: what is not as it was: "x", "tags", or both; empty where the proposal is the same.
    """

    trial: int
    differs: tuple[str, ...]


def replay(study: Study) -> Iterator[Replayed]:
    """Propose each trial again after the events that it had seen, in order; those that a user named are left out.

    Proposals are the same to the last digit on the machine that made them. Other processors and other versions of numpy
    or scipy may round otherwise.
    """
    searcher = searcher_of(study.description, study.space, study.context)
    ahead = iter(study.events)
    for asked in study.events:
        if asked.kind is not Kind.ASKED or asked.origin is not None:
            continue
        while searcher.ledger.last_event < asked.data["seen"]:
            searcher.apply(next(ahead))
        again = searcher.propose(searcher.history, asked.context_in(study.context))
        same = {"x": again.data["x"] == asked.data["x"], "tags": again.data["tags"] == asked.data["tags"]}
        differs = tuple(name for name, is_same in same.items() if not is_same)
        yield Replayed(cast(int, asked.trial), differs)
