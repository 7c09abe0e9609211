"""Text that can be written anywhere: UTF-8, without halves of surrogate pairs, as Python makes them of stray bytes."""

from __future__ import annotations

from typing import Any, TypeVar

from raybo.record.description import Description, as_text
from raybo.record.events import Event

E = TypeVar("E", bound=Event)


def clean_text(text: str) -> str:
    """The text, with a lone surrogate told by its escape; what differs before differs afterwards."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def clean_json(value: Any) -> Any:
    """Return JSON with every text and every name in it made clean."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key) if isinstance(key, str) else key: clean_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_json(item) for item in value]
    return value


def clean_description(description: Description) -> Description:
    """Return the description as it is read back; the description itself if nothing in it has to be made clean."""
    said = description.to_json()
    cleaned = clean_json(said)
    return description if as_text(cleaned) == as_text(said) else Description.from_json(cleaned)


def clean(event: E) -> E:
    """Return the event with its content made clean."""
    return type(event).of(event.trial, clean_json(event.data), event.number, event.at)
