"""Warm starts: results of other studies, configurations to be run first, and what earlier studies know.

The first two enter the journal as trials. A result is a finished trial with the tag `origin: added`; a configuration
without a value is a pending one with `origin: enqueued`, which the engine runs before it asks the method for more; what
it leaves out is proposed as it enters, see `raybo.searcher.named`. What is named twice enters twice, as values may be
noisy. What an earlier study knows is an event, see `raybo.searcher.priors`. Entering the same things again adds
nothing, so a command that enters them can be repeated to continue its study.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from raybo.common.arguments import a_list
from raybo.common.errors import JournalError, SpaceError, TrialError
from raybo.common.messages import nearest, shown
from raybo.journal import Journal
from raybo.record.contexts import told_context
from raybo.record.events import Asked, EarlierStudy, Event, Told
from raybo.record.goals import Goals
from raybo.record.history import ONE
from raybo.record.origin import Origin
from raybo.record.results import told
from raybo.record.states import State
from raybo.searcher import Searcher
from raybo.searcher.named import enqueued_tags, held, identity, identity_of, same_as
from raybo.space import Categorical, Float, Integer, Row, Space, branches_of, label
from raybo.space import Path as Place
from raybo.space.branches import Branch
from raybo.space.partial import checked, left_out, partial_row
from raybo.space.template import holds_parameters, refuse_different, row_of
from raybo.study.from_text import read_value
from raybo.study.study import Study, load

NOTHING: Any = object()  # no value: None may be one


@dataclass(frozen=True)
class Known:
    """A configuration that the user names.

    Attributes:
        row: the configuration, as `Space.pack` makes it; None also where it is left to be proposed.
        value: its result in the user's sign, a dict where there are several metrics or constraints; None where it is
            to be run.
        context: what that result met, where a context is declared.
        source: which study it is from, and its number there; empty where the user gave it.
    """

    row: Row
    value: float | Mapping[str, Any] | None = None
    context: Mapping[str, Any] | None = None
    source: Mapping[str, Any] = field(default_factory=dict)


def known_of(entries: Sequence[Any], space: Space, goals: Goals = ONE) -> list[Known]:
    """Read `enqueue`: configurations, pairs of a configuration and a value, or dicts that hold both.

    One without a value may leave parameters out.

    Raises:
        SpaceError: an entry is none of these, or its configuration does not fit the space.
        TrialError: a value is not a finite number, or with several goals not a dict of them.
    """
    found = []
    for i, entry in enumerate(a_list(entries, "enqueue", "configurations", SpaceError)):
        config, value = entry, None
        if isinstance(entry, (tuple, list)) and len(entry) == 2:
            config, value = entry
        elif isinstance(entry, Mapping) and "config" in entry and set(entry) <= {"config", "value"}:
            config, value = entry["config"], entry.get("value")
        if not isinstance(config, Mapping):
            raise SpaceError(f"enqueue: entry {i} is not a configuration, got {shown(entry)}")
        if value is not None:
            told(value, i, goals, f"enqueue: the value of entry {i}")
        try:
            found.append(Known(row_of_config(space, config, is_whole=value is not None), value))
        except SpaceError as error:
            raise SpaceError(f"enqueue: entry {i}: {error}") from None
    return found


def known_from(
    other: Study | Path | str, goals: Goals, space: Space, defaults: Mapping[str, Any] | None = None
) -> list[Known]:
    """The finished trials of another study that fit a space; what only that study varied is left out.

    Args:
        other: the study, or its journal.
        metric, mode: what is wanted here. space: the space here.
        defaults: what the parameters were there which only this space has, by name, nested ones dotted; text is read.
    Raises:
        JournalError: it is about other metrics, or none of its finished trials fits and has all that is needed.
        SpaceError: a default names no parameter, or is not one of its values.
    """
    given = _defaults(space, defaults or {})
    study = other if isinstance(other, Study) else load(other)
    name = study.path.name if study.path is not None else study.description.objective
    theirs, mine = (replace(wanted, constraints=()) for wanted in (study.goals, goals))
    if set(zip(theirs.names, theirs.modes, strict=True)) != set(zip(mine.names, mine.modes, strict=True)):
        raise JournalError(f"{name}: it optimises {theirs}, this study {mine}; its results cannot be used")
    done = [trial for trial in study.trials if trial.state is State.FINISHED]
    _require_missing(given, [trial.config for trial in done], name)
    found, refusal = [], ""
    for trial in done:
        try:
            config = space.accept(_completed(space.template, _shared(space.template, trial.config), given))
        except SpaceError as error:
            refusal = refusal or _with_remedy(error)
            continue
        value: Any = trial.value
        if not goals.is_plain:
            value = {**(trial.details.get("metrics") or {}), theirs.names[0]: trial.value}
            try:
                told(value, trial.number, goals)
            except TrialError as error:
                refusal = refusal or str(error)
                continue
        found.append(Known(space.pack(config), value, trial.context, {"from": name, "trial": trial.number}))
    if not found:
        why = f"none of its {len(done)} results fits the space: {refusal}" if done else "it has no results yet"
        raise JournalError(f"{name}: {why}")
    return found


def _defaults(space: Space, defaults: Mapping[str, Any]) -> dict[Place, Any]:
    """Values of parameters that another study did not have, by their places in a configuration."""
    found: dict[Place, Any] = {}
    parameters = list(space.parameters.items())
    for name, value in defaults.items():
        if name not in space.names:
            raise SpaceError(f"default {name}: not a parameter of the space{nearest(name, space.names)}")
        path, parameter = parameters[space.names.index(name)]
        if isinstance(value, str):
            row = read_value(parameter, name, value)
            value = parameter.choices[cast(int, row)] if isinstance(parameter, Categorical) else row
        is_filled = isinstance(value, Mapping) and branches_of(parameter)
        found[path] = value if is_filled else parameter.accept(value, name)
    for path, parameter in parameters:  # a choice that is given has all that it opens, which may be given apart
        if path in found and branches_of(parameter):
            try:
                list(row_of(parameter, _completed(parameter, NOTHING, found, path), path))
            except SpaceError as error:
                raise SpaceError(f"default {_with_remedy(error)}") from None
    return found


def _require_missing(defaults: Mapping[Place, Any], configs: Sequence[Any], other: str) -> None:
    """SpaceError where a default is of a parameter that all results of the other study have: it would do nothing."""
    for path in defaults:
        if configs and all(_has(config, path) for config in configs):
            raise SpaceError(f"default {label(path)}: all results of {other} have a value there; leave it out")


def _has(config: Any, path: Place) -> bool:
    for key in path:
        if isinstance(key, Branch):  # which is no level of a configuration
            continue
        if not isinstance(config, Mapping) or key not in config:
            return False
        config = config[key]
    return True


def _completed(template: Any, config: Any, defaults: Mapping[Place, Any], path: Place = ()) -> Any:
    """A configuration, or a part of one, with the defaults where it says nothing; NOTHING where they say nothing."""
    if isinstance(template, (Float, Integer, Categorical)):
        config = defaults.get(path, NOTHING) if config is NOTHING else config
        for k, branch in branches_of(template):
            if config is branch:  # the default is the branch, called by its name
                fixed = (
                    {key: part for key, part in branch.items() if not holds_parameters(part)}
                    if isinstance(branch, dict)
                    else NOTHING
                )
                return _completed(branch, fixed, defaults, (*path, k))
            if config is not NOTHING and _fits(branch, whole := _completed(branch, config, defaults, (*path, k))):
                return whole
        return config
    if not isinstance(template, dict):
        return config
    if config is not NOTHING and not isinstance(config, Mapping):
        return config
    parts = {} if config is NOTHING else dict(config)
    for key, inside in template.items():
        if (part := _completed(inside, parts.get(key, NOTHING), defaults, (*path, key))) is not NOTHING:
            parts[key] = part
    return parts or config


def _fits(branch: Any, config: Any) -> bool:
    try:
        refuse_different(branch, config, ())
        list(row_of(branch, config, ()))
    except SpaceError:
        return False
    return True


def _with_remedy(error: SpaceError) -> str:
    """Return the reason why a result does not fit, and the remedy if a parameter is new."""
    told = str(error)
    missing = re.search(r"(?:^|[(;] ?)([^(;]+?): missing from the configuration", told)
    return f"{told}; --default {missing[1]}=... (defaults=) gives its value there" if missing else told


def enter(
    journal: Journal, searcher: Searcher, known: Sequence[Known], priors: Sequence[EarlierStudy] = ()
) -> list[Event]:
    """Write what is known into a journal; returns the events that this added, none where all of it was there.

    Args:
        journal: open, and begun.
        searcher: the study's, which has seen nothing of it yet; it takes in the journal's events.
        known: what is known.
        priors: what earlier studies know, as `new_priors` returns it.
    Raises:
        JournalError: the journal cannot be written.
        SpaceError: what is given of a configuration breaks a rule, whatever the rest is.
        TrialError: a context is not one that the study declares.
    """
    if not known and not priors:
        return []
    for event in journal.events:
        searcher.apply(event)
    space, context = searcher.space, searcher.context
    there = Counter(identity_of(space, trial) for trial in held(searcher.trials))
    events: list[Event] = [searcher.apply(prior) for prior in priors]
    for entry in known:
        number, goals = len(searcher.trials), searcher.goals
        result = None if entry.value is None else Told(number, **told(entry.value, number, goals))
        tags = enqueued_tags(space, entry.row) if result is None else {"origin": Origin.ADDED, **entry.source}
        is_the_same = identity(entry.row, tags, numbers_of(result, goals))
        if there[is_the_same]:
            there[is_the_same] -= 1
            continue
        if result is None:
            try:
                asked = searcher.enqueued(searcher.history, entry.row)
            except SpaceError as error:
                raise SpaceError(f"enqueue: {error}") from None
        else:
            asked = searcher.known(space.unpack(entry.row), Origin.ADDED, entry.source)
        events.append(searcher.apply(asked))
        if result is not None:
            if entry.context is not None and context is not None:
                source = entry.source
                whose = f"{source['from']}, trial {source['trial']}" if source else f"trial {number}"
                result = replace(result, **told_context(context, entry.context, whose))
            events.append(searcher.apply(result))
    journal.append(events)
    return events


def wanted(searcher: Searcher, values: Sequence[Any]) -> Row | None:
    """Return the row of a configuration that is to be run next; None if it has been enqueued before.

    Args:
        searcher: the study's, with everything that has happened.
        values: the configuration, as `Known.row`.
    Raises:
        SpaceError: it does not fit the space.
    """
    row = checked(searcher.space, values)
    return row if same_as(searcher.space, searcher.trials, row) is None else None


def count_added(events: Sequence[Event]) -> int:
    """Return the number of a journal's trials that are results from elsewhere, which no study has run."""
    return sum(isinstance(event, Asked) and event.origin is Origin.ADDED for event in events)


def numbers_of(result: Told | None, goals: Goals) -> tuple[float, ...]:
    """Return the numbers of a result that are compared."""
    return () if result is None else tuple(result.values(goals).values())


def row_of_config(space: Space, config: Mapping[str, Any], *, is_whole: bool) -> Row:
    """Return the row of a configuration, which may leave parameters out unless it is whole; SpaceError if not fit."""
    row = space.pack(config) if is_whole else partial_row(space, config)
    if not left_out(space, row):
        space.require_allowed(row)
    return row


def _shared(template: Any, config: Any) -> Any:
    """The part of another study's configuration whose names this space has."""
    if isinstance(template, dict) and isinstance(config, Mapping):
        return {key: _shared(value, config[key]) for key, value in template.items() if key in config}
    return config
