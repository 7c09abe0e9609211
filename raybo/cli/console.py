"""The console that commands print on, and how they end if it cannot be written."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from raybo.common.terminal import visible

if TYPE_CHECKING:
    from rich.console import Console

    from raybo.engine.progress import Display
    from raybo.engine.status import Status


def make_console() -> Console:
    """Return the console: the terminal or, for pipes, lines of any length. Control sequences are made visible."""
    from raybo.engine.console import SafeConsole
    from raybo.reporting.table_layout import UNBOUNDED

    console = SafeConsole(highlight=False)
    return console if console.is_terminal else SafeConsole(highlight=False, width=UNBOUNDED)


def make_display(console: Console) -> Display:
    """Return the display of a study's progress, which raises as `writing` does."""
    from raybo.engine.progress import Display

    class _Display(Display):
        def announce(self, text: str) -> None:
            with writing():
                super().announce(text)

        def __call__(self, status: Status) -> None:
            with writing():
                super().__call__(status)

    return _Display(console)


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Print within the block.

    Raises:
        BrokenPipeError: nobody reads it any more.
        Unwritable: it cannot be written for another reason.
    """
    from raybo.engine.outlet import Unwritable

    try:
        yield
    except SystemExit as end:  # by which rich ends a command whose output nobody reads
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from end
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        raise Unwritable(error) from error


@contextlib.contextmanager
def saying_how_to_go_on(how: str) -> Iterator[None]:
    """Say how to go on if the block is left early: by Ctrl-C, or as what it prints cannot be written.

    Raises:
        BrokenPipeError: nobody reads it any more; the command ends with 1.
        RayboError: it cannot be written for another reason.
    """
    from raybo.common.errors import RayboError
    from raybo.engine.outlet import UNREAD, Unwritable

    try:
        yield
    except KeyboardInterrupt:
        say(f"Stopped. {how}", err=True)
        raise
    except BrokenPipeError:
        drop_output()
        say(f"Stopped, as {UNREAD}. {how}", err=True)
        raise
    except Unwritable as error:
        drop_output()
        raise RayboError(f"{error}. {how}") from error


def reason_if_unwritable(error: OSError) -> str:
    """Return why standard output cannot be written, if that is what an error is about, and drop it; else nothing."""
    from raybo.engine.outlet import Unwritable, write_error

    found = None if sys.stdout is None else write_error(sys.stdout, is_tried=True)
    if found is None or found.errno != error.errno:
        return ""
    drop_output()
    return str(Unwritable(error))


def drop_output() -> None:
    """Drop what is still to be written on standard output, which would fail once more when the command ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError), open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), sys.stdout.fileno())


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text as it is, with control sequences made visible."""
    click.echo(visible(text), err=err, nl=nl)


def say_json(value: Any) -> None:
    """Print a value as JSON; what JSON cannot hold, such as infinities, as its repr."""
    import json

    from raybo.integrations.study_json import plain

    click.echo(json.dumps(plain(value), indent=1, allow_nan=False))  # escaped: no terminal obeys it
