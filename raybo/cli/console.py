"""The console that commands print on, and the summary by which a study ends on it."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raybo.common.messages import counted
from raybo.common.terminal import visible

if TYPE_CHECKING:
    from rich.console import Console

    from raybo.engine.progress import Display
    from raybo.engine.status import Status
    from raybo.record.budget import Budget
    from raybo.study.study import Study

WHOLE = 10.0  # seconds, from which on tenths are left out
SLIGHTLY = 1.1  # times the budget, up to which twice the budget is enough to go on


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


def drop_output() -> None:
    """Drop what is still to be written on standard output, which would fail once more when the command ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError), open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), sys.stdout.fileno())


@contextlib.contextmanager
def job_output(*, quiet: bool, as_json: bool) -> Iterator[None]:
    """Show nothing of what a job prints in this process within the block or, for JSON, all of it on standard error.

    This holds for whatever writes to the file descriptors too: libraries in C and child processes.
    """
    with contextlib.ExitStack() as held:
        null = held.enter_context(open(os.devnull, "w", encoding="utf-8"))
        if quiet:
            held.enter_context(_own_warnings())
            for descriptor in (1, 2):
                held.enter_context(_redirected(descriptor, null.fileno()))
            held.enter_context(contextlib.redirect_stdout(null))
            held.enter_context(contextlib.redirect_stderr(null))
        elif as_json:
            held.enter_context(_redirected(1, null.fileno() if sys.__stderr__ is None else 2))
            held.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield


@contextlib.contextmanager
def _redirected(descriptor: int, to: int) -> Iterator[None]:
    """Have a standard stream's file descriptor lead to where another one does within the block."""
    if (sys.__stdout__, sys.__stderr__)[descriptor - 1] is None:  # it was closed, and may be any other file by now
        yield
        return
    _flush()
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # of a process without them
            before = os.dup(descriptor)
            held.callback(os.close, before)
            held.callback(os.dup2, before, descriptor)
            held.callback(_flush)
            os.dup2(to, descriptor)
        yield


@contextlib.contextmanager
def _own_warnings() -> Iterator[None]:
    """Show raybo's own warnings within the block where standard error leads now."""
    if sys.__stderr__ is None:
        yield
        return
    stream = open(os.dup(2), "w", encoding="utf-8", errors="backslashreplace")
    handler, logger = logging.StreamHandler(stream), logging.getLogger("raybo")
    with stream:
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)


def _flush() -> None:
    """Write what Python and C have buffered."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):  # a system whose C library is not found like this
        ctypes.CDLL(None).fflush(None)


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text as it is, with control sequences made visible."""
    click.echo(visible(text), err=err, nl=nl)


def say_json(value: Any) -> None:
    """Print a value as JSON; what JSON cannot hold, such as infinities, as its repr."""
    import json

    from raybo.integrations.study_json import plain

    click.echo(json.dumps(plain(value), indent=1, allow_nan=False))  # escaped: no terminal obeys it


def require_result(study: Study, path: Path) -> None:
    """Raise TrialError if a study that has ended has no result."""
    from raybo.common.errors import TrialError
    from raybo.record.states import FAILURES, State

    if study.count(State.FINISHED) or study.furthest is not None:
        return
    if not study.trials:
        raise TrialError(f"no trial was started; see raybo show {path}")
    last = next((t for t in reversed(study.trials) if t.state in FAILURES), None)
    why = f"; the last one: {last.reason}" if last else ""
    raise TrialError(
        f"none of the {len(study.trials)} trials has finished{why}; see raybo show {path}, and --retry-failed"
    )


def conclude(console: Console, study: Study, path: Path) -> None:
    """Print the recommended configuration of a study that has ended, and how to continue it.

    Raises:
        TrialError: it has no result.
    """
    from raybo.journal.side_files import is_uri
    from raybo.record.budget import used as used_of
    from raybo.record.events import Kind
    from raybo.record.origin import Origin
    from raybo.record.states import COUNTED
    from raybo.reporting.tables import best_view, confirmations

    require_result(study, path)
    ended = study.count(*COUNTED)
    console.print(best_view(study))
    used = study.recommended if study.incumbent is not None else study.furthest
    for place in [] if used is None else study.files(used):
        near = place if is_uri(place) else os.path.relpath(place)
        if near.startswith("../../"):  # a job of a cluster runs in a directory of its own, far from the journal
            near = os.path.abspath(place)
        console.print(f"files: {near}", style="dim", highlight=False, soft_wrap=True)
    for line in confirmations(study):
        console.print(line)
    if study.ended and study.events[-1].kind is Kind.ENDED:
        console.print(f"ended: {study.ended}", style="dim", highlight=False, soft_wrap=True)
    ran = ended - sum(trial.origin in (Origin.ADDED, Origin.CONFIRMED) for trial in study.trials)
    ended -= sum(trial.origin is Origin.CONFIRMED for trial in study.trials)
    budget = study.history.budget
    spent = 0.0 if budget is None else used_of(study.events, budget)
    shown = "" if budget is None else f", {_used(spent, budget)}"
    more = f"; {_further(budget, spent, ran)} would continue it" if ended >= (study.planned or 0) else ""
    known = f" and {counted(ended - ran, 'known result')}" if ended > ran else ""
    summary = f"{counted(ran, 'trial')}{known}{shown}, kept in {path}{more}"
    console.print(summary, style="dim", highlight=False, soft_wrap=True)


def _used(spent: float, budget: Budget) -> str:
    """Return how much of a budget is used, all of it: "2,100 of 50 tokens used"."""
    from raybo.record.budget import duration

    limit = str(budget) if budget.cost is None else f"{_amount(budget.amount)} {budget.cost}"
    whole = duration(round(spent, 1 if spent < WHOLE else 0))
    return f"{whole if budget.is_time else _amount(spent)} of {limit} used"


def _amount(number: float) -> str:
    return f"{number:,.0f}" if number >= 1_000 else f"{number:.4g}"


def _further(budget: Budget | None, spent: float, ran: int) -> str:
    """Return the option that continues a study, given what it has used of its budget and how many trials it ran."""
    from raybo.record.budget import duration

    if budget is None:
        return f"--trials {2 * max(1, ran)}"
    twice = 2 * budget.amount if spent <= SLIGHTLY * budget.amount else float(f"{2 * spent:.4g}")
    if budget.cost is not None:
        return f"--budget {twice:g} --cost {budget.cost}"
    if budget.price is None:
        return f"--budget {duration(twice)}"
    return f"--budget {twice:g} --price {budget.price:g}"
