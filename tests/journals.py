"""Reads a journal while another process writes it, and continues one without a study's process."""

from __future__ import annotations

import contextlib
from pathlib import Path

import raybo
from raybo.common.errors import JournalError
from raybo.journal import Journal
from raybo.record.events import Failed
from raybo.record.states import State
from raybo.searcher import Searcher


def continue_with_failures(path: Path, trials: int) -> None:
    """Append `trials` failed trials, two events each; open the journal anew for every one."""
    description = raybo.load(path).description
    for _ in range(trials):
        with contextlib.closing(Journal(path, description)) as opened:
            searcher = Searcher.of(description)
            for event in opened.events:
                searcher.apply(event)
            asked = searcher.apply(searcher.propose(searcher.history))
            opened.append([asked])
            opened.append([searcher.apply(Failed(asked.trial, reason="no", attempt=1))])


def finished(path: str | Path) -> int:
    """Return the number of finished trials, 0 if the journal is not there yet."""
    return _count(path, State.FINISHED)


def pending(path: str | Path) -> int:
    """Return the number of running trials, 0 if the journal is not there yet."""
    return _count(path, State.PENDING)


def _count(path: str | Path, state: State) -> int:
    try:
        return raybo.load(path).count(state)
    except JournalError:
        return 0
