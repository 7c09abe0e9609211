"""What of a working directory travels with a job: chosen as Git and Ray would, checked, and zipped."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from raybo.errors import RayError

LIMIT = 100 * 2**20  # bytes, in all; Ray takes no longer request
IGNORES = (".gitignore", ".rayignore")
LEFT_OUT = (  # patterns as in .gitignore: what no job needs
    ".git/", ".hg/", ".venv/", "venv/", "node_modules/", "__pycache__/", "*.pyc", ".*_cache/", ".ipynb_checkpoints/",
    "*.db", "*.db-wal", "*.db-shm", "*.db-lock",
)  # fmt: skip


def files_of(directory: Path, exclude: Sequence[str] = ()) -> list[Path]:
    """The files below a directory that travel, relative to it, in order.

    Left out are `LEFT_OUT`, what a .gitignore or .rayignore in it or below it names, and `exclude`. With
    RAY_RUNTIME_ENV_IGNORE_GITIGNORE=1, which is Ray's own, .gitignore says nothing.

    Args:
        exclude: patterns as in .gitignore.
    """
    specs = [(directory, _patterns([*LEFT_OUT, *exclude]))]
    return [path.relative_to(directory) for path in _walk(directory, specs, frozenset())]


def zipped(directory: Path, exclude: Sequence[str], target: Path) -> Path:
    """Zip what travels of a directory; the same files make the same zip, whenever they were written.

    Raises:
        RayError: it is more than `LIMIT`.
    """
    files = files_of(directory, exclude)
    sizes = {path: (directory / path).stat().st_size for path in files}
    if (total := sum(sizes.values())) > LIMIT:
        largest = ", ".join(f"{path} ({_mib(sizes[path])})" for path in sorted(sizes, key=sizes.__getitem__)[:-4:-1])
        raise RayError(
            f"{directory}: {_mib(total)} would be sent, and at most {_mib(LIMIT)} can be; the largest: {largest}; "
            "leave out what the job does not need, with --exclude or .rayignore, and keep large data on the cluster"
        )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            entry = zipfile.ZipInfo(path.as_posix())  # dated 1980
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (directory / path).stat().st_mode << 16
            archive.writestr(entry, (directory / path).read_bytes())
    return target


def _walk(directory: Path, specs: list[tuple[Path, Any]], above: frozenset[str]) -> Iterator[Path]:
    real = os.path.realpath(directory)
    if real in above:  # a link to a directory that we are in
        return
    ignores = IGNORES[1:] if os.environ.get("RAY_RUNTIME_ENV_IGNORE_GITIGNORE") == "1" else IGNORES
    for name in ignores:
        if (directory / name).is_file():
            specs = [*specs, (directory, _patterns((directory / name).read_text(encoding="utf-8").splitlines()))]
    for path in sorted(directory.iterdir()):
        is_directory = path.is_dir()
        if any(spec.match_file(_relative(path, base, is_directory)) for base, spec in specs):
            continue
        if is_directory:
            yield from _walk(path, specs, above | {real})
        elif path.is_file():
            yield path


def _relative(path: Path, base: Path, is_directory: bool) -> str:
    return path.relative_to(base).as_posix() + ("/" if is_directory else "")


def _patterns(lines: Sequence[str]) -> Any:
    from ray._private.thirdparty.pathspec.pathspec import PathSpec  # what Ray itself reads .gitignore with

    make: Any = PathSpec.from_lines
    return make("gitwildmatch", lines)


def _mib(size: float) -> str:
    return f"{size / 2**20:.0f} MiB"
