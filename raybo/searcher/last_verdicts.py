"""The verdicts on reports, kept until the user carries them out."""

from __future__ import annotations

from raybo.common.errors import TrialError
from raybo.record.events import Paused, Pruned, Reported
from raybo.record.ledger import Ledger
from raybo.schedulers import GO, Verdict
from raybo.schedulers.rule import CONSTRAINT, JOB, Rule, broken_by, event_of


class LastVerdicts:
    """The last verdict on each trial, by the rule or by constraints, as the event that carries it out.

    Args:
        ledger: the trials.
        rule: the scheduler with its name; None for none.
    """

    def __init__(self, ledger: Ledger, rule: Rule | None) -> None:
        self._ledger, self._rule = ledger, rule
        # by trial: the verdict, the last event that it had seen, and whose it is
        self._last: dict[int, tuple[Verdict, int, str]] = {}

    def judge(self, event: Reported) -> Verdict:
        """Return the verdict on a trial's last report."""
        ledger, number = self._ledger, event.trial
        verdict, rule = broken_by(event, ledger.goals), CONSTRAINT
        if self._rule is not None and not verdict.prune and not event.repeated:
            verdict, rule = self._rule.judge(ledger.history, number), self._rule.name
        self._last[number] = verdict, ledger.last_event, rule
        return verdict

    def forget(self, number: int) -> None:
        """Drop the verdict on a trial's last report, as something else has followed it."""
        self._last.pop(number, None)

    def pruning(self, number: int, why: str) -> Paused | Pruned:
        """Return the event that ends a trial: by its last verdict, or for a reason of the user's."""
        verdict, seen, rule = self._last.get(number, (GO, 0, JOB))
        if why or not verdict.prune:
            by_user = Verdict("prune", why or "pruned by the user")
            return self._event(by_user, "user", number, self._ledger.last_event)
        return self._event(verdict, rule, number, seen)

    def pausing(self, number: int) -> Paused | Pruned:
        """Return the event that pauses a trial; TrialError if its last verdict is another."""
        verdict, seen, rule = self._last.get(number, (GO, 0, JOB))
        if not verdict.pause:
            raise TrialError(f"trial {number}: no scheduler has paused it; continue it, or prune it")
        return self._event(verdict, rule, number, seen)

    def _event(self, verdict: Verdict, rule: str, number: int, seen: int) -> Paused | Pruned:
        return event_of(verdict, rule, number, self._ledger.history.records[number].step, seen)
