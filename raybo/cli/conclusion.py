"""The lines by which a study ends on the console: the recommended configuration, and how to continue."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from raybo.common.messages import counted

if TYPE_CHECKING:
    from rich.console import Console

    from raybo.record.budget import Budget
    from raybo.study.study import Study

WHOLE = 10.0  # seconds, from which on tenths are left out
SLIGHTLY = 1.1  # times the budget, up to which twice the budget is enough to go on


def require_result(study: Study, path: Path) -> None:
    """Raise TrialError if a study that has ended has no result."""
    from raybo.common.errors import TrialError
    from raybo.record.states import FAILURES, State

    if study.count(State.FINISHED) or study.furthest is not None:
        return
    if not study.trials:
        raise TrialError(f"no trial was started; see raybo show {path}")
    last = next((t for t in reversed(study.trials) if t.state in FAILURES), None)
    if last is None:
        pruned = [trial for trial in study.trials if trial.state is State.PRUNED]
        why = f"all {len(pruned)} were pruned; the last one: {pruned[-1].reason}" if pruned else study.ended
        raise TrialError(f"no trial has finished{f': {why}' if why else ''}; see raybo show {path}")
    count = len(study.trials)
    none = f"none of the {count} trials has finished; the last one" if count > 1 else "the only trial has not finished"
    raise TrialError(f"{none}: {last.reason}; see raybo show {path}, and --retry-failed")


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
    is_left = budget is not None and spent < budget.amount
    further = _further(None if is_left and study.planned else budget, spent, ran)
    more = f"; continue with {further}" if ended >= (study.planned or 0) else ""
    known = f" and {counted(ended - ran, 'known result')}" if ended > ran else ""
    summary = f"{counted(ran, 'trial')}{known}{shown}, saved in {path}{more}"
    console.print(summary, style="dim", highlight=False, soft_wrap=True)


def _used(spent: float, budget: Budget) -> str:
    """Return how much of a budget is used: "1,500,000 of 2,000,000 tokens used"."""
    from raybo.record.budget import duration, number_in_words

    whole = duration(round(spent, 1 if spent < WHOLE else 0))
    return f"{whole if budget.is_time else number_in_words(spent)} of {budget} used"


def _further(budget: Budget | None, spent: float, ran: int) -> str:
    """Return the option that continues a study, given what it has used of its budget and how many trials it ran."""
    from raybo.record.budget import duration

    if budget is None:
        return f"--trials {2 * max(1, ran)}"
    twice = 2 * budget.amount if spent <= SLIGHTLY * budget.amount else float(f"{2 * spent:.4g}")
    if budget.is_time:
        return f"--budget {duration(twice)}"
    unit = f"--cost {budget.cost}" if budget.cost is not None else f"--price {budget.price:g}"
    return f"--budget {int(twice) if twice.is_integer() else f'{twice:g}'} {unit}"
