"""The changes that the page may make: stop a study, enqueue a configuration, take a note.

A study that runs takes requests up itself, see `raybo.journal.requests`; the journal of one that does not is written
directly, as `raybo enqueue` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raybo.common.errors import JournalError, TrialError
from raybo.common.messages import shown
from raybo.journal import requests
from raybo.journal.notes import Note, read_notes, take_note
from raybo.study import enqueueing
from raybo.view.facts import Json, text
from raybo.view.followed import Followed

MOST_NOTES = 500  # a page shows so many notes, the newest


def possible(path: Path, *, is_running: bool) -> Json:
    """Return the actions that a study allows now, and the requests that it has not taken up yet."""
    is_listening = requests.is_listening(path)
    waiting = requests.waiting(path)
    return {
        "stop": is_running and is_listening,
        "enqueue": not is_running or is_listening,
        "stopping": any(request.values is None for request in waiting),
        "waiting": sum(request.values is not None for request in waiting),
    }


def stop(followed: Followed) -> str:
    """Ask the study to stop; returns what follows, in words.

    Raises:
        JournalError: it does not run, or takes no requests.
    """
    requests.ask_to_stop(followed.path)
    return "Stopping: running trials are stopped, and what has finished is kept"


def enqueue(followed: Followed, values: Sequence[Any]) -> str:
    """Have a configuration run next, or first in the next run; returns which, in words.

    Args:
        followed: the study.
        values: in the order of the parameters: numbers, positions of choices, None for what is not open or is to be
            proposed.
    Raises:
        SpaceError: it does not fit the space.
        TrialError: it was enqueued before.
        JournalError: the journal cannot be written.
    """
    # written while nothing else here reads it: as a writer leaves, all readers of its process lose SQLite's locks, and
    # another process could remove the log under them
    with followed.now():
        return enqueueing.enqueue_row(followed.path, values)


def note(followed: Followed, said: object, trial: object) -> Json:
    """Add a note to a study or to one of its trials.

    Raises:
        JournalError: it cannot be written.
        TrialError: there is no such trial.
    """
    if not isinstance(said, str):
        raise JournalError(f"a note is text, got {shown(said)}")
    with followed.now() as study:
        if trial is not None and not (type(trial) is int and 0 <= trial < len(study.trials)):
            raise TrialError(f"trial {shown(trial)}: no such trial; the study has {len(study.trials)}")
    return _note(take_note(followed.path, said, trial if isinstance(trial, int) else None))


def notes(path: Path, trial: int | None = None) -> list[Json]:
    """Return the notes about a study and its trials, or about one trial."""
    return [_note(one) for one in read_notes(path) if trial is None or one.trial == trial][-MOST_NOTES:]


def _note(one: Note) -> Json:
    return {"at": text(one.at), "trial": one.trial, "text": text(one.text, 4_000)}
