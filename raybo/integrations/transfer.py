"""Journals that travel between machines as text: to a cluster beside a job's files, and back through a job's log.

What arrives is only ever *added* to a journal that it continues, under that journal's lock. If the journal already in
its place holds more, that journal stays as it is; if each holds something that the other does not, nothing is changed,
and the user is told so. So a study may go from a laptop to a cluster and back as often as one likes, and no result is
lost on the way.

What is sent is read from the journal in one transaction, so the journal may be written to meanwhile.
"""

from __future__ import annotations

import base64
import contextlib
import glob
import importlib.util
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from raybo import journal
from raybo.common.errors import JournalError
from raybo.common.files import make_directory
from raybo.journal import Journal
from raybo.journal.checks import Checker, description_of

MANY = "-many"  # ends the name of a directory of journals of which those that fit are priors
LUGGAGE = "raybo_luggage"  # the directory that travels with a job; on the cluster, it is on the path of Python modules
MARK = "raybo journal: "  # begins the lines of a log that hold one
LINE = 60_000  # characters of such a line
COPY = "copy it with `sqlite3 FILE.db '.backup COPY.db'`, and the copy with scp"  # without FILE.db-wal it lacks events
UNPACKED_BYTES = 256 * 2**20  # at most: a journal of a hundred thousand trials; what arrives may be meant to do harm


@dataclass(frozen=True)
class Arrival:
    """The relation of a journal that arrived to the one in its place.

    Attributes:
        path: the journal that it was for.
        events: how many events the journal has now.
        added: how many of them it did not have before.
        ahead: how many it has that did not arrive.
    """

    path: Path
    events: int
    added: int
    ahead: int


def pack(path: Path) -> str:
    """Return a journal as text; JournalError if there is none, or more than `UNPACKED_BYTES`."""
    description, events = journal.read(path)
    rows = [[event.number, event.kind.value, event.trial, event.at, event.data] for event in events]
    content = json.dumps({"description": description.to_json(), "events": rows}).encode()
    if len(content) > UNPACKED_BYTES:
        raise JournalError(f"{path}: it is too large to be sent this way; {COPY}")
    return base64.b64encode(zlib.compress(content)).decode()


def unpack(text: str, path: Path) -> Arrival:
    """Add what has arrived to the journal at `path`, which is made if there is none.

    Raises:
        JournalInUse: a process is writing the journal.
        JournalError: it is about another study, it and what has arrived have gone different ways, or what has arrived
            cannot be read.
    """
    try:
        content = json.loads(_decompressed(base64.b64decode(text, validate=True), path))
        description = description_of(json.dumps(content["description"]))
        checker = Checker(description.space, description.context, description.goals, description.judged)
        events = [
            checker.read(number, kind, trial, at, json.dumps(data))
            for number, kind, trial, at, data in content["events"]
        ]
    except (ValueError, TypeError, KeyError, RecursionError, zlib.error) as error:
        raise JournalError(f"{path}: what arrived for it is damaged, or from another version ({error})") from error
    with contextlib.closing(Journal(path, description)) as opened:
        added = opened.extend(events)
        total = len(opened.events) + added
    return Arrival(path, total, added, total - len(events))


def _decompressed(packed: bytes, path: Path) -> bytes:
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(packed, UNPACKED_BYTES + 1)
    if len(content) > UNPACKED_BYTES:
        raise JournalError(f"{path}: more than {UNPACKED_BYTES >> 20} MiB have arrived for it; {COPY}")
    if not unpacking.eof:
        raise ValueError("cut short")
    return content


# ---- to the cluster


def load_up(
    directory: Path,
    study: Path | None,
    known_from: Path | None,
    enqueue: Path | None,
    priors: Sequence[tuple[Sequence[Path], bool]] = (),
) -> Path | None:
    """Put what a job is to have from here into `directory`/LUGGAGE; None if there is nothing.

    Args:
        directory: an empty one.
        study: the journal that the job is to continue.
        known_from: another study's journal, for `--from`.
        enqueue: a list of configurations, for `--enqueue`.
        priors: earlier studies' journals, for `--prior`, as `journals_named` returns them.
    Raises:
        JournalError: one of these, or all that a directory or a pattern of priors names, cannot be read.
    """
    if study is None and known_from is None and enqueue is None and not priors:
        return None
    luggage = directory / LUGGAGE
    luggage.mkdir()
    if study is not None:
        (luggage / "study").write_text(pack(study), encoding="utf-8")
    if known_from is not None:  # under its name, which its results will bear in the journal
        (luggage / "from").mkdir()
        (luggage / "from" / known_from.name).write_text(pack(known_from), encoding="utf-8")
    for number, (paths, are_many) in enumerate(priors):
        place = luggage / "priors" / f"{number:04}{MANY * are_many}"
        place.mkdir(parents=True)
        unread: JournalError | None = None
        for index, path in enumerate(paths):  # each in its own directory: those of two may have one name
            try:
                packed = pack(path)
            except JournalError as error:
                if not are_many:
                    raise
                unread = error
                continue
            (place / f"{index:04}").mkdir()
            (place / f"{index:04}" / path.name).write_text(packed, encoding="utf-8")
        if unread is not None and not any(place.iterdir()):  # of many, those that can be read
            raise JournalError(f"no journal there can be a prior ({unread})")
    if enqueue is not None:
        (luggage / "enqueue").write_bytes(enqueue.read_bytes())
    return luggage


def unload(storage: Path, scratch: Path) -> tuple[Arrival | None, list[str]]:
    """Bring the journal up to date with what was sent, where the job runs.

    Args:
        storage: the journal; its directory is made where there is none.
        scratch: an empty directory, for as long as the study runs.
    Returns:
        what was done to the journal, None if none was sent; and the arguments of `raybo tune` for the rest.
    Raises:
        JournalError: as `unpack`.
    """
    make_directory(storage.parent)
    found = importlib.util.find_spec(LUGGAGE)
    arrival, arguments = None, []
    for luggage in map(Path, (found and found.submodule_search_locations) or ()):
        if (luggage / "study").exists():
            arrival = unpack((luggage / "study").read_text(encoding="utf-8"), storage)
        for other in luggage.glob("from/*"):
            unpack(other.read_text(encoding="utf-8"), scratch / other.name)
            arguments += ["--from", str(scratch / other.name)]
        for place in sorted(luggage.glob("priors/*")):
            there = scratch / "priors" / place.name
            for earlier in sorted(place.glob("*/*")):
                path = there / earlier.relative_to(place)
                path.parent.mkdir(parents=True)
                unpack(earlier.read_text(encoding="utf-8"), path)
                if not place.name.endswith(MANY):
                    arguments += ["--prior", str(path)]
            if place.name.endswith(MANY) and there.exists():
                arguments += ["--prior", f"{glob.escape(str(there))}/*/*"]
        if (luggage / "enqueue").exists():
            arguments += ["--enqueue", str(luggage / "enqueue")]
    return arrival, arguments


# ---- from the cluster


def lines_of(text: str) -> Iterator[str]:
    """A packed journal as lines of a log; the last one says that there are no more."""
    for i in range(0, len(text), LINE):
        yield MARK + text[i : i + LINE]
    yield MARK


def text_of(lines: Iterable[str]) -> str | None:
    """Return the argument of `lines_of` from a log that holds its lines; None if they are missing or cut short."""
    marked = [line[len(MARK) :] for line in lines if line.startswith(MARK)]
    return "".join(marked) if marked and not marked[-1] else None
