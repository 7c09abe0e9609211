"""Defines the plan that the driver passes to a study's actor at the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raybo.engine.run_options import RunOptions
from raybo.record.description import Description
from raybo.record.event_fields import Code


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A study to run, and what the driver has found out about the Ray to run it on.

    Attributes:
        description: what is studied.
        path: the journal.
        options: how to run it, as the user said.
        trials: how many trials are to end with a result or a failure, in all; those added from elsewhere count too.
            None for as many as the budget allows.
        workers: how many run at a time.
        elastic: True if as many run as the cluster has room for at the time, as nodes come and go.
        grows: True if some more trials wait in Ray's queue, so that an autoscaling cluster grows.
        takes_all_room: True if Ray has room for no more, so that one more trial waits in its queue instead of running.
        driver: process that the study belongs to.
        begun: when the driver began, by this machine's monotonic clock, in seconds.
        after: number of the last event that the journal held when the actor was first started on this Ray.
        known: number of the last event that the journal held when the command began.
        is_kept: True if the journal stays when the study has ended.
        artifacts: where the trials' directories are, a path or a URI; None for beside the journal.
        directories: where modules of the user's own method and scheduler are imported from.
        code: the fingerprint of what the trials run; None if it cannot be told.
    """

    description: Description
    path: Path
    options: RunOptions
    trials: int | None
    workers: int
    elastic: bool = False
    grows: bool = False
    takes_all_room: bool = True
    driver: int
    begun: float = 0.0
    after: int = 0
    known: int = 0
    is_kept: bool = True
    artifacts: str | None = None
    directories: Sequence[str] = ()
    code: Code | None = None
