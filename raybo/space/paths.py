"""Paths to parameters in nested configurations."""

from __future__ import annotations

from typing import TypeAlias

from raybo.common.messages import shortened

Path: TypeAlias = tuple[str | int, ...]


def named(path: Path) -> str:
    """Return a path as `label`, at a length that fits a message."""
    return shortened(label(path), 300)


def label(path: Path) -> str:
    """Return a path as people read it: its keys joined by dots, a choice that holds parameters by its name."""
    return ".".join(text for text in map(str, path) if text)
