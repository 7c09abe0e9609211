"""Ray's client for jobs: its loggers, and its choice of the files to send."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

NO_PATTERNS = ("!", "\\")  # lines that Git passes over, and Ray's matcher fails at
TALKATIVE = ("dashboard.modules.dashboard_sdk", "dashboard.modules.job.sdk", "_private.runtime_env.packaging")


def quieten_uploads() -> None:
    """Keep the loggers of Ray's client from reporting every upload."""
    for name in TALKATIVE:
        logging.getLogger(f"ray.{name}").setLevel(logging.WARNING)


def ignore_patterns(lines: Sequence[str]) -> Any:
    """Return a matcher for the lines of a .gitignore: the one that Ray itself reads it with."""
    from ray._private.thirdparty.pathspec.pathspec import PathSpec

    make: Any = PathSpec.from_lines
    return make("gitwildmatch", [line for line in lines if line.strip() not in NO_PATTERNS])


def decides(spec: Any, name: str) -> bool | None:
    """Return whether the last pattern that matches a path excludes it; None if none matches.

    Args:
        spec: of `ignore_patterns`.
        name: the path, relative to the file that holds the patterns; a directory's ends with a slash.
    """
    for pattern in reversed(spec.patterns):
        if pattern.include is not None and pattern.regex.match(name):
            return bool(pattern.include)
    return None
