"""Tells what .gitignore and .rayignore exclude of a directory: the last pattern that matches decides, of each kind."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raybo.engine.ray.job_client import deciding

GIT, RAY = ".gitignore", ".rayignore"


@dataclass(frozen=True)
class Ignores:
    """The ignore files that count in a directory.

    Attributes:
        git, ray: for each file the directory that it is in, and its patterns; the outermost first.
    """

    git: tuple[tuple[Path, Any], ...] = ()
    ray: tuple[tuple[Path, Any], ...] = ()

    @classmethod
    def above(cls, directory: Path) -> Ignores:
        """Return those above a directory in its Git repository, unless they exclude all of it."""
        directory = directory.absolute()
        outer = list[Path]()
        for place in (directory, *directory.parents):
            if place != directory:
                outer.insert(0, place)
            if (place / ".git").exists():
                break
        else:
            return cls()
        found = cls()
        for place in outer:
            found = cls(git=found.with_those_in(place).git)
            inner = directory.relative_to(place)
            steps = [place / part for part in (*reversed(inner.parents[:-1]), inner)]
            if any(found.exclude(step, is_directory=True) for step in steps):
                return cls()
        return found

    def with_those_in(self, directory: Path) -> Ignores:
        """Return these and those that are in a directory below."""
        asked = os.environ.get("RAY_RUNTIME_ENV_IGNORE_GITIGNORE") != "1"  # Ray's own variable
        git = _read(directory, GIT) if asked else ()
        return Ignores((*self.git, *git), (*self.ray, *_read(directory, RAY)))

    def exclude(self, path: Path, *, is_directory: bool) -> bool:
        """Return True if a path is excluded; what is above it is not."""
        for files in (self.git, self.ray):
            verdicts = (
                excludes
                for base, patterns in reversed(files)
                for excludes, names in reversed(patterns)
                if names.match(relative(path, base, is_directory=is_directory))
            )
            if next(verdicts, False):
                return True
        return False


def relative(path: Path, base: Path, *, is_directory: bool) -> str:
    """Return a path as patterns see it."""
    return path.relative_to(base).as_posix() + ("/" if is_directory else "")


def _read(directory: Path, name: str) -> tuple[tuple[Path, Any], ...]:
    file = directory / name
    if not file.is_file():
        return ()
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return ((directory, deciding(lines)),)
