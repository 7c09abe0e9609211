"""What a journal holds while another process writes it; nothing, where it is not there yet."""

from __future__ import annotations

from pathlib import Path

import raybo
from raybo.common.errors import JournalError
from raybo.record.states import State


def finished(path: str | Path) -> int:
    """How many trials have finished."""
    return _count(path, State.FINISHED)


def pending(path: str | Path) -> int:
    """How many trials are at work."""
    return _count(path, State.PENDING)


def _count(path: str | Path, state: State) -> int:
    try:
        return raybo.load(path).count(state)
    except JournalError:
        return 0
