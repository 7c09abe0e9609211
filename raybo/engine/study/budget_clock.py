"""Measures how much of a study's budget is used."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from raybo.record.budget import Budget
from raybo.record.events import AttemptEvent, Event


class BudgetClock:
    """Counts a budget as it is used: time passes by itself, money with the processes that run, cost when a trial ends.

    Args:
        budget: what may be used.
        used: how much of it was used when the count begins.
        begun: when the count begins, by the monotonic clock, in seconds.
        now: reads that clock.
    """

    def __init__(
        self, budget: Budget, used: float, begun: float | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.budget = budget
        self._now = now
        self._used = used
        self._counted = now() if begun is None else begun  # until when it is counted
        self._processes = 0
        self._costs, self._ends = 0.0, 0  # that it has heard of

    @property
    def rate(self) -> float:
        """The amount that is used per second at the moment."""
        return 1.0 if self.budget.is_time else self.budget.per_second * self._processes

    @property
    def spent(self) -> float:
        """The amount that is used by now, in the budget's unit."""
        return self._used + self.rate * (self._now() - self._counted)

    @property
    def seconds_left(self) -> float:
        """Seconds until the budget is used if what runs goes on; 0 if it is, infinite if nothing runs that costs."""
        left = self.budget.amount - self.spent
        if left <= 0.0:
            return 0.0
        return left / self.rate if self.rate else float("inf")

    @property
    def mean_cost(self) -> float:
        """Return the mean cost of the trials that have ended under this clock; 0 before the first."""
        return self._costs / self._ends if self._ends else 0.0

    @property
    def is_over(self) -> bool:
        """True if the budget is used."""
        return self.spent >= self.budget.amount

    @property
    def reason(self) -> str:
        """The reason that its end gives for the end of the study."""
        return f"the budget of {self.budget} is used"

    def hear(self, event: Event, reported: Mapping[str, Any] | None) -> float:
        """Count what a trial has cost that ends; returns it, of a budget of time or money 0.

        Args:
            event: of any kind.
            reported: what else its trial said with its last report.
        """
        if self.budget.cost is None or not isinstance(event, AttemptEvent):
            return 0.0
        cost = self.budget.used_by(event, reported)
        self._used += cost
        self._costs += cost
        self._ends += event.is_end
        return cost

    def set_processes(self, processes: int) -> None:
        """Note how many processes of trials run from now on."""
        if processes != self._processes:
            now = self._now()
            self._used += self.rate * (now - self._counted)
            self._counted, self._processes = now, processes
