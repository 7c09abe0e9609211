"""Has a study run a configuration next, or know its result, from outside the process that runs it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from raybo.common.errors import JournalError, SpaceError, TrialError
from raybo.journal import Journal, in_use, requests, require_exists
from raybo.record.events import Told
from raybo.record.origin import Origin
from raybo.record.results import told
from raybo.searcher import Searcher
from raybo.searcher.named import held, identity, identity_of, same_as
from raybo.space import Row, Space
from raybo.space.partial import checked, left_out, partial_row
from raybo.study.from_text import read_row
from raybo.study.study import Study, load
from raybo.study.warm_start import Known, enter, numbers_of

Result = float | Mapping[str, Any] | None
RowIn = Callable[[Space], Row]


def enqueue(path: Path | str, config: Mapping[str, Any], value: Result = None) -> str:
    """Have a study run a configuration next, or add its result where that is known.

    What a configuration without a result leaves out is proposed. A running study is asked through its requests;
    otherwise the journal is written, and the study's next run begins with the configuration.

    Returns:
        what happens next, in words.
    Raises:
        JournalError: there is no such journal, it cannot be written, or the study is running and takes no requests, or
            a result was given.
        SpaceError: the configuration does not fit the space, or leaves something out although there is a result.
        TrialError: the value is not a finite number, or the configuration was enqueued, or added with this result,
            before.
    """
    return _enqueue(path, lambda space: partial_row(space, config), value)


def enqueue_text(path: Path | str, texts: Mapping[str, str], value: Result = None) -> str:
    """`enqueue` a configuration that `read_row` reads from text; returns and raises as they do."""
    return _enqueue(path, lambda space: read_row(space, texts), value)


def enqueue_row(path: Path | str, values: Sequence[Any]) -> str:
    """`enqueue` a configuration by its values in the parameters' order; returns and raises as it does.

    Args:
        path: the journal.
        values: numbers, positions of choices, None for what is not open or left out.
    """
    return _enqueue(path, lambda space: checked(space, values), None)


def _enqueue(path: Path | str, row_in: RowIn, value: Result) -> str:
    require_exists(path)
    if in_use(path):
        return _ask_for(path, row_in, value)
    with contextlib.closing(Journal(path)) as opened:
        if (description := opened.description) is None:
            raise JournalError(f"{path}: there is no study in it yet; `raybo tune ... --storage {path}` starts one")
        study = Study(description, opened.events)
        row = row_in(study.space)
        result = None if value is None else Told(0, **told(value, 0, study.goals, "enqueue: the value"))
        if value is not None:
            _require_whole(study.space, row)
        opened.begin(description)
        if not enter(opened, Searcher.of(study.description), [Known(row, value)]):
            _refuse_repeated(study, row, numbers_of(result, study.goals))
    return "Added; the study's next run " + ("starts with it" if value is None else "knows its result")


def _ask_for(path: Path | str, row_in: RowIn, value: Result) -> str:
    """Ask a running study for a configuration."""
    name = Path(path).name
    if value is not None:
        raise JournalError(f"{name}: it is running, and takes configurations but no results; add this one once it ends")
    requests.require_listening(path, "enqueue the configuration once the study has ended")
    study = load(path)
    row = row_in(study.space)
    if not left_out(study.space, row):
        study.space.require_allowed(row)
    if (before := same_as(study.space, study.trials, row)) is not None:
        raise _repeated("enqueued", before.number)
    if any(request.values == row for request in requests.waiting(path)):
        raise TrialError("this configuration is already queued; change a value")
    requests.ask(path, row)
    return "Enqueued; the study runs it as soon as a worker is free"


def _require_whole(space: Space, row: Row) -> None:
    if names := left_out(space, row):
        raise SpaceError(f"{names[0]}: missing from the configuration; what has a result is given as a whole")


def _refuse_repeated(study: Study, row: Row, numbers: tuple[float, ...]) -> None:
    """TrialError where the same is there: a command that is given twice is more likely than a wish for two runs."""
    space = study.space
    if not numbers:
        if (before := same_as(space, study.trials, row)) is not None:
            raise _repeated("enqueued", before.number)
        return
    wanted = identity(row, {"origin": Origin.ADDED}, numbers)
    for trial in held(study.trials):
        if identity_of(space, trial) == wanted:
            raise _repeated("added with this result", trial.number)


def _repeated(verb: str, number: int) -> TrialError:
    return TrialError(
        f"this configuration was {verb} before, as trial {number}; change a value, or give it twice in one --enqueue "
        "list"
    )
