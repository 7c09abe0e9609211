"""What passes between a driver and its study actor: the plan at the start, the status ever after."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raybo.journal import Description


@dataclass(frozen=True)
class Plan:
    """What a study actor is told.

    Attributes:
        description: what is studied.
        path: the journal.
        trials: how many trials are to end with a result or a failure, in all.
        workers: how many run at a time.
        retries: how often a trial whose worker was lost starts again.
        trial_seconds: time limit of one trial; None for none.
        max_seconds: time after which the study stops; None for none.
        driver: process that the study belongs to.
    """

    description: Description
    path: Path
    trials: int
    workers: int
    retries: int
    trial_seconds: float | None
    max_seconds: float | None
    driver: int


@dataclass(frozen=True)
class Status:
    """A study at one moment, as far as it is committed.

    Attributes:
        planned, finished, failed, running: numbers of trials (`failed` includes the lost ones).
        best: number and value of the best finished trial; None while there is none.
        suggest_seconds: median time of a suggestion; None before the first.
        elapsed: seconds since the study was started or continued.
        left: seconds that it will still take, by the trials so far; None while nothing can be said.
        notes: what happened to single trials, from the note asked for on.
        reason: why the study stopped before its end; empty otherwise.
    """

    planned: int
    finished: int
    failed: int
    running: int
    best: tuple[int, float] | None
    suggest_seconds: float | None
    elapsed: float
    left: float | None
    notes: list[str]
    reason: str = ""

    def __str__(self) -> str:
        best = "none yet" if self.best is None else f"{self.best[1]:.6g} (trial {self.best[0]})"
        suggestion = "" if self.suggest_seconds is None else f", suggestion {1_000 * self.suggest_seconds:.0f} ms"
        left = "" if self.left is None else f", {self.left:.0f} s left"
        return (
            f"{self.finished + self.failed}/{self.planned} trials, best {best}, {self.running} running, "
            f"{self.failed} failed{suggestion}{left}"
        )
