"""The journals that a page is about: those that were named, and those in the directories that were."""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from raybo import journal
from raybo.common.errors import JournalError
from raybo.view.followed import Followed

MOST = 500  # so many journals of a directory are shown


class Shelf:
    """Finds studies by the identifiers that the page knows them by. Journals that come into a directory are found too.

    Args:
        places: journals and directories of journals (`*.db`).
    Raises:
        JournalError: there is nothing at one of the places, or no journal in any.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        self.places = [Path(place) for place in places]
        self._followed: dict[Path, Followed] = {}
        for place in self.places:
            if not place.is_dir():
                journal.require_exists(place)
        if not self.all():
            raise JournalError(f"{', '.join(map(str, places))}: there is no journal (*.db) in it; name one, or wait")

    def all(self) -> dict[str, Followed]:
        """Return every study by its identifier, in the order of the places and of the files' names."""
        found: dict[str, Followed] = {}
        for path in self._paths():
            followed = self._followed.setdefault(path, Followed(path))
            found[identifier(path)] = followed
        return found

    def find(self, name: str) -> Followed | None:
        """Return the study of an identifier; None if there is none."""
        for path, followed in list(self._followed.items()):  # another thread may just be adding to them
            if identifier(path) == name:
                return followed
        return self.all().get(name)

    def _paths(self) -> list[Path]:
        paths: list[Path] = []
        for place in self.places:
            if place.is_dir():
                paths += sorted(
                    p
                    for p in place.absolute().glob("*.db")
                    if p in self._followed or (p.is_file() and journal.is_marked(p))
                )[:MOST]
            else:
                paths.append(place)
        return list(dict.fromkeys(path.absolute() for path in paths))


def identifier(path: Path) -> str:
    """Return the page's name for a journal: not its path, which may hold anything."""
    return blake2b(os.fsencode(path), digest_size=8).hexdigest()
