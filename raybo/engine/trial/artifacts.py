"""Where trials' directories are kept: beside the journal, in another directory, or under a URI that pyarrow knows.

With a URI (s3://, gs://, hdfs://, file://), a trial works in a directory of its worker's own. Checkpoints are copied
to the URI as they are saved, before the report that names them; the other files when the attempt ends.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from raybo.common.errors import MissingExtra, RayError, install_command
from raybo.common.messages import in_words
from raybo.engine.temporary_directories import TEMPORARY, private_directory
from raybo.engine.trial.checkpoints import Checkpoints, Keep
from raybo.journal.beside import CHECKPOINTS, is_uri, trial_directory, trial_uri


class Mirror:
    """A directory of a file system that pyarrow knows.

    Args:
        uri: its own.
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
            raise RayError(f"--artifacts {uri}: it cannot be used: {in_words(error)}") from error

    def upload(self, directory: Path, name: str) -> None:
        """Copy a directory there, under a name."""
        self._files.create_dir(f"{self._root}/{name}", recursive=True)
        self._fs.copy_files(
            str(directory),
            f"{self._root}/{name}",
            source_filesystem=self._fs.LocalFileSystem(),
            destination_filesystem=self._files,
        )

    def fetch(self, name: str, directory: Path) -> bool:
        """Copy what has that name from there; whether there is such a thing."""
        info = self._files.get_file_info(f"{self._root}/{name}")
        if info.type is not self._fs.FileType.Directory:
            return False
        directory.mkdir(parents=True, exist_ok=True)
        self._fs.copy_files(
            info.path, str(directory), source_filesystem=self._files, destination_filesystem=self._fs.LocalFileSystem()
        )
        return True

    def names(self, name: str) -> list[str]:
        """What is in the directory of that name."""
        selector = self._fs.FileSelector(f"{self._root}/{name}", allow_not_found=True)
        return [info.base_name for info in self._files.get_file_info(selector)]

    def remove(self, name: str) -> None:
        """Remove the directory of that name."""
        self._files.delete_dir(f"{self._root}/{name}")


@contextlib.contextmanager
def trial_files(
    journal: Path, number: int, attempt: int, artifacts: str | None, last: str | None, keep: Keep
) -> Iterator[tuple[Path, Checkpoints]]:
    """A trial's directory, and its checkpoints, for one attempt.

    Args:
        journal: the study's.
        number, attempt: of the trial.
        artifacts: where the directories are; None for beside the journal.
        last: name of the last checkpoint that is committed.
        keep: which are kept at the end.
    """
    if artifacts is None or not is_uri(artifacts):
        place = trial_directory(journal, number, artifacts)
        yield place, Checkpoints(place / CHECKPOINTS, attempt, last, keep)
        return
    mirror = Mirror(trial_uri(journal, number, artifacts))
    with _working_directory() as place:
        if attempt > 1:
            mirror.fetch(FILES, place / FILES)
        yield place / FILES, Checkpoints(place / CHECKPOINTS, attempt, last, keep, mirror)
        if (place / FILES).is_dir():
            mirror.upload(place / FILES, FILES)


@contextlib.contextmanager
def _working_directory() -> Iterator[Path]:
    """Of an attempt: if it is killed, a later one removes it, unless it is where the user wants temporary files.

    Nodes may share that place, and locks there may hold on one of them only.
    """
    if tempfile.gettempdir() == TEMPORARY:
        with private_directory() as place:
            yield place
    else:
        with tempfile.TemporaryDirectory(prefix="raybo-trial-", ignore_cleanup_errors=True) as name:
            yield Path(name)


FILES = "files"  # what a trial writes to its directory
