"""The directories of trials: beside the journal, in another directory, or under a URI that pyarrow knows.

With a URI (s3://, gs://, hdfs://, file://), a trial works in a temporary directory of its worker. Checkpoints are
copied to the URI as they are saved, before the report that names them; the other files when the attempt ends.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from raybo.common.errors import JournalError, MissingExtra, RayError, install_command
from raybo.common.messages import in_words
from raybo.engine.run_options import Keep
from raybo.engine.temporary_directories import TEMPORARY, private_directory
from raybo.engine.trial.checkpoints import Checkpoints
from raybo.journal.side_files import (
    CHECKPOINTS,
    OWNER,
    is_uri,
    owner_file,
    trial_directory,
    trial_uri,
    without_password,
)
from raybo.record.events import Event

log = logging.getLogger(__name__)


class Mirror:
    """A directory in a file system that pyarrow knows.

    Args:
        uri: the directory's.
    Raises:
        MissingExtra: pyarrow is not installed.
        RayError: pyarrow cannot use it.
    """

    def __init__(self, uri: str) -> None:
        try:
            from pyarrow import fs
        except ImportError:
            raise MissingExtra(f"{uri}: a URI needs pyarrow: {install_command('tune')}") from None
        self._fs = fs
        try:
            self._files, self._root = fs.FileSystem.from_uri(uri)
        except Exception as error:  # whatever a file system raises about its own URI
            raise RayError(f"--artifacts {without_password(uri)}: it cannot be used: {in_words(error)}") from error

    def upload(self, directory: Path, name: str) -> None:
        """Copy a local directory there, under a name."""
        self._files.create_dir(f"{self._root}/{name}", recursive=True)
        self._fs.copy_files(
            str(directory),
            f"{self._root}/{name}",
            source_filesystem=self._fs.LocalFileSystem(),
            destination_filesystem=self._files,
        )

    def fetch(self, name: str, directory: Path) -> bool:
        """Copy the directory of that name from there; False if there is none."""
        info = self._files.get_file_info(f"{self._root}/{name}")
        if info.type is not self._fs.FileType.Directory:
            return False
        directory.mkdir(parents=True, exist_ok=True)
        self._fs.copy_files(
            info.path, str(directory), source_filesystem=self._files, destination_filesystem=self._fs.LocalFileSystem()
        )
        return True

    def names(self, name: str) -> list[str]:
        """Return the names in the directory of that name."""
        selector = self._fs.FileSelector(f"{self._root}/{name}", allow_not_found=True)
        return [info.base_name for info in self._files.get_file_info(selector)]

    def read(self, name: str) -> str | None:
        """Return the content of the file of that name; None if there is no such file."""
        info = self._files.get_file_info(f"{self._root}/{name}")
        if info.type is not self._fs.FileType.File:
            return None
        with self._files.open_input_stream(info.path) as stream:
            return str(stream.read().decode(errors="replace"))

    def write(self, name: str, text: str) -> None:
        """Write a small file of that name."""
        self._files.create_dir(self._root, recursive=True)
        with self._files.open_output_stream(f"{self._root}/{name}") as stream:
            stream.write(text.encode())

    def remove(self, name: str) -> None:
        """Remove the directory of that name."""
        self._files.delete_dir(f"{self._root}/{name}")


def require_own(journal: Path, artifacts: str, events: Sequence[Event]) -> None:
    """Raise JournalError if the trials under a place of its own, by the journal's name, are known as another study's.

    Args:
        journal: the study's.
        artifacts: the place, a path or a URI.
        events: the journal's; a study is known by the time of its first one, before that by its place.
    """
    file = owner_file(journal, artifacts)
    owner, own = _owner(file), _own(journal, events)
    if owner is None or owner["began"] == own["began"] or (not events and owner["journal"] == own["journal"]):
        return
    raise JournalError(
        f"--artifacts {without_password(artifacts)}: what is there for {journal.name} belongs to another study "
        f"({owner['journal']}); name another place, or if it is this one's remove {without_password(file)}"
    )


def claim(journal: Path, artifacts: str, events: Sequence[Event]) -> None:
    """Write down whose the trials under a place of its own are, as far as that can be done; another study's stay so."""
    file = owner_file(journal, artifacts)
    owner, own = _owner(file), _own(journal, events)
    if owner is None or own["journal"] == owner["journal"] or own["began"] == owner["began"]:
        text = json.dumps(own)
        with contextlib.suppress(Exception):  # only the nodes of trials may have the directory, or may write there
            if is_uri(file):
                Mirror(file.rpartition("/")[0]).write(OWNER, text)
            else:
                Path(file).parent.mkdir(parents=True, exist_ok=True)
                Path(f"{file}.new").write_text(text, encoding="utf-8")
                os.replace(f"{file}.new", file)


def _own(journal: Path, events: Sequence[Event]) -> dict[str, str]:
    return {
        "began": events[0].at if events else "",
        "journal": f"{socket.gethostname()}:{os.path.realpath(journal)}",
    }


def _owner(file: str) -> dict[str, str] | None:
    """Return whose the trials are, by the path or URI of the file that says it; None if it is not known."""
    with contextlib.suppress(Exception):  # there is none, it is damaged, or this machine may not read it
        text = Mirror(file.rpartition("/")[0]).read(OWNER) if is_uri(file) else Path(file).read_text(encoding="utf-8")
        found = json.loads(text or "")
        return {name: str(found[name]) for name in ("began", "journal")}
    return None


@contextlib.contextmanager
def trial_files(
    journal: Path, number: int, attempt: int, artifacts: str | None, last: str | None, keep: Keep, rank: int = 0
) -> Iterator[tuple[Path, Checkpoints]]:
    """Yield a trial's directory and its checkpoints, for one attempt.

    Args:
        journal: the study's.
        number, attempt: of the trial.
        artifacts: the place of the directories; None for beside the journal.
        last: name of the last committed checkpoint; None if there is none.
        keep: which are kept at the end.
        rank: of the process whose they are.
    """
    if artifacts is None or not is_uri(artifacts):
        place = trial_directory(journal, number, artifacts)
        yield place, Checkpoints(place / CHECKPOINTS, attempt, last, keep, rank=rank)
        return
    uri = trial_uri(journal, number, artifacts)
    mirror = Mirror(uri)
    with _working_directory() as place:
        if attempt > 1:
            mirror.fetch(FILES, place / FILES)
        yield place / FILES, Checkpoints(place / CHECKPOINTS, attempt, last, keep, mirror, rank)
        if (place / FILES).is_dir():
            try:
                mirror.upload(place / FILES, FILES)
            except Exception as error:  # noqa: BLE001  # whatever it is must not cost the trial its result
                log.warning("trial %d: its files are lost, as %s cannot be written: %s", number, uri, in_words(error))


@contextlib.contextmanager
def _working_directory() -> Iterator[Path]:
    """Yield a directory that lasts as long as an attempt. If that is killed, a later one removes it.

    Not in a place that the user has chosen for temporary files: nodes may share it, and its locks may hold on one only.
    """
    if tempfile.gettempdir() == TEMPORARY:
        with private_directory() as place:
            yield place
    else:
        with tempfile.TemporaryDirectory(prefix="raybo-trial-", ignore_cleanup_errors=True) as name:
            yield Path(name)


FILES = "files"  # under a URI, the name of what a trial writes to its directory
