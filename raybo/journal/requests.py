"""A user's requests to a study that another process runs: files in a directory beside its journal.

    {"ask": "stop"}                        end it, as Ctrl-C does
    {"ask": "enqueue", "values": [...]}    run this configuration next; a row as `Space.pack` makes it,
                                           with None (null) also for what is to be proposed

Whoever runs a study and hears requests makes the directory, takes each request up and then removes it. So a request
reaches a study whoever has begun it and however, and the one that comes too late waits for the next run. What is asked
twice is done once.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raybo.common import systems
from raybo.common.errors import JournalError
from raybo.journal.lock import in_use
from raybo.journal.side_files import beside
from raybo.space import Row

MOST_BYTES = 1_000_000  # of a request
ENDING = ".json"
DIGITS = 20  # of the number that a request's name begins with


@dataclass(frozen=True)
class Request:
    """One thing that is asked.

    Attributes:
        file: where it is.
        values: the configuration to run; None where the study is to stop.
    """

    file: Path
    values: Row | None

    def done(self) -> None:
        """Remove the request: what follows from it is committed."""
        self.file.unlink(missing_ok=True)


def directory(journal: Path | str) -> Path:
    """Return the directory of the requests to a study: `FILE.requests` beside `FILE.db`."""
    return beside(journal, "requests")


def is_listening(journal: Path | str) -> bool:
    """True if the process that runs the study, if there is one, takes requests."""
    return directory(journal).is_dir()


def listen(journal: Path | str) -> bool:
    """Make the directory for requests; False if it cannot be made."""
    with contextlib.suppress(OSError):
        directory(journal).mkdir(mode=0o700, exist_ok=True)
    return is_listening(journal)


def stop_listening(journal: Path | str) -> None:
    """Remove the directory, unless a request waits in it for the next run."""
    with contextlib.suppress(OSError):
        directory(journal).rmdir()


def ask(journal: Path | str, values: Row | None = None) -> str:
    """Ask a study to run a configuration next, or to stop if none is given; return the request's name.

    Raises:
        JournalError: it cannot be written.
    """
    request = {"ask": "stop"} if values is None else {"ask": "enqueue", "values": values}
    place = directory(journal)
    latest = max((int(name[:DIGITS]) for name in _names(place) if name[:DIGITS].isdecimal()), default=0)
    name = f"{max(time.time_ns(), latest + 1):0{DIGITS}d}-{secrets.token_hex(4)}"  # in order, whatever the clock says
    written = place / f"{name}.new"
    try:
        with open(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | systems.NOFOLLOW, 0o600), "w") as file:
            json.dump(request, file)
        os.replace(written, place / f"{name}{ENDING}")
    except OSError as error:
        raise JournalError(
            f"{journal}: the request cannot be written ({error.strerror}); check the disk and the directory's "
            "permissions"
        ) from error
    return name


def ask_to_stop(journal: Path | str) -> None:
    """Ask the study that is running to stop.

    Raises:
        JournalError: it is not running, takes no requests, or none can be written.
    """
    if not in_use(journal):
        raise JournalError(f"{Path(journal).name}: it is not running, so there is nothing to stop")
    require_listening(journal, "stop it where it was started")
    ask(journal)


def require_listening(journal: Path | str, remedy: str) -> None:
    """Raise JournalError, with a remedy, if the process that runs the study takes no requests."""
    if not is_listening(journal):
        raise JournalError(f"{Path(journal).name}: the process that runs it takes no requests; {remedy}")


def waiting(journal: Path | str) -> list[Request]:
    """Return the requests that wait, the oldest first. Files that are no requests are left alone."""
    place = directory(journal)
    found = [_read(place / name) for name in _names(place)]
    return [request for request in found if request is not None]


def forget_stops(journal: Path | str) -> None:
    """Remove what asked an earlier run to stop; for whoever begins another one and holds the journal."""
    for request in waiting(journal):
        if request.values is None:
            request.done()


def _names(place: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(place) if name.endswith(ENDING))
    except OSError:
        return []


def _read(path: Path) -> Request | None:
    try:
        with open(os.open(path, os.O_RDONLY | systems.NOFOLLOW | systems.NONBLOCK | systems.CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
                return None
            said = json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    values = said.get("values")
    if said.get("ask") == "stop":
        return Request(path, None)
    if said.get("ask") == "enqueue" and isinstance(values, Sequence) and not isinstance(values, str):
        return Request(path, list(values))
    return None
