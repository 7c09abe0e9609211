"""Where a parameter stands in a nested configuration."""

from __future__ import annotations

from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]


def label(path: Path) -> str:
    """A path as people read it: its keys joined by dots, a choice that holds parameters by its name."""
    return ".".join(text for text in map(str, path) if text)
