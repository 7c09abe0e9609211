"""The console that commands print on, and the summary by which a study ends on it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raybo.common.messages import counted
from raybo.common.terminal import visible

if TYPE_CHECKING:
    from rich.console import Console

    from raybo.study.study import Study


def make_console() -> Console:
    """Return the console: the terminal or, for pipes, lines of any length. Control sequences are made visible."""
    from raybo.engine.console import SafeConsole
    from raybo.reporting.table_layout import UNBOUNDED

    console = SafeConsole(highlight=False)
    return console if console.is_terminal else SafeConsole(highlight=False, width=UNBOUNDED)


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
    more = f"; {_further(study, ran)} would continue it" if ended >= (study.planned or 0) else ""
    known = f" and {counted(ended - ran, 'known result')}" if ended > ran else ""
    console.print(f"{counted(ran, 'trial')}{known}, kept in {path}{more}", style="dim", highlight=False, soft_wrap=True)


def _further(study: Study, ran: int) -> str:
    """Return an option that continues a study of so many trials."""
    from raybo.record.budget import duration

    budget = study.history.budget
    if budget is None:
        return f"--trials {2 * max(1, ran)}"
    if budget.cost is not None:
        return f"--budget {2 * budget.amount:g} --cost {budget.cost}"
    if budget.price is None:
        return f"--budget {duration(2 * budget.amount)}"
    return f"--budget {2 * budget.amount:g} --price {budget.price:g}"
