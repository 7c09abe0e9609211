"""The fields of an event that hold a context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from raybo.common.arguments import keys_of
from raybo.common.errors import TrialError
from raybo.common.messages import shown
from raybo.space import Reading, Row, Space, read_context


class ContextFields(TypedDict, total=False):
    """Those of `TrialEvent`."""

    context: Row
    c: list[float]
    context_note: str
    context_missing: list[str]


def context_data(context: Space, reading: Reading) -> ContextFields:
    """Return the fields of an event for a reported context: its values, and a note about it."""
    data: ContextFields = {}
    if reading.values is not None:
        row = context.pack(reading.values)
        data["context"], data["c"] = row, context.points([row])[0].tolist()
    if reading.note:
        data["context_note"] = reading.note
    if reading.missing:
        data["context_missing"] = list(reading.missing)
    return data


def told_context(declared: Space | None, context: Mapping[str, Any], who: str) -> ContextFields:
    """Return the fields of an event for a context that a user gives.

    Raises:
        TrialError: none is declared, or this one is missing a value or rejected; begun with `who`.
    """
    if declared is None:
        raise TrialError(
            f"{who}: a context was given, but none is declared; declare one with context= next to the space"
        )
    if (names := keys_of(context)) is None:
        raise TrialError(f"{who}: a context is a dict, got {shown(context)}")
    if unknown := [name for name in names if name not in declared.names]:
        raise TrialError(
            f"{who}: {shown(unknown[0])} is not a declared context; the study declares {', '.join(declared.names)}"
        )
    reading = read_context(declared, context)
    if reading.values is None:
        raise TrialError(f"{who}: {reading.note or f'context {reading.missing[0]}: missing'}")
    return context_data(declared, reading)
