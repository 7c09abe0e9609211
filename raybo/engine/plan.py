"""What passes between a driver and its study actor: the plan at the start, the status ever after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raybo.confirming import Confirm
from raybo.journal import Description
from raybo.stopping import NO_LIMITS, Limits


@dataclass(frozen=True)
class Plan:
    """What a study actor is told.

    Attributes:
        description: what is studied.
        path: the journal.
        trials: how many trials are to end with a result or a failure, in all.
        workers: how many run at a time.
        elastic: whether as many run as the cluster has room for at the time, nodes that come and go included.
        takes_all_room: whether Ray has room for no more, so that one trial more waits in Ray's queue and does not run.
        retries: how often a trial whose worker was lost starts again.
        trial_seconds: time limit of one trial; None for none.
        max_seconds: time after which the study stops; None for none.
        driver: process that the study belongs to.
        detached: whether the study goes on when that process ends.
        begun: when the driver began, by this machine's monotonic clock, in seconds.
        after: number of the last event that the journal held then.
        fresh_workers: whether every trial runs in a new process.
        is_kept: whether the journal stays when the study has ended.
        known: number of the last event that the journal held when the command began; `after` may be a later one.
        retry_failed: whether the trials that had failed by then are run again.
        keep_going: whether the study goes on where its first trials all fail alike.
        limits: what ends the study before all its trials have been run.
        confirm: how many configurations are run again at the end, and how often each; None for none.
    """

    description: Description
    path: Path
    trials: int
    workers: int
    elastic: bool
    takes_all_room: bool
    retries: int
    trial_seconds: float | None
    max_seconds: float | None
    driver: int
    detached: bool
    begun: float
    after: int
    fresh_workers: bool = False
    is_kept: bool = True
    known: int = 0
    retry_failed: bool = False
    keep_going: bool = False
    limits: Limits = NO_LIMITS
    confirm: Confirm | None = None


@dataclass(frozen=True)
class Status:
    """A study at one moment, as far as it is committed.

    Attributes:
        metric: what the objective's value is called.
        planned, finished, failed, running: numbers of trials (`failed` includes the lost ones).
        best: number and value of the best finished trial; None while there is none.
        suggest_seconds: median time of a suggestion; None before the first.
        elapsed: seconds since the study was started or continued.
        left: seconds that it will still take, by the trials so far; None while nothing can be said.
        notes: what happened to single trials, after the event asked for.
        last_event: number of the last event that is committed.
        reason: why the study stopped before its end; empty otherwise.
        confirming: how many of the planned trials run a configuration again, to confirm it.
        has_context: whether a context is declared: then `best` may just have been lucky.
        printed: lines that trials have printed, after those asked for: the trial's number and the line.
        unprinted: how many lines before those are left out, as too many came.
        lines: how many lines the trials have printed in all.
    """

    metric: str
    planned: int
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
    printed: Sequence[tuple[int, str]] = ()
    unprinted: int = 0
    lines: int = 0
    confirming: int = 0

    @property
    def best_is(self) -> str:
        """What `best` is called: where a context is declared, the best is only estimated at the end."""
        return "best measured" if self.has_context else "best"

    @property
    def facts(self) -> tuple[object, ...]:
        """What is news when it changes: not the time, nor how many trials run."""
        return self.best, self.planned, self.finished, self.failed

    def __str__(self) -> str:
        best = "none yet" if self.best is None else f"{self.best[1]:.6g} (trial {self.best[0]})"
        suggestion = "" if self.suggest_seconds is None else f", suggestion {1_000 * self.suggest_seconds:.0f} ms"
        left = "" if self.left is None else f", {self.left:.0f} s left"
        return (
            f"{self.finished + self.failed}/{self.planned} trials, {self.best_is} {best}, {self.running} running, "
            f"{self.failed} failed{suggestion}{left}"
        )
