"""Ray's client for jobs: its loggers, and its choice of the files to send."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

BELOW = "(?:/.*)?$"  # how the expression of a pattern ends: or anything below
TALKATIVE = ("dashboard.modules.dashboard_sdk", "dashboard.modules.job.sdk", "_private.runtime_env.packaging")


def quieten_uploads() -> None:
    """Keep the loggers of Ray's client from reporting every upload."""
    for name in TALKATIVE:
        logging.getLogger(f"ray.{name}").setLevel(logging.WARNING)


def ignore_patterns(lines: Sequence[str]) -> Any:
    """Return a matcher for the lines of a .gitignore: the one that Ray itself reads it with.

    Lines that it fails at, which Git passes over, are left out.
    """
    return _spec([line for line in lines if _is_pattern(line)])


def deciding(lines: Sequence[str]) -> list[tuple[bool, re.Pattern[str]]]:
    """Return for each pattern of a .gitignore whether it excludes, and what the paths are that it names themselves.

    A directory's path ends with a slash. What is below a directory is not named: who walks does not enter an excluded
    one, and one that is let in again lets in nothing else.
    """
    found: list[tuple[bool, re.Pattern[str]]] = []
    for line in filter(_is_pattern, lines):
        for pattern in _spec([line]).patterns:
            if pattern.include is None:
                continue
            text: str = pattern.regex.pattern
            if text.endswith(BELOW):
                text = f"{text.removesuffix(BELOW)}/?$"
            elif line.rstrip().endswith("/") and text.endswith("/.*$"):
                text = f"{text.removesuffix('.*$')}$"
            found.append((bool(pattern.include), re.compile(text)))
    return found


def _spec(lines: Sequence[str]) -> Any:
    from ray._private.thirdparty.pathspec.pathspec import PathSpec

    make: Any = PathSpec.from_lines
    return make("gitwildmatch", lines)


def _is_pattern(line: str) -> bool:
    try:
        _spec([line])
    except (IndexError, ValueError, re.error):
        return False
    return True
