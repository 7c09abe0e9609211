"""What a fault is, and what must hold of any command whatever it was given."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from unittest.mock import patch

from raybo import cli
from raybo.common.errors import RayError

EXITS = (0, 1, 2)
LONGEST_LINE = 2_000  # characters of an error: one line that a person can read


@dataclass
class Case:
    """One thing that was tried.

    Attributes:
        what: it, in words that repeat it.
        faults: what did not hold; empty where all did.
        tried: how many things it stands for.
    """

    what: str
    faults: list[str] = field(default_factory=list)
    tried: int = 1


Attack = Callable[[Random, Path], Case]


@dataclass(frozen=True)
class Said:
    """The output of a command."""

    code: int
    out: str
    err: str


def run_command(arguments: Sequence[str], directory: Path) -> tuple[Said, list[str]]:
    """Run `raybo ARGUMENTS` in this process, in that directory; return its output, and what is wrong with it."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    before = Path.cwd()
    found: list[str] = []
    os.chdir(directory)
    try:
        with (
            patch.object(sys, "argv", ["raybo", *arguments]),
            patch.object(sys, "path", list(sys.path)),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            code = _code_of(cli.main, found)
    finally:
        os.chdir(before)
    out.flush(), err.flush()
    said = Said(code, *(stream.buffer.getvalue().decode("utf-8", "replace") for stream in (out, err)))
    return said, found + list(_wrong_with(said))


def _code_of(main: Callable[[], None], found: list[str]) -> int:
    try:
        main()
    except SystemExit as leaving:
        code = leaving.code
        return code if isinstance(code, int) else 0 if code is None else 1
    except BaseException:  # whatever leaves the command is what is looked for
        found.append(f"a traceback: {last_lines(traceback.format_exc())}")
        return 1
    return 0


def _wrong_with(said: Said) -> Iterator[str]:
    if said.code not in EXITS:
        yield f"exit status {said.code}"
    if "Traceback (most recent" in said.err:
        yield f"a traceback on stderr: {last_lines(said.err)}"
    if said.code and not said.err.strip():
        yield "it failed without a word"
    if said.code and said.err.strip():
        last = said.err.rstrip("\n").splitlines()[-1]
        if not last.startswith("Error: "):
            yield f"its last line is no error: {last[:200]!r}"
        if len(last) > LONGEST_LINE:
            yield f"its error has {len(last)} characters"
    for name, text in (("stdout", said.out), ("stderr", said.err)):
        if hostile := next((c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0), None):
            yield f"the character {hostile!r} reaches {name}"


@contextlib.contextmanager
def a_ray(cpus: int) -> Iterator[None]:
    """The Ray that a study of its own starts; the one that this process is connected to, where there is one.

    Ray gives its own start 30 seconds, which are few on a busy machine: it is tried three times.
    """
    import ray

    from raybo.engine.ray.connection import ray_for_study

    with contextlib.ExitStack() as started:
        for left in (2, 1, 0) if not ray.is_initialized() else ():
            try:
                started.enter_context(ray_for_study(None, cpus))
                break
            except RayError:
                if not left:
                    raise
        yield


def last_lines(text: str) -> str:
    """The end of a traceback, in a line."""
    return " | ".join(text.strip().splitlines()[-3:])[-400:]


def fingerprint(directory: Path) -> dict[str, str]:
    """Names and contents of the files below a directory."""
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
            found[str(path.relative_to(directory))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
