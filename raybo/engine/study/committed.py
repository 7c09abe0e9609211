"""A running study as far as it is committed.

What is committed is a number: that of an event, up to which the journal goes. The searcher's ledger holds these events
and a few more. Of each of those few it is kept what stood before it, from which the state at that number follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raybo.record.confirmed import again_count
from raybo.record.events import Event
from raybo.record.ledger import Ledger
from raybo.record.states import State
from raybo.record.trial import Trial


@dataclass(frozen=True)
class Before:
    """The committed state before an event.

    Attributes:
        trial: the trial it is about; None if it asks for that trial, or is about none.
        incumbent, front: as in the ledger.
    """

    trial: Trial | None
    incumbent: Trial | None
    front: Sequence[Trial]

    @classmethod
    def of(cls, ledger: Ledger, event: Event) -> Before:
        """The state now."""
        number = event.trial
        trial = None if number is None or number >= len(ledger.trials) else ledger.trials[number]
        return cls(trial, ledger.incumbent, ledger.front)


class Committed:
    """The searcher's ledger, without the events that are not committed yet.

    Args:
        ledger: takes in every event as it is added.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._ahead: list[tuple[Event, Before]] = []  # added to the ledger, and not committed

    def add(self, event: Event, before: Before) -> None:
        """Take in an event that the ledger holds and the journal does not."""
        self._ahead.append((event, before))

    def advance(self, number: int) -> list[tuple[Event, Before]]:
        """Advance to the journal's last event; return the events that this adds, in order."""
        count = sum(event.number <= number for event, _ in self._ahead)
        new, self._ahead = self._ahead[:count], self._ahead[count:]
        return new

    @property
    def last_event(self) -> int:
        """Number of the last event that is committed."""
        return self._ahead[0][0].number - 1 if self._ahead else self._ledger.last_event

    @property
    def trials(self) -> Sequence[Trial]:
        """Every trial, in the order of asking."""
        before = self._trials_before()
        if not before:
            return self._ledger.trials
        now = (before.get(trial.number, trial) for trial in self._ledger.trials)
        return [trial for trial in now if trial is not None]

    def count(self, *states: State) -> int:
        """Count the trials in any of the given states."""
        count = self._ledger.count(*states)
        for number, trial in self._trials_before().items():
            count += (trial is not None and trial.state in states) - (self._ledger.trials[number].state in states)
        return count

    @property
    def incumbent(self) -> Trial | None:
        """The best trial, as `Ledger.incumbent`."""
        return self._ahead[0][1].incumbent if self._ahead else self._ledger.incumbent

    @property
    def front(self) -> Sequence[Trial]:
        """The front, as `Ledger.front`."""
        return self._ahead[0][1].front if self._ahead else self._ledger.front

    def hypervolume(self) -> float:
        """Volume between the front and the worst values of feasible trials."""
        goals = self._ledger.goals
        feasible = [goals.maximised(trial.values) for trial in self.trials if trial.feasible]
        reference = goals.values_of(np.min(feasible, axis=0)) if feasible else {}
        return self._ledger.hypervolume(reference, self.front) if feasible else 0.0

    @property
    def run_again(self) -> int:
        """Count the trials that run a configuration again, to confirm it."""
        return again_count(self.trials, self._ledger.history)

    def newest_running(self, most: int) -> list[Trial]:
        """Return the trials that run, the newest first, at most so many."""
        found: list[Trial] = []
        left = min(most, self.count(State.PENDING))
        for trial in reversed(self.trials):
            if len(found) == left:
                break
            if trial.state is State.PENDING:
                found.append(trial)
        return found

    @property
    def reporting(self) -> list[tuple[int, int, float]]:
        """Trials that run and have reported, the furthest first: number, last step, its value."""
        if not self._ledger.history.reports_in_order:
            return []
        running = [trial for trial in self.trials if trial.state is State.PENDING and trial.step]
        return [(t.number, t.step, t.reports[-1][1]) for t in sorted(running, key=lambda t: (-t.step, t.number))]

    def _trials_before(self) -> dict[int, Trial | None]:
        """The trials that events which are not committed have changed, as they stood before; None if they did not."""
        return {event.trial: before.trial for event, before in reversed(self._ahead) if event.trial is not None}
