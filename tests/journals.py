"""Reads a journal while another process writes it; empty if it is not there yet."""

from __future__ import annotations

from pathlib import Path

import raybo
from raybo.common.errors import JournalError
from raybo.record.states import State


def finished(path: str | Path) -> int:
    """Return the number of finished trials."""
    return _count(path, State.FINISHED)


def pending(path: str | Path) -> int:
    """Return the number of running trials."""
    return _count(path, State.PENDING)


def _count(path: str | Path, state: State) -> int:
    try:
        return raybo.load(path).count(state)
    except JournalError:
        return 0
