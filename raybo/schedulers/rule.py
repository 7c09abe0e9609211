"""Asks a study's scheduler for verdicts, and makes the journal's events of them.

Trials that run a configuration once more, to confirm it, are never judged: a mean over those that were lucky enough to
go on would confirm nothing. Nor are others judged by them (`report_totals`).
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from raybo.common.errors import MethodError, RayboError, TrialError
from raybo.common.messages import in_words, shown
from raybo.record.events import Paused, Pruned, Reported
from raybo.record.goals import Goals
from raybo.record.history import History
from raybo.record.origin import confirms
from raybo.record.results import extras
from raybo.record.states import State
from raybo.schedulers import GO, Scheduler, Verdict

JOB = "job"  # the rule's name in the journal if a trial ended itself
CONSTRAINT = "constraint"  # if a report broke one that must hold at every step; "job" until 0.2
FORESEEN = 64  # a trial learns for so many steps at a time at which it must wait for a verdict


@dataclass(frozen=True)
class Rule:
    """A scheduler with the name that it is registered under.

    Attributes:
        name: as journals tell it.
        scheduler: the scheduler, with its options.
    """

    name: str
    scheduler: Scheduler

    @property
    def metric(self) -> str | None:
        """The metric that it looks at; None for the first."""
        return self.scheduler.metric

    @property
    def is_slow(self) -> bool:
        """True if a verdict takes so long that it is made beside the event loop."""
        return self.scheduler.is_slow

    def can_judge(self, history: History, trial: int) -> bool:
        """Return True if a verdict can be given on the trial's last report.

        Raises:
            MethodError: the scheduler raised.
        """
        record = history.records[trial]
        with self._asked("decides"):
            return not confirms(record.tags) and self.scheduler.decides(history, trial, record.step)

    def judge(self, history: History, trial: int) -> Verdict:
        """Return the verdict on the trial's last report: to continue, if none can be given."""
        return self.verdict(history, trial) if self.can_judge(history, trial) else GO

    def verdict(self, history: History, trial: int) -> Verdict:
        """Return the verdict on the trial's last report, as a journal keeps it; `can_judge` must be true.

        Raises:
            MethodError: the scheduler raised, or its answer is not a verdict.
        """
        with self._asked("decide"):
            verdict = self.scheduler.decide(history, trial, history.records[trial].step)
        if verdict is GO:
            return GO
        _require_verdict(verdict, self.name)
        about = f"{history.judged_metric}: " if verdict.why and history.judged_metric is not None else ""
        return replace(verdict, why=about + verdict.why, numbers=extras(verdict.numbers, metric=""))

    def waits_at(self, history: History, trial: int, after: int = 0) -> int | None:
        """Return the next step at which the trial is to wait for its verdict, as things stand; None if none is near.

        Args:
            after: a step up to which there is none, so that only those beyond it are asked about.

        Raises:
            MethodError: the scheduler raised.
        """
        if confirms(history.records[trial].tags):
            return None
        first = max(history.records[trial].step, after) + 1
        steps = range(first, foreseen(history, trial) + 1)
        with self._asked("decides"):
            return next((at for at in steps if self.scheduler.decides(history, trial, at)), None)

    def promoted(self, history: History) -> int | None:
        """Return the paused trial that a free worker resumes; None if there is none.

        Raises:
            MethodError: the scheduler raised, or what it names is not a paused trial.
        """
        with self._asked("next_promoted"):
            number = self.scheduler.next_promoted(history)
        try:
            return None if number is None else history.require(number, State.PAUSED)
        except TrialError as error:
            raise MethodError(f"{self.name}: next_promoted must return a paused trial's number: {error}") from None

    @contextlib.contextmanager
    def _asked(self, what: str) -> Iterator[None]:
        """Raise what the scheduler raises as a MethodError that names it, and the line."""
        try:
            yield
        except RayboError:  # it refuses something, in words of its own
            raise
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            at = f"{Path(frame.filename).name}:{frame.lineno}"
            raise MethodError(f"{self.name}: {what} raised {in_words(error)} ({at})") from error


def _require_verdict(verdict: object, whose: str) -> None:
    """MethodError if a scheduler decided something that is not a verdict, or that no journal keeps."""
    if not isinstance(verdict, Verdict):
        raise MethodError(f"{whose}: decide must return a Verdict, got {shown(verdict)}")
    if verdict.action not in ("go", "prune", "pause"):
        raise MethodError(f"{whose}: a verdict's action is 'go', 'prune' or 'pause', got {shown(verdict.action)}")
    if not isinstance(verdict.why, str) or not isinstance(verdict.numbers, Mapping):
        raise MethodError(f"{whose}: a verdict's why is a text and its numbers are a dict, got {shown(verdict)}")


def foreseen(history: History, trial: int) -> int:
    """Return the last step that is asked about ahead of time."""
    last = history.records[trial].step + FORESEEN
    return last if history.steps is None else min(last, history.steps)


def broken_by(event: Reported, goals: Goals) -> Verdict:
    """Return the verdict to end a trial whose report violates a constraint on every step; otherwise to continue."""
    broken = event.broken(goals)
    return Verdict("prune", broken) if broken else GO


def event_of(verdict: Verdict, rule: str, trial: int, step: int, seen: int) -> Paused | Pruned:
    """Return the event of a verdict that ends or pauses a trial.

    Args:
        verdict: the verdict.
        rule: the name of its rule.
        step: the one that it is about.
        seen: number of the last event that it was decided on.
    """
    kind = Paused if verdict.pause else Pruned
    return kind(trial, reason=verdict.why, rule=rule, numbers=dict(verdict.numbers), seen=seen, step=step or None)
