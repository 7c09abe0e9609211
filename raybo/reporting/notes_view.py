"""The user's notes on a study, for a terminal."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from raybo.common.messages import time_shown
from raybo.common.terminal import visible
from raybo.journal.notes import read_notes
from raybo.reporting.table_layout import named_grid
from raybo.study.study import Study

LAST = 20  # notes that are shown


def notes_view(study: Study, trial: int | None = None) -> list[RenderableType]:
    """Return the last notes about a study and its trials, or about one trial; nothing if there are none."""
    if study.path is None:
        return []
    notes = [note for note in read_notes(study.path) if trial is None or note.trial == trial]
    if not notes:
        return []
    rows = []
    for note in notes[-LAST:]:
        about = "" if note.trial is None or trial is not None else f"trial {note.trial}: "
        rows.append((time_shown(note.at), visible(f"{about}{note.text}")))
    left = len(notes) - len(rows)
    earlier = f" (the last {len(rows)} of {len(notes)})" if left else ""
    return [Text(f"\nnotes{earlier}", style="bold"), named_grid(rows)]
