"""What passes between a driver and its study actor: the plan at the start, then the status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raybo.engine.trial.checkpoints import Keep
from raybo.journal import Description
from raybo.record.stopping import NO_LIMITS, Limits
from raybo.study.confirmation import Confirm


@dataclass(frozen=True)
class Plan:
    """What a study actor is told.

    Attributes:
        description: what is studied.
        path: the journal.
        trials: how many trials are to end with a result or a failure, in all.
        workers: how many run at a time.
        elastic: whether as many run as the cluster has room for at the time, nodes that come and go included.
        grows: whether some trials more wait in Ray's queue, by which a cluster that can grow does.
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
        artifacts: where the trials' directories are, a path or a URI; None for beside the journal.
        directories: where modules of the user's own method and scheduler are imported from.
        keep_checkpoints: of trials that have ended, "all", "last" or "none".
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
    artifacts: str | None = None
    keep_checkpoints: Keep = "last"
    grows: bool = False
    directories: Sequence[str] = ()


@dataclass(frozen=True)
class Status:
    """A study at one moment, as far as it is committed.

    Attributes:
        metric: what the objective's value is called.
        planned, finished, failed, pruned, paused, running: how many trials (`failed` includes the lost ones).
        best: number and value of the best finished trial; None while there is none.
        suggest_seconds: median time of a suggestion; None before the first.
        elapsed: seconds since the study was started or continued.
        left: seconds that it will still take, judging by the trials so far; None while nothing can be said.
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
        steps: how many steps a whole run has; None if this is not declared.
        saved: the share of the steps of all finished and pruned trials that pruning has saved; 0 if none was pruned.
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
    front: tuple[int, float] | None = None
    printed: Sequence[tuple[int, str]] = ()
    unprinted: int = 0
    lines: int = 0
    confirming: int = 0
    pruned: int = 0
    paused: int = 0
    reporting: Sequence[tuple[int, int, float]] = ()
    steps: int | None = None
    saved: float = 0.0

    @property
    def ended(self) -> int:
        """How many of the planned trials are done."""
        return self.finished + self.failed + self.pruned

    @property
    def apart(self) -> str:
        """What to say about trials that were pruned, are paused or run again, with a comma before it; empty if none."""
        pruned = f", {self.pruned} pruned ({100 * self.saved:.0f} % of the steps saved)" if self.pruned else ""
        confirming = f", {self.confirming} of them to confirm" if self.confirming else ""
        return pruned + (f", {self.paused} paused" if self.paused else "") + confirming

    @property
    def best_is(self) -> str:
        """What `best` is called: where a context is declared, the best is only estimated at the end."""
        return "best measured" if self.has_context else "best"

    @property
    def facts(self) -> tuple[object, ...]:
        """What is news when it changes: not the time, nor how many trials run."""
        return self.front or self.best, self.planned, self.finished, self.failed, self.pruned, self.reason

    @property
    def so_far(self) -> tuple[str, str]:
        """What has been reached, as a name and its value: the best, or with several metrics the front."""
        none = "none feasible yet" if self.finished else "none yet"
        if self.front is not None:
            return (
                ("hypervolume", f"{self.front[1]:.6g} ({self.front[0]} on the front)")
                if self.front[0]
                else ("front", none)
            )
        return self.best_is, none if self.best is None else f"{self.best[1]:.6g} (trial {self.best[0]})"

    def __str__(self) -> str:
        name, reached = self.so_far
        suggestion = "" if self.suggest_seconds is None else f", suggestion {1_000 * self.suggest_seconds:.0f} ms"
        left = "" if self.left is None else f", {self.left:.0f} s left"
        return (
            f"{self.ended}/{self.planned} trials, {name} {reached}, {self.running} running, "
            f"{self.failed} failed{self.apart}{suggestion}{left}{f'; it ends: {self.reason}' if self.reason else ''}"
        )
