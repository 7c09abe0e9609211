"""The files of a working directory that a job takes along: chosen as Git and Ray would, checked, and zipped."""

from __future__ import annotations

import contextlib
import logging
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raybo.common.errors import RayError
from raybo.engine.ray.job_client import ignore_patterns
from raybo.integrations.ignore_files import Ignores, relative
from raybo.journal.side_files import ASIDE, COMPANIONS

log = logging.getLogger("raybo")

LIMIT = 100 * 2**20  # bytes, in all; Ray takes no longer request
LEFT_OUT = (  # patterns as in .gitignore: what no job needs
    ".git/", ".hg/", ".venv/", "venv/", "node_modules/", "__pycache__/", "*.pyc", ".*_cache/", ".ipynb_checkpoints/",
    "*.db", *(f"*.db{ending}" for ending in COMPANIONS), *(f"*{ending}" for ending in ASIDE),
)  # fmt: skip
SECRETS = (  # likewise: what should not leave this machine unless its user says so
    ".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template", ".envrc",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk",
    ".ssh/", ".gnupg/", ".aws/", ".kube/", ".ray/", ".netrc", ".pgpass", ".pypirc", ".git-credentials",
)  # fmt: skip
PRIVATE_KEY = b"PRIVATE KEY-----"  # in the first line of one, whatever its file is called


@dataclass
class Chosen:
    """The files of a directory that a job takes along, and those left out unasked; relative to it, in order.

    Attributes:
        files: what travels.
        secrets: files and directories that look like secrets.
        leaving: links that lead out of the directory.
    """

    files: list[Path] = field(default_factory=list)
    secrets: list[Path] = field(default_factory=list)
    leaving: list[Path] = field(default_factory=list)


def choose(directory: Path, exclude: Sequence[str] = ()) -> Chosen:
    """The files below a directory that travel, and what is left out of them without being named.

    Left out are `LEFT_OUT`, what a .gitignore or .rayignore in it or below it, or a .gitignore above it in its
    repository, names, and `exclude`; links that lead out of the directory; and `SECRETS`, unless `exclude` holds their
    pattern with "!" before it. With RAY_RUNTIME_ENV_IGNORE_GITIGNORE=1, which is Ray's own, .gitignore says nothing.

    Args:
        exclude: patterns as in .gitignore.
    """
    directory = directory.absolute()
    wanted = ignore_patterns([pattern[1:] for pattern in exclude if pattern.startswith("!")])
    secrets = ignore_patterns([*SECRETS, *exclude])
    root = Path(os.path.realpath(directory))
    chosen = Chosen()

    def is_secret(path: Path) -> bool:
        """True if it looks like one, by its own name or the one that it links to."""
        places = (path, directory), (path.resolve(), root)
        names = {relative(each, base, is_directory=path.is_dir()) for each, base in places}
        if any(secrets.match_file(name) for name in names):
            return True
        return path.is_file() and not any(wanted.match_file(name) for name in names) and _is_private_key(path)

    def leaves(path: Path) -> bool:
        return path.is_symlink() and not path.resolve().is_relative_to(root)

    def travels(path: Path) -> bool:
        for which, left_out in ((leaves, chosen.leaving), (is_secret, chosen.secrets)):
            if which(path):
                left_out.append(path.relative_to(directory))
                return False
        return True

    left_out = ignore_patterns([*LEFT_OUT, *exclude])
    with _readable():
        paths = list(_walk(directory, directory, left_out, Ignores.above(directory), travels))
    chosen.files = [path.relative_to(directory) for path in paths]
    return chosen


def zipped(directory: Path, exclude: Sequence[str], target: Path, needed: Path | None = None) -> Path:
    """Zip what travels of a directory; the same files make the same zip, whenever they were written.

    What does not travel, though nothing names it, is told in the log.

    Args:
        needed: a file, relative to the directory, without which the job cannot run.
    Raises:
        RayError: it is more than `LIMIT`, a file cannot be read, or `needed` does not travel.
    """
    chosen = choose(directory, exclude)
    files = chosen.files
    if needed is not None and needed not in files:
        raise RayError(
            f"{needed}: it would not be sent, as .gitignore, .rayignore or --exclude names it or its directory; take "
            "it off that list, or add '!' and its name to .gitignore"
        )
    if chosen.secrets:
        log.warning(
            "not sent, as they look like secrets: %s; --exclude '!%s' sends it anyway",
            ", ".join(map(str, chosen.secrets)), chosen.secrets[0],
        )  # fmt: skip
    if chosen.leaving:
        log.warning("not sent, as these links point outside %s: %s", directory, ", ".join(map(str, chosen.leaving)))
    with _readable():
        sizes = {path: (directory / path).stat().st_size for path in files}
    if (total := sum(sizes.values())) > LIMIT:
        largest = ", ".join(f"{path} ({_mib(sizes[path])})" for path in sorted(sizes, key=sizes.__getitem__)[:-4:-1])
        raise RayError(
            f"{directory}: {_mib(total)} would be sent, and at most {_mib(LIMIT)} can be; the largest: {largest}; "
            "leave out what the job does not need, with --exclude or .rayignore, and keep large data on the cluster"
        )
    with _readable(), zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            entry = zipfile.ZipInfo(path.as_posix())  # dated 1980
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (directory / path).stat().st_mode << 16
            archive.writestr(entry, (directory / path).read_bytes())
    return target


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Turn what the system says about a file that cannot be read, or is gone by now, into one line."""
    try:
        yield
    except OSError as error:
        raise RayError(
            f"{error.filename}: it cannot be sent ({error.strerror}); make it readable, or leave it out with --exclude"
        ) from error


def _walk(
    directory: Path,
    root: Path,
    left_out: Any,
    ignores: Ignores,
    travels: Callable[[Path], bool],
    above: frozenset[str] = frozenset(),
) -> Iterator[Path]:
    real = os.path.realpath(directory)
    if real in above:  # a link to a directory that we are in
        return
    ignores = ignores.with_those_in(directory)
    for path in sorted(directory.iterdir()):
        is_directory = path.is_dir()
        if left_out.match_file(relative(path, root, is_directory=is_directory)):
            continue
        if ignores.exclude(path, is_directory=is_directory):
            continue
        if (is_directory or path.is_file() or path.is_symlink()) and not travels(path):
            continue
        if is_directory:
            yield from _walk(path, root, left_out, ignores, travels, above | {real})
        elif path.is_file():
            yield path


def _is_private_key(path: Path) -> bool:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return PRIVATE_KEY in file.readline(200)
    return False


def _mib(size: float) -> str:
    return f"{size / 2**20:.0f} MiB"
