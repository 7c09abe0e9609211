"""Paths beside a journal: the directories of its trials, its notes, its requests."""

from __future__ import annotations

import os
from pathlib import Path

COMPANIONS = ("-ack", "-lock", "-wal", "-shm", "-journal")  # appended to a journal's whole name
ASIDE = (".notes.jsonl", ".requests", ".trials")  # appended to its name without .db
CHECKPOINTS = "checkpoints"  # in a trial's directory: each in one of its own
OWNER = "study.json"  # in FILE.trials where that is not beside the journal: whose it is
OUTPUT = "output.txt"  # in a trial's directory: the last of what it printed


def is_uri(place: str | None) -> bool:
    """True if that is more than a path."""
    return place is not None and "://" in place


def without_password(place: str) -> str:
    """The place without the user and the password that a URI may hold, as it may be written down."""
    scheme, mark, rest = place.partition("://")
    if not mark:
        return place
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def beside(journal: Path | str, ending: str) -> Path:
    """`FILE.ENDING` beside `FILE.db`, by whatever link that is named."""
    path = Path(os.path.realpath(journal))
    return path.with_name(f"{path.name.removesuffix('.db')}.{ending}")


def journals_of(path: Path | str) -> list[Path]:
    """Return the paths of the journals that a path would belong to by its name: as a companion, or in a directory.

    Names are compared without case, as some file systems do; the paths need not exist.
    """
    real = Path(os.path.realpath(path))
    found: list[Path] = []
    for place in (real, *real.parents):
        name = place.name.casefold()
        found += [place.with_name(place.name[: -len(end)]) for end in COMPANIONS if name.endswith(end)]
        for end in ASIDE:
            if name.endswith(end):
                stem = place.name[: -len(end)]
                found += [place.with_name(stem), place.with_name(f"{stem}.db")]
    return [journal for journal in found if journal.name]


def trial_directory(journal: Path | str, number: int, artifacts: str | None = None) -> Path:
    """Return the directory of a trial's files: `FILE.trials/NUMBER` beside `FILE.db`, by whatever link that is named.

    Args:
        journal: that file.
        number: the trial's.
        artifacts: a directory in which `FILE.trials` is instead; None for beside the journal.
    """
    path = Path(os.path.realpath(journal))
    place = path.parent if artifacts is None else Path(artifacts)
    return place / f"{path.name.removesuffix('.db')}.trials" / str(number)


def owner_file(journal: Path | str, artifacts: str) -> str:
    """Return the path, or the URI, of the file in FILE.trials that says whose they are, for a place of its own."""
    if is_uri(artifacts):
        return trial_uri(journal, 0, artifacts).rpartition("/")[0] + f"/{OWNER}"
    return str(trial_directory(journal, 0, artifacts).with_name(OWNER))


def trial_uri(journal: Path | str, number: int, uri: str) -> str:
    """Return the place of a trial's files under a URI; what it writes to its directory is in `files` there."""
    return f"{uri.rstrip('/')}/{trial_directory(journal, number).parent.name}/{number}"
