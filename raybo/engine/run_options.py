"""The options of a study's run: a field for each such argument of `raybo.tune`, which the command line also offers.

The command line imports this for its help, so that all that is slow to import is imported inside functions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from raybo.common.errors import JournalError, MethodError, RayError
from raybo.common.messages import shown

if TYPE_CHECKING:
    from raybo.record.budget import Budget
    from raybo.record.stopping import Limits
    from raybo.study.confirmation import Confirm

TRIALS = 50  # of a study, unless something else is said

Keep: TypeAlias = Literal["all", "last", "none"]  # which checkpoints of a trial that has ended are kept


def _number(value: Any, name: str) -> float:
    from raybo.common.arguments import finite_number

    return finite_number(value, name)


def _positive(value: Any, name: str) -> float:
    from raybo.common.arguments import finite_number

    return finite_number(value, name, above=0)


def _whole(value: Any, name: str, at_least: int = 1) -> int:
    from raybo.common.arguments import whole_number

    return whole_number(value, name, at_least)


def _flag(value: Any, name: str) -> bool:
    from raybo.common.arguments import truth

    return truth(value, name)


def _workers(workers: Any, name: str) -> int | Literal["max"]:
    return "max" if isinstance(workers, str) and workers == "max" else _whole(workers, name)


def _name(value: Any, name: str) -> str:
    from raybo.common.arguments import a_name

    return a_name(value, name)


def _place(value: Any, name: str) -> str:
    if not isinstance(value, (str, PurePath)):
        raise JournalError(f"{name} must be a path or a URI, got {shown(value)}")
    return str(value)


def _address(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise RayError(f"{name} must be 'auto' or HOST:PORT, got {shown(value)}")
    return value


def _keep(value: Any, name: str) -> Keep:
    from raybo.common.arguments import one_of

    return one_of(value, name, get_args(Keep))


def _confirm(value: Any, name: str) -> Confirm:
    from raybo.study.confirmation import Confirm

    return Confirm.of(value, name)


def argument(default: Any, check: Callable[[Any, str], Any], help: str = "", metavar: str | None = None) -> Any:
    """Declare a field of `RunOptions`.

    Args:
        default: its value unless it is given; if this is None, None is allowed.
        check: returns the checked value of an argument of this name.
        help: its text in `raybo tune --help`; a field without one gets no option of its own there.
        metavar: the name of its value there.
    """
    return dataclasses.field(default=default, metadata={"check": check, "help": help, "metavar": metavar})


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a study's run, which a continuing command may change; `tune_arguments` documents each field.

    Raises:
        MethodError, RayError: a value is wrong; names the argument.
    """

    trials: int | None = argument(
        None,
        _whole,
        "Trials to run in total, including those already in the journal.  [default: 50, or what a budget allows]",
        "N",
    )
    budget: float | str | None = argument(
        None,
        lambda value, name: value,  # with the price or the cost, see below
        "Time that the study may take in total, including what the journal's trials took: 90s, 45m, 2h, 1d, or "
        "seconds. With --price, an amount of money; with --cost, the total cost.",
        "TIME|AMOUNT",
    )
    price: float | None = argument(None, _positive, "Price per process-hour, in the currency of --budget.", "PRICE")
    cost: str | None = argument(
        None,
        _name,
        "The number that a trial returns as its cost, in place of its seconds; --budget limits its sum.",
        "NAME",
    )
    let_finish: bool = argument(
        False, _flag, "When the budget is spent, start no new trials but let running ones finish."
    )
    workers: int | Literal["max"] | None = argument(
        None,
        _workers,
        "Trials to run at the same time; max keeps some queued, so that an autoscaling cluster grows.  "
        "[default: as many as fit]",
        "K|max",
    )
    max_minutes: float | None = argument(
        None, _positive, "Deprecated: use --budget. In minutes; stops after 50 trials at the latest.", "MINUTES"
    )
    trial_seconds: float | None = argument(
        None, _positive, "Stop any trial that runs longer than this, and count it as failed.", "SECONDS"
    )
    processes: int | None = argument(None, _whole, "Processes per trial.  [default: the objective's]", "N")
    retries: int = argument(2, partial(_whole, at_least=0), "How often to restart a trial whose worker was lost.", "N")
    artifacts: str | None = argument(
        None,
        _place,
        "Where to keep the trials' directories and checkpoints.  [default: next to the journal]",
        "DIRECTORY|URI",
    )
    keep_checkpoints: Keep = argument("last", _keep, "Which checkpoints of finished trials to keep.")
    fresh_workers: bool = argument(
        False, _flag, "Run every trial in a new process, for jobs that leave state behind in their process."
    )
    retry_failed: bool = argument(False, _flag, "Run failed trials again, under their old numbers.")
    retry_oom: bool = argument(False, _flag, "Run trials again that ran out of memory, under their old numbers.")
    same_code: bool = argument(False, _flag, "Refuse to continue a study if the job's code or packages have changed.")
    keep_going: bool = argument(
        False, _flag, "Carry on even if the first trials all fail in the same way, or 50 in a row fail."
    )
    target: float | None = argument(None, _number, "Stop once a trial reaches this value.", "V")
    patience: int | None = argument(
        None,
        _whole,
        "Stop once N trials in a row have not improved on the best one, or on the front of several metrics.",
        "N",
    )
    stop_below_gain: float | None = argument(
        None,
        _positive,
        "Stop once three proposals in a row promise an improvement smaller than this, in the metric's units.",
        "G",
    )
    stop_when_not_worth: float | None = argument(
        None,
        _positive,
        "Stop once the next proposal promises less improvement than this per worker-hour or, with --price, per unit of "
        "money.",
        "G",
    )
    confirm: Confirm | None = argument(
        None,
        _confirm,
        "Finally, run the K most promising configurations R more times each with new seeds, and recommend the one "
        "with the best mean.",
        "KxR",
    )
    address: str | None = argument(None, _address)
    detach: bool = argument(False, _flag)
    in_process: bool = argument(False, _flag)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None or field.default is not None:
                object.__setattr__(self, field.name, field.metadata["check"](value, field.name))
        if self.budget is not None:
            from raybo.record.budget import amount_of

            object.__setattr__(self, "budget", amount_of(self.budget, self.price is None and self.cost is None))
        if self.budget is not None and self.max_minutes is not None:
            raise MethodError("budget and max_minutes set the same limit; leave out max_minutes")
        if self.allowance is None and self.let_finish:
            raise MethodError("let_finish has no effect without a budget; give budget too")
        if self.allowance is None and self.stop_when_not_worth is None and self.price is not None:
            raise MethodError("price needs a budget; give budget too")
        if self.max_minutes is not None and self.price is not None:
            raise MethodError("price does not apply to max_minutes; use budget instead")
        if self.cost is not None and (wrong := "price" if self.price else "max_minutes" if self.max_minutes else ""):
            raise MethodError(f"cost and {wrong} cannot be combined; leave out one of them")
        if self.trials is None and self.budget is not None and self.confirm is not None:
            raise MethodError("confirm runs after the last planned trial, and a budget alone plans none; give trials")

    @property
    def allowance(self) -> Budget | None:
        """The budget; None for none."""
        from raybo.record.budget import Budget

        if self.budget is not None:
            return Budget(float(self.budget), self.price, self.cost)
        return None if self.max_minutes is None else Budget(60.0 * self.max_minutes)

    @property
    def wanted_trials(self) -> int | None:
        """The number of trials to run; None for as many as the budget allows."""
        return TRIALS if self.trials is None and self.budget is None else self.trials

    @property
    def limits(self) -> Limits:
        """The limits that end the study before all its trials have been run."""
        from raybo.record.stopping import Limits

        return Limits(self.target, self.patience, self.stop_below_gain, self.stop_when_not_worth, self.price, self.cost)
