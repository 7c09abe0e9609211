"""Text made safe for a terminal: escape sequences are shown, not executed."""

from __future__ import annotations

import re

_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_COLOURS = re.compile("\x1b\\[[0-9;]*m")


def without_colours(text: str) -> str:
    """Return text without ANSI colours; other escape sequences stay."""
    return _COLOURS.sub("", text)


def visible(text: str) -> str:
    """Return text with control characters escaped as Python writes them, `\\x1b`.

    That is: control characters but for line ends and tabs, what turns the direction of writing, and what no encoding
    has (a lone surrogate).
    """
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Return text as one line, with control characters escaped."""
    return visible(" ".join(line.strip() for line in text.split("\n") if line.strip()))
