"""Defines the contract of schedulers: when one can decide, its verdict, and the paused trial that continues."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from raybo.common.options import Options, option
from raybo.record.history import History
from raybo.schedulers.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Scheduler(Options, ABC):
    """A rule that ends or pauses trials early: derive a frozen dataclass from it, whose fields are its options.

    `decides` and `decide` are needed. All three functions are pure: they keep nothing between calls and change nothing,
    so a continued study decides as it would have without the interruption.

    Attributes:
        is_slow: True if a verdict takes longer than a few milliseconds; it is then made beside the study's loop.
    Example:
        >>> import dataclasses
        >>> from raybo.schedulers import GO, Scheduler, Verdict, option
        >>> @dataclasses.dataclass(frozen=True, kw_only=True)
        ... class Threshold(Scheduler):
        ...     at: int = option(1, "the step at which trials are judged", at_least=1)
        ...     least: float = option(0.5, "the value below which a trial is ended")
        ...     def decides(self, history, trial, step):
        ...         return step == self.at < history.steps
        ...     def decide(self, history, trial, step):
        ...         y = history.records[trial].reports[-1][1]
        ...         return Verdict("prune", f"below {self.least:g}") if history.value_of(y) < self.least else GO
        >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, steps=3, seed=0)
        >>> verdict = searcher.report(searcher.ask(), 0.6)
        >>> Threshold(least=0.7).decide(searcher.history, trial=0, step=1).why
        'below 0.7'
    """

    metric: str | None = option(None, "which of several metrics is judged; none: the first")
    is_slow: ClassVar[bool] = False

    @abstractmethod
    def decides(self, history: History, trial: int, step: int) -> bool:
        """Return True if a verdict other than to continue can be given of the trial at that step, as things stand.

        The step may be one that it has yet to report. A trial waits for its verdict if this is True, so it must be
        cheap: it is called for many steps at a time. At the last step of a run there is nothing to decide.
        """

    @abstractmethod
    def decide(self, history: History, trial: int, step: int) -> Verdict:
        """Return the verdict on a trial that has just reported this step, the last of its record.

        `history.records[trial].reports` holds (step, value) of each report, maximised, of the metric that is judged.
        """

    def next_promoted(self, history: History) -> int | None:
        """Return the paused trial that a free worker resumes; None if a new one is to be proposed."""
        return None
