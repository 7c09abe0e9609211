"""Configurations that a user names, whole or in part: the event of asking for one, and which are the same.

Of one that is given in part, the tag `given` names what the user gave, and the rest is what the method, guesses or
priors proposed at that moment: replaying its journal proposes it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from raybo import methods
from raybo.record.description import Description
from raybo.record.events import Asked, Tags
from raybo.record.history import History
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.searcher.proposing import Stream, asked_for, named, proposal_for, random_stream
from raybo.space import Row, Space
from raybo.space.partial import completed, given, left_out, only


def enqueued(history: History, method: methods.Method, description: Description, row: Row) -> Asked:
    """Return the event of asking for a configuration that is to be run; what it leaves out is as proposed.

    Args:
        history: what is known.
        method: proposes, unless guesses or earlier studies do.
        description: the study's.
        row: the configuration, as `partial_row` makes it.
    Raises:
        SpaceError: it breaks a rule of the space, whatever the rest is.
        MethodError: the method proposed something else than a point of the cube with tags that are JSON.
        TrialError: the method cannot read the tags in the history.
    """
    space = description.space
    tags = enqueued_tags(space, row)
    if "given" not in tags:
        return named(history, space, space.unpack(row), tags)
    _, proposed, _, seconds = proposal_for(history, method, description)
    rng = random_stream(description.seed, len(history), Stream.REST)
    whole = completed(space, row, proposed, rng)
    return asked_for(history, space.snap(space.points([whole])), whole, tags, seconds, {})


def enqueued_tags(space: Space, row: Row) -> Tags:
    """Return the tags of a configuration that is to be run."""
    return {"origin": Origin.ENQUEUED.value, **({"given": given(space, row)} if left_out(space, row) else {})}


def given_row(space: Space, asked: Asked) -> Row:
    """Return what the user gave of a configuration that is enqueued."""
    return only(space, asked.values, asked.tags["given"]) if "given" in asked.tags else asked.values


def held(trials: Sequence[Trial]) -> list[Trial]:
    """Return those that the user has named, but for what was stopped: that may be asked for again."""
    return [trial for trial in trials if trial.origin is not None and trial.state is not State.STOPPED]


def identity(row: Row, tags: Mapping[str, Any], numbers: tuple[float, ...] = ()) -> tuple[Any, ...]:
    """Return by which two things that a user names are the same; `numbers` are the result where that is known."""
    return (tags.get("origin"), tags.get("from"), tags.get("trial"), numbers, *row)


def identity_of(space: Space, trial: Trial) -> tuple[Any, ...]:
    """Return the identity of a trial."""
    is_result = trial.origin is Origin.ADDED and trial.value is not None
    numbers = tuple(trial.values.values()) or (trial.value,) if is_result else ()
    row = space.pack(trial.config)
    if trial.origin is Origin.ENQUEUED and "given" in trial.tags:
        row = only(space, row, trial.tags["given"])
    return identity(row, trial.tags, cast("tuple[float, ...]", numbers))


def same_as(space: Space, trials: Sequence[Trial], row: Row) -> Trial | None:
    """Return the trial by which this configuration was enqueued before; None if there is none."""
    wanted = identity(row, enqueued_tags(space, row))
    return next((trial for trial in held(trials) if identity_of(space, trial) == wanted), None)
