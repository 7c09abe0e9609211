"""The status of a running study, which its actor sends and displays show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from raybo.common.messages import counted, time_in_words
from raybo.record.budget import Budget, number_in_words
from raybo.space import Space

SHOWN = 4  # configurations of running trials


@dataclass(frozen=True)
class Status:
    """A study at one moment, as far as it is committed: what `raybo.tune(..., watch=...)` calls `watch` with.

    `str(status)` is one line of it.

    Attributes:
        metric: what the objective's value is called.
        planned, finished, failed, pruned, paused, running: how many trials (`failed` includes the lost ones); none are
            planned if the budget alone says when the study ends.
        best: number and value of the best finished trial; None while there is none.
        suggest_seconds: median time of a suggestion; None before the first.
        elapsed: seconds since the study was started or continued.
        left: seconds that it will still take, judging by the trials so far; None until two more of them have ended than
            there are workers.
        notes: what happened to single trials, after the event asked for.
        last_event: number of the last event that is committed.
        reason: why the study stopped before its end; empty otherwise.
        confirming: how many of the planned trials run a configuration again, to confirm it.
        has_context: whether a context is declared: then `best` may just have been lucky.
        front: size and hypervolume of the front; None with one metric.
        printed: lines that trials have printed since those already seen: the trial's number and the line.
        unprinted: how many lines before these were left out, as too many came.
        lines: how many lines the trials have printed in all.
        reporting: the number, last step and value of each trial that is running and reports, furthest first.
        best_config: the best trial's configuration, as text; empty if there is none.
        configs: number and configuration, as text, of the trials that run, the newest first, at most four of them.
        steps: how many steps a whole run has; None if this is not declared.
        saved: the share of the steps of all finished and pruned trials that pruning has saved; 0 if none was pruned.
        budget: how much of the budget is used, in its unit, and the budget; None if there is none.
        worth: by how much the last proposal was expected to improve the best value for what it takes, and for which
            unit of that; None without `stop_when_not_worth`, and before there is a model.
        still: how many more trials the rest of the budget is expected to allow; None as long as `left` would be.
    Example:
        >>> @raybo.objective(space={"x": raybo.Float(0, 1)}, mode="min")
        ... def job(config):
        ...     return abs(config["x"] - 0.3)
        >>> seen = []
        >>> study = raybo.tune(job, trials=3, method="random", in_process=True, watch=seen.append)
        >>> seen[-1].finished, seen[-1].planned, seen[-1].best[0] == study.best.number
        (3, 3, True)
    """

    metric: str
    planned: int | None
    finished: int
    failed: int
    running: int
    best: tuple[int, float] | None
    suggest_seconds: float | None
    elapsed: float
    left: float | None
    notes: list[str]
    last_event: int
    reason: str = ""
    has_context: bool = False
    front: tuple[int, float] | None = None
    printed: Sequence[tuple[int, str]] = ()
    unprinted: int = 0
    lines: int = 0
    confirming: int = 0
    pruned: int = 0
    paused: int = 0
    reporting: Sequence[tuple[int, int, float]] = ()
    best_config: str = ""
    configs: Sequence[tuple[int, str]] = ()
    steps: int | None = None
    saved: float = 0.0
    budget: tuple[float, Budget] | None = None
    still: int | None = None
    worth: tuple[float, str] | None = None

    @property
    def ended(self) -> int:
        """The number of planned trials that are done."""
        return self.finished + self.failed + self.pruned

    @property
    def count(self) -> str:
        """The number of trials that are done, and of how many if that is known."""
        return f"{self.ended}" if self.planned is None else f"{self.ended}/{self.planned}"

    @property
    def spent(self) -> str:
        """The used part of the budget, and what is expected of the rest; empty without a budget."""
        if self.budget is None:
            return ""
        spent, budget = self.budget
        shown = f"{clock(spent)} of {budget}" if budget.is_time else f"{number_in_words(spent)} of {budget}"
        return shown + (f", about {self.still} more trials" if self.still and self.planned is None else "")

    @property
    def outlook(self) -> str:
        """Return the improvement expected next, in words; empty if nobody asks whether that is worth it."""
        return "" if self.worth is None else f"the next {self.worth[1]} is expected to gain {self.worth[0]:.2g}"

    @property
    def apart(self) -> str:
        """A clause, after a comma, about trials that were pruned, are paused or run again; empty if there are none."""
        saved = f" ({100 * self.saved:.0f}% of the steps saved)" if self.saved else ""
        pruned = f", {self.pruned} pruned{saved}" if self.pruned else ""
        confirming = f", {self.confirming} of them to confirm" if self.confirming else ""
        return pruned + (f", {self.paused} paused" if self.paused else "") + confirming

    @property
    def best_is(self) -> str:
        """The name of `best`: if a context is declared, the best is only estimated at the end."""
        return "best measured" if self.has_context else "best"

    @property
    def facts(self) -> tuple[object, ...]:
        """The facts that are news when they change; the time and the number of running trials are not."""
        return self.front or self.best, self.planned, self.finished, self.failed, self.pruned, self.reason

    @property
    def so_far(self) -> tuple[str, str]:
        """The best value so far, or with several metrics the front, as a name and a text."""
        none = "none feasible yet" if self.finished else "none yet"
        if self.front is not None:
            return "front", counted(self.front[0], "trial") if self.front[0] else none
        return self.best_is, none if self.best is None else f"{self.best[1]:.6g} (trial {self.best[0]})"

    def __str__(self) -> str:
        name, reached = self.so_far
        suggestion = "" if self.suggest_seconds is None else f", suggestion {1_000 * self.suggest_seconds:.0f} ms"
        left = "" if self.left is None else f", {time_in_words(round(self.left))} left"
        spent = f", {self.spent}" if self.spent else ""
        outlook = f", {self.outlook}" if self.outlook else ""
        ends = f"; stopping: {self.reason}" if self.reason else ""
        return (
            f"{self.count} trials{spent}, {name} {reached}, {self.running} running, "
            f"{self.failed} failed{self.apart}{suggestion}{left}{outlook}{ends}"
        )


def clock(seconds: float) -> str:
    """Return seconds as a clock shows them, `1:05:09`, from two days on with days, `2 days 1:05:09`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24) if hours >= 48 else (0, hours)
    shown = f"{hours}:{minutes:02d}:{rest:02d}" if hours or days else f"{minutes}:{rest:02d}"
    return f"{days} days {shown}" if days else shown


def config_text(space: Space, config: dict[str, Any]) -> str:
    """Return a configuration on one line, `lr=0.01, depth=3`."""
    values = space.named_values(config)
    return ", ".join(f"{name}={f'{value:.6g}' if isinstance(value, float) else value}" for name, value in values)
