"""The origin of a trial's configuration, if no method proposed it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

NEXT_GUESS = "next_guess"  # the tag of a guessed trial that is at next guesses: which of them, from 1


class Origin(str, Enum):
    """The origin of a trial that no method proposed; the tag `origin` holds it."""

    ADDED = "added"  # with its value, from elsewhere
    ENQUEUED = "enqueued"  # a configuration that the user named, to be run
    CONFIRMED = "confirmed"  # one of the search's configurations once more; the tag `confirms` names its trial
    GUESSED = "guessed"  # where the space says that the best may lie, run before anything is proposed
    PRIOR = "prior"  # where earlier studies expect the best, among the first to be run


def origin_of(tags: Mapping[str, Any]) -> Origin | None:
    """Return the origin of a trial with these tags; None if the method proposed it."""
    return Origin(tags["origin"]) if "origin" in tags else None


def confirms(tags: Mapping[str, Any]) -> bool:
    """True if a trial with these tags runs a configuration of the search once more."""
    return origin_of(tags) is Origin.CONFIRMED
