"""A scheduler at work in a study: which verdicts it is asked for, and how a journal records them.

Trials that run a configuration once more, to confirm it, are never judged: a mean over those that were lucky enough to
go on would confirm nothing. Nor are others judged by them (`folded`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from raybo.record.events import Paused, Pruned, Reported
from raybo.record.goals import Goals
from raybo.record.history import History
from raybo.record.origin import confirms
from raybo.schedulers import GO, Scheduler, Verdict

JOB = "job"  # the rule by which a trial was ended by itself, or by a constraint
FORESEEN = 64  # steps that a trial is told of at a time


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
        """Whether a verdict can be given on what the trial has reported last."""
        record = history.records[trial]
        return not confirms(record.tags) and self.scheduler.decides(history, trial, record.step)

    def judge(self, history: History, trial: int) -> Verdict:
        """Return the verdict on what the trial has reported last: to go on, if none can be given."""
        return self.verdict(history, trial) if self.can_judge(history, trial) else GO

    def verdict(self, history: History, trial: int) -> Verdict:
        """Return the verdict on what the trial has reported last. One can be given: `can_judge` has been asked."""
        verdict = self.scheduler.decide(history, trial, history.records[trial].step)
        if not verdict.why or history.judged_metric is None:
            return verdict
        return replace(verdict, why=f"{history.judged_metric}: {verdict.why}")

    def waits_at(self, history: History, trial: int, after: int = 0) -> int | None:
        """Return the next step at which the trial is to wait for its verdict, as things stand; None if none is near.

        Args:
            after: a step up to which there is none, so that only those beyond it are asked about.
        """
        if confirms(history.records[trial].tags):
            return None
        first = max(history.records[trial].step, after) + 1
        steps = range(first, foreseen(history, trial) + 1)
        return next((at for at in steps if self.scheduler.decides(history, trial, at)), None)

    def promoted(self, history: History) -> int | None:
        """The paused trial that a free worker goes on with; None where there is none."""
        return self.scheduler.next_promoted(history)


def foreseen(history: History, trial: int) -> int:
    """Return the last step that is asked about ahead of time."""
    last = history.records[trial].step + FORESEEN
    return last if history.steps is None else min(last, history.steps)


def broken_by(event: Reported, goals: Goals) -> Verdict:
    """To end a trial whose report breaks a constraint that must hold at every step, whatever a scheduler says of it."""
    broken = event.broken(goals)
    return Verdict("prune", broken) if broken else GO


def event_of(verdict: Verdict, rule: str, trial: int, step: int, seen: int) -> Paused | Pruned:
    """The event of a verdict that does not let a trial go on.

    Args:
        verdict: the verdict.
        rule: whose it is, by name.
        step: the one that it is about.
        seen: number of the last event that it was decided on.
    """
    kind = Paused if verdict.pause else Pruned
    return kind(trial, reason=verdict.why, rule=rule, numbers=dict(verdict.numbers), seen=seen, step=step or None)
