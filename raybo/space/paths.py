"""Where a parameter stands in a nested configuration."""

from __future__ import annotations

from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]


def label(path: Path) -> str:
    """A path as people read it: its keys joined by dots."""
    return ".".join(str(key) for key in path)
