"""Warm starts: results of other studies, configurations to be run first, and what earlier studies know.

The first two enter the journal as trials. A result is a finished trial with the tag `origin: added`; a configuration
without a value is a pending one with `origin: enqueued`, which the engine runs before it asks the method for more. What
is named twice enters twice, as values may be noisy. What an earlier study knows is an event, see
`raybo.searcher.priors`. Entering the same things again adds nothing, so a command that enters them can be repeated to
continue its study.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from raybo.common.arguments import a_list
from raybo.common.errors import JournalError, SpaceError, TrialError
from raybo.common.messages import nearest, shown
from raybo.journal import Journal, fits, in_use, requests, require_exists
from raybo.record.contexts import told_context
from raybo.record.events import Asked, EarlierStudy, Event, Told
from raybo.record.goals import Goals
from raybo.record.history import ONE
from raybo.record.origin import Origin
from raybo.record.results import told
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.searcher import Searcher
from raybo.space import Categorical, Config, Float, Integer, Parameter, Row, Space, branches_of, choice_names, label
from raybo.space import Path as Place
from raybo.space.branches import Branch
from raybo.space.template import holds_parameters, refuse_different, row_of
from raybo.study.study import Study, load

NOTHING: Any = object()  # no value: None may be one


@dataclass(frozen=True)
class Known:
    """A configuration that the user names.

    Attributes:
        config: of the study's space.
        value: its result in the user's sign, a dict where there are several metrics or constraints; None where it is
            to be run.
        context: what that result met, where a context is declared.
        source: which study it is from, and its number there; empty where the user gave it.
    """

    config: Config
    value: float | Mapping[str, Any] | None = None
    context: Mapping[str, Any] | None = None
    source: Mapping[str, Any] = field(default_factory=dict)


def known_of(entries: Sequence[Any], space: Space, goals: Goals = ONE) -> list[Known]:
    """Read `enqueue`: configurations, pairs of a configuration and a value, or dicts that hold both.

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
            found.append(Known(space.accept(config), value))
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
        SpaceError: a default is of no parameter, or is none of its values.
    """
    given = _defaults(space, defaults or {})
    study = other if isinstance(other, Study) else load(other)
    name = study.path.name if study.path is not None else study.description.objective
    theirs, mine = (replace(wanted, constraints=()) for wanted in (study.goals, goals))
    if set(zip(theirs.names, theirs.modes, strict=True)) != set(zip(mine.names, mine.modes, strict=True)):
        raise JournalError(
            f"{name}: it wants {theirs}, and this study {mine}; results for another metric are no help here"
        )
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
        found.append(Known(config, value, trial.context, {"from": name, "trial": trial.number}))
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
            row = _read(parameter, name, value)
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
        TrialError: a context is not one that the study declares.
    """
    if not known and not priors:
        return []
    for event in journal.events:
        searcher.apply(event)
    space, context = searcher.space, searcher.context
    there = Counter(_identity_of(space, trial) for trial in _held(searcher.trials))
    events: list[Event] = [searcher.apply(prior) for prior in priors]
    for entry in known:
        origin = Origin.ENQUEUED if entry.value is None else Origin.ADDED
        asked = searcher.known(entry.config, origin, entry.source)
        number = asked.trial
        result = None if entry.value is None else Told(number, **told(entry.value, number, searcher.goals))
        identity = _identity(space, entry.config, asked.tags, _numbers(result, searcher.goals))
        if there[identity]:
            there[identity] -= 1
            continue
        events.append(searcher.apply(asked))
        if result is not None:
            if entry.context is not None and context is not None:
                source = entry.source
                whose = f"{source['from']}, trial {source['trial']}" if source else f"trial {number}"
                result = replace(result, **told_context(context, entry.context, whose))
            events.append(searcher.apply(result))
    journal.append(events)
    return events


def wanted(searcher: Searcher, row: Any) -> Event | None:
    """The event of asking for a configuration that is to be run next; None where it has been enqueued before.

    Args:
        searcher: the study's, with everything that has happened.
        row: the configuration, as `Space.pack` makes it.
    Raises:
        SpaceError: it does not fit the space.
    """
    space = searcher.space
    if not fits(row, space):
        raise SpaceError(
            f"enqueue: {shown(row)} is not a configuration of the space; give every parameter that is open"
        )
    asked = searcher.known(space.accept(space.unpack(row)), Origin.ENQUEUED)
    there = (_identity_of(space, trial) for trial in _held(searcher.trials))
    return None if _identity(space, space.unpack(row), asked.tags) in there else asked


def enqueue(path: Path | str, config: Mapping[str, Any], value: float | Mapping[str, Any] | None = None) -> str:
    """Have a study run a configuration next, or add its result where that is known.

    A running study is asked through its requests; otherwise the journal is written, and the study's next run begins
    with the configuration.

    Returns:
        what happens next, in words.
    Raises:
        JournalError: there is no such journal, it cannot be written, or the study is running and takes no requests, or
            a result was given.
        SpaceError: the configuration does not fit the space.
        TrialError: the value is not a finite number, or the configuration was enqueued, or added with this result,
            before.
    """
    return _enqueue(path, lambda space: config, value)


def enqueue_text(path: Path | str, texts: Mapping[str, str], value: float | Mapping[str, Any] | None = None) -> str:
    """`enqueue` a configuration that `read_config` reads from text; returns and raises as they do."""
    return _enqueue(path, lambda space: read_config(space, texts), value)


def _enqueue(
    path: Path | str, config_in: Callable[[Space], Mapping[str, Any]], value: float | Mapping[str, Any] | None
) -> str:
    require_exists(path)
    if in_use(path):
        return _ask_for(path, config_in, value)
    with contextlib.closing(Journal(path)) as opened:
        if (description := opened.description) is None:
            raise JournalError(f"{path}: there is no study in it yet; `raybo tune ... --storage {path}` starts one")
        study = Study(description, opened.events)
        known = Known(study.space.accept(config_in(study.space)), value)
        result = None if value is None else Told(0, **told(value, 0, study.goals, "enqueue: the value"))
        opened.begin(description)
        if not enter(opened, Searcher.of(study.description), [known]):
            _refuse_repeated(study, known.config, _numbers(result, study.goals))
    return "Added; the study's next run " + ("starts with it" if value is None else "knows its result")


def _ask_for(
    path: Path | str, config_in: Callable[[Space], Mapping[str, Any]], value: float | Mapping[str, Any] | None
) -> str:
    """Ask a running study for a configuration."""
    name = Path(path).name
    if value is not None:
        raise JournalError(f"{name}: it is running, and takes configurations but no results; add this one once it ends")
    requests.require_listening(path, "enqueue the configuration once the study has ended")
    study = load(path)
    config = study.space.accept(config_in(study.space))
    _refuse_repeated(study, config)
    row = study.space.pack(config)
    if any(request.values == row for request in requests.waiting(path)):
        raise TrialError("this configuration was enqueued before, and waits to be taken up; change a value")
    requests.ask(path, row)
    return "Enqueued; the study runs it as soon as a worker is free"


def _refuse_repeated(study: Study, config: Config, numbers: tuple[float, ...] = ()) -> None:
    """TrialError where the same is there: a command that is given twice is more likely than a wish for two runs."""
    tags = {"origin": Origin.ADDED if numbers else Origin.ENQUEUED}
    identity = _identity(study.space, config, tags, numbers)
    for trial in _held(study.trials):
        if _identity_of(study.space, trial) == identity:
            verb = "added with this result" if numbers else "enqueued"
            raise TrialError(
                f"this configuration was {verb} before, as trial {trial.number}; change a value, or give it twice in "
                "one --enqueue list"
            )


def read_config(space: Space, texts: Mapping[str, str]) -> Config:
    """A configuration from text, by the parameters' names as tables show them.

    Raises:
        SpaceError: a parameter is missing, unknown or not open, or its text cannot be read.
    """
    for name in texts:
        if name not in space.names:
            raise SpaceError(f"{name}: not a parameter of the space, which has {', '.join(space.names)}")
    row: Row = []
    for name, parameter, condition in zip(space.names, space.parameters.values(), space.cube.conditions, strict=True):
        if condition is not None and row[condition[0]] != condition[1]:  # a choice comes before what it opens
            if name in texts:
                raise SpaceError(f"{name}: it has no meaning with the other choices")
            row.append(None)
        elif name not in texts:
            raise SpaceError(f"{name}: missing from the configuration")
        else:
            row.append(_read(parameter, name, texts[name]))
    return space.unpack(row)


def _read(parameter: Parameter, name: str, text: str) -> float | int:
    if isinstance(parameter, Categorical):
        names = [str(choice) for choice in choice_names(parameter.choices)]
        if text not in names:
            raise SpaceError(f"{name}: {text!r} is not one of {', '.join(names)}")
        return names.index(text)
    try:
        number = _number(text)
    except ValueError:
        raise SpaceError(f"{name}: a number is needed, got {text!r}") from None
    return parameter.accept(number, name)


def _number(text: str) -> float:
    """The number in a text; a whole one exactly, which a float of 53 bits may not hold. ValueError where it is none."""
    with contextlib.suppress(ValueError):
        return int(text)
    return float(text)


def count_added(events: Sequence[Event]) -> int:
    """Return the number of a journal's trials that are results from elsewhere, which no study has run."""
    return sum(isinstance(event, Asked) and event.origin is Origin.ADDED for event in events)


def _held(trials: Sequence[Trial]) -> list[Trial]:
    """Those that the user has named, but for what was stopped: that may be asked for again."""
    return [trial for trial in trials if trial.origin is not None and trial.state is not State.STOPPED]


def _identity(
    space: Space, config: Config, tags: Mapping[str, Any], numbers: tuple[float, ...] = ()
) -> tuple[Any, ...]:
    """By which two things that a user names are the same; `numbers` are the result where that is known."""
    return (tags.get("origin"), tags.get("from"), tags.get("trial"), numbers, *space.pack(config))


def _identity_of(space: Space, trial: Trial) -> tuple[Any, ...]:
    is_result = trial.origin is Origin.ADDED and trial.value is not None
    numbers = tuple(trial.values.values()) or (trial.value,) if is_result else ()
    return _identity(space, trial.config, trial.tags, cast("tuple[float, ...]", numbers))


def _numbers(result: Told | None, goals: Goals) -> tuple[float, ...]:
    """Return the numbers of a result that are compared."""
    return () if result is None else tuple(result.values(goals).values())


def _shared(template: Any, config: Any) -> Any:
    """The part of another study's configuration whose names this space has."""
    if isinstance(template, dict) and isinstance(config, Mapping):
        return {key: _shared(value, config[key]) for key, value in template.items() if key in config}
    return config
