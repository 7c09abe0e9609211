"""The checkpoints of one trial: written whole or not at all, and named by the reports that they go with.

A checkpoint is written under a partial name beside the others, flushed to disk and renamed; only then may a report name
it. So the journal never names one that is not whole. Two are kept while a trial runs, as the last one may not have been
committed when the trial's process dies.

In a trial of several processes each of them may save a part. The first one merges what it finds on its own file system
into its own part before it reports; under a URI they are uploaded to the same place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from raybo.common import systems
from raybo.common.errors import ObjectiveError
from raybo.engine.run_options import Keep
from raybo.journal.side_files import CHECKPOINTS

PARTIAL = ".partial"
NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)  # a file system cannot sync directories
NAME = re.compile(r"\d+-\d+")  # the attempt, and a number that counts within it
PART = re.compile(r"\d+-\d+\.rank-\d+")  # of one process


class Elsewhere(Protocol):
    """A trial's directory on another machine."""

    def upload(self, directory: Path, name: str) -> None:
        """Copy a local directory there, under a name."""
        ...

    def fetch(self, name: str, directory: Path) -> bool:
        """Copy the directory of that name from there; False if there is none."""
        ...

    def names(self, name: str) -> list[str]:
        """Return the names in the directory of that name."""
        ...

    def remove(self, name: str) -> None:
        """Remove the directory of that name."""
        ...


class Checkpoints:
    """The checkpoints of one trial, as one attempt of it sees them.

    Args:
        place: the directory that they are in, made when it is first needed; None if none is kept.
        attempt: number of this attempt, with which names begin.
        last: name of the last committed checkpoint; None if there is none.
        keep: which are kept at the end.
        elsewhere: the place where they are kept under the same names when this process has ended; None for `place`.
        rank: of this process. Others than the first save parts of checkpoints, and remove nothing.
    Attributes:
        place, keep, rank: as given.
    """

    def __init__(
        self,
        place: Path | None,
        attempt: int,
        last: str | None,
        keep: Keep = "last",
        elsewhere: Elsewhere | None = None,
        rank: int = 0,
    ) -> None:
        self.place = place
        self._elsewhere = elsewhere
        self.keep = keep
        self.rank = rank
        self._attempt, self._count = attempt, 0
        self._last = self._first = last
        self._next: str | None = None  # written, and not in a report yet
        self._has_begun = False

    def last(self) -> Path | None:
        """Return the directory of the last committed checkpoint; None if there is none, or none here."""
        if self.place is None or self._last is None:
            return None
        found = self.place / self._last
        if not found.is_dir() and self._elsewhere is not None:
            partial = self.place / f"{self._last}{PARTIAL}"
            shutil.rmtree(partial, ignore_errors=True)
            if self._elsewhere.fetch(f"{CHECKPOINTS}/{self._last}", partial):
                os.rename(partial, found)
        return found if found.is_dir() else None

    def forget(self) -> None:
        """Begin without the last checkpoint, as other processes of the trial cannot find it."""
        self._last = None

    @contextlib.contextmanager
    def saving(self) -> Iterator[Path]:
        """Yield a directory that becomes the next checkpoint, unless the block raises."""
        if self.place is None:
            with tempfile.TemporaryDirectory(prefix="raybo-checkpoint-") as temporary:
                yield Path(temporary)
            return
        name = f"{self._attempt}-{self._count + 1}"
        own = _part(name, self.rank)
        partial = self.place / f"{own}{PARTIAL}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            yield partial
            _to_disk(partial)
        except BaseException:  # whatever the job raises: what it has saved is not whole
            shutil.rmtree(partial, ignore_errors=True)
            raise
        os.rename(partial, self.place / own)
        self._count += 1  # now: whatever fails from here on, the name is taken
        _sync(self.place)
        if self._elsewhere is not None:
            self._elsewhere.upload(self.place / own, f"{CHECKPOINTS}/{name}")
            if self.rank:
                shutil.rmtree(self.place / own, ignore_errors=True)
        if self._next is not None:  # saved twice between two reports
            shutil.rmtree(self.place / _part(self._next, self.rank), ignore_errors=True)
        self._next = name

    def merge(self, name: str, ranks: Sequence[int]) -> str:
        """Add the parts of other processes to a checkpoint that has been saved here, before a report names it.

        Returns:
            why it is not whole; empty if it is.
        """
        if not ranks or self.place is None or self._elsewhere is not None:  # there they are in one place already
            return ""
        for rank in ranks:
            part = self.place / _part(name, rank)
            if not part.is_dir():
                return (
                    f"the checkpoint of rank {rank} is on another node, and the nodes do not share {self.place}; name "
                    "with --artifacts (artifacts=...) a directory that they share, or a URI"
                )
            if found := _move(part, self.place / name):
                return f"rank {rank} and another rank both saved {found!r}; put the rank into the name"
            shutil.rmtree(part, ignore_errors=True)
        _sync(self.place / name)
        return ""

    def take(self) -> str | None:
        """Return the name of the checkpoint saved since the last report; None if there is none."""
        name, self._next = self._next, None
        return name

    def committed(self, name: str) -> None:
        """Remove all but this checkpoint, whose report is committed, the one before it, and that of the beginning.

        From the latter, ranks of a launcher that are slower than the one that reports may still have to begin.
        """
        before, self._last = self._last, name
        if self.rank:
            return
        if self.place is not None and self.keep != "all":
            self._remove_all_but({name, before, self._first}, before=name)  # other processes may be writing later ones

    def begin(self) -> None:
        """Remove what earlier attempts have left and no report names; the names of what stays are not used again."""
        if self.place is None or self.rank or self._has_begun:
            return
        self._has_begun = True
        self._remove_all_but(None if self.keep == "all" else {self._last})
        left = (name.split("-") for name in self._names())
        self._count = max((int(count) for attempt, count in left if int(attempt) == self._attempt), default=0)

    def end(self) -> None:
        """Remove the checkpoints that are not to be kept of a trial that has ended."""
        if self.place is not None and self.keep != "all" and not self.rank:
            self._remove_all_but({self._last} if self.keep == "last" else set())

    def _names(self) -> list[str]:
        """Return the names of all checkpoints that there are."""
        assert self.place is not None
        names = [each.name for each in self.place.iterdir()] if self.place.is_dir() else []
        names += [] if self._elsewhere is None else self._elsewhere.names(CHECKPOINTS)
        return [name for name in names if NAME.fullmatch(name)]

    def _remove_all_but(self, kept: set[str | None] | None, before: str | None = None) -> None:
        """Remove checkpoints and what was not saved whole.

        Args:
            kept: names of checkpoints that stay; None for all of them.
            before: only checkpoints earlier than this one are removed; None if nothing is being saved.
        """
        assert self.place is not None

        def is_old(name: str) -> bool:
            is_checkpoint = NAME.fullmatch(name) is not None
            return (
                is_checkpoint
                and kept is not None
                and name not in kept
                and (before is None or _key(name) < _key(before))
            )

        for each in self.place.iterdir() if self.place.is_dir() else ():
            is_part = each.name.endswith(PARTIAL) or PART.fullmatch(each.name) is not None
            if (is_part and before is None) or is_old(each.name):
                shutil.rmtree(each, ignore_errors=True)
        if self._elsewhere is None or kept is None:
            return
        for name in self._elsewhere.names(CHECKPOINTS):
            if is_old(name):
                self._elsewhere.remove(f"{CHECKPOINTS}/{name}")


def _part(name: str, rank: int) -> str:
    """Return the name under which a process saves its part of a checkpoint."""
    return f"{name}.rank-{rank}" if rank else name


def _key(name: str) -> tuple[int, ...]:
    """Return the attempt and the count of a checkpoint's name, by which they are ordered."""
    return tuple(map(int, name.split("-")))


def _move(source: Path, target: Path) -> str:
    """Move what is in a directory into another one; return the name of a file that both have, empty if none."""
    for each in sorted(source.iterdir()):
        there = target / each.name
        if not there.exists():
            os.rename(each, there)
        elif not (each.is_dir() and there.is_dir()):
            return each.name
        elif found := _move(each, there):
            return f"{each.name}/{found}"
    return ""


def _to_disk(directory: Path) -> None:
    """Flush everything in a directory to the disk."""
    for place, _, names in os.walk(directory):
        for name in names:
            _sync(Path(place, name))
        _sync(Path(place))


def _sync(path: Path) -> None:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a pipe would block the trial
        raise ObjectiveError(
            f"saving: {path.name} is a pipe, a socket or a device, which no checkpoint can hold; save files only"
        )
    if stat.S_ISDIR(mode) and not systems.OPENS_DIRECTORIES:
        return
    descriptor = os.open(path, (os.O_RDONLY if systems.IS_POSIX else os.O_RDWR) | systems.NONBLOCK)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NO_SYNC or not path.is_dir():
            raise
    finally:
        os.close(descriptor)
