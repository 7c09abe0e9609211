"""Paths to parameters in nested configurations."""

from __future__ import annotations

from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]


def label(path: Path) -> str:
    """Return a path as people read it: its keys joined by dots, a choice that holds parameters by its name."""
    return ".".join(text for text in map(str, path) if text)
