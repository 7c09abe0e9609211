"""A study's budget, of time, money or cost: how it is written, and how much of it earlier commands have used.

A budget of time is the time that commands have spent on the study. One of money is what its trials cost: the price is
that of an hour of one process of a trial, so that a trial of four processes costs four times as much an hour. One of
cost is the sum of a number that the job returns.
"""

from __future__ import annotations

import contextlib
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raybo.common.arguments import finite_number, is_number
from raybo.common.errors import MethodError
from raybo.common.messages import shown
from raybo.record.events import Asked, AttemptEvent, Ended, Event, Planned, Reported, cost_in
from raybo.record.origin import Origin

HOUR = 3_600.0  # seconds
UNITS = {"d": 24 * HOUR, "h": HOUR, "m": 60.0, "s": 1.0}  # in seconds
WRITTEN = re.compile("".join(rf"(?:([0-9]+(?:\.[0-9]*)?|\.[0-9]+){unit})?" for unit in UNITS))


@dataclass(frozen=True)
class Budget:
    """The amount that a study may use.

    Attributes:
        amount: seconds or, with a price, money; of cost, in its unit.
        price: of a process-hour, in the currency of the amount; None if the amount is not money.
        cost: name of the returned number whose sum is limited; None if the amount is a time, or money.
    Raises:
        MethodError: a number is not above 0; names it.
    """

    amount: float
    price: float | None = None
    cost: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "amount", float(finite_number(self.amount, "budget", above=0)))
        if self.price is not None:
            object.__setattr__(self, "price", float(finite_number(self.price, "price", above=0)))

    @property
    def per_second(self) -> float:
        """The amount that a second of one process of a trial uses; of a budget of time or cost, 0."""
        return 0.0 if self.price is None else self.price / HOUR

    @property
    def is_time(self) -> bool:
        """True if the amount is a time."""
        return self.price is None and self.cost is None

    def used_by(self, event: AttemptEvent, reported: Mapping[str, Any] | None = None) -> float:
        """Return the amount that a trial has used that ends: its seconds, what they come to, or its cost.

        Args:
            event: its end, or the end of one of its attempts.
            reported: what else it said with its last report. One that ends without a result cost what this says.
        """
        if self.cost is not None:
            said = event.cost(self.cost)
            return (said if said is not None or not event.is_end else cost_in(reported, self.cost)) or 0.0
        return (event.seconds or 0.0) * (1.0 if self.is_time else self.per_second * (event.processes or 1))

    def __str__(self) -> str:
        if self.cost is not None:
            return f"{number_in_words(self.amount)} {self.cost}"
        if self.price is None:
            return duration(self.amount)
        return f"{number_in_words(self.amount)} (at {self.price:g} an hour)"


def number_in_words(number: float) -> str:
    """Return an amount of money or of a cost as it is shown: "1,234,567", "2.5"."""
    return f"{number:,.0f}" if number >= 1_000 else f"{number:.4g}"


def amount_of(value: Any, is_time: bool, name: str = "budget") -> float:
    """Return the amount of a budget: of time as `seconds_of`, else a number.

    Raises:
        MethodError: the value is not such an amount, or not above 0.
    """
    if is_time:
        return seconds_of(value, name)
    number = value
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            number = float(value)
    if not is_number(number) or not 0.0 < number < math.inf:
        raise MethodError(f"{name} with a price or a cost must be a plain number such as 50 or 2e6, got {shown(value)}")
    return float(number)


def seconds_of(value: Any, name: str = "budget") -> float:
    """Return the seconds of a duration: a number of them, or a text such as "90s", "45m", "2h", "1h30m" or "1d".

    Raises:
        MethodError: it is not one, or not above 0.
    """
    seconds = _read(value) if isinstance(value, str) else value
    if not is_number(seconds) or seconds <= 0.0:
        raise MethodError(f"{name} must be seconds, or a time such as '90s', '45m', '2h' or '1d', got {shown(value)}")
    return float(seconds)


def _read(text: str) -> float | None:
    """Return the seconds of a text; None if it is not a duration."""
    text = text.replace(" ", "").lower()
    match = WRITTEN.fullmatch(text)
    if text and match is not None:
        return sum(float(part or 0) * size for part, size in zip(match.groups(), UNITS.values(), strict=True))
    try:
        return float(text)
    except ValueError:
        return None


def duration(seconds: float) -> str:
    """Return seconds as they are written: "1h30m"."""
    left, parts = round(seconds, 3), []
    for unit, size in UNITS.items():
        count = left if unit == "s" else left // size
        left -= count * size
        if count:
            parts.append(f"{count:g}{unit}")
    return "".join(parts) or "0s"


def budget_of(planned: Planned) -> Budget | None:
    """Return the budget that an event sets; None if it sets none."""
    return None if planned.budget is None else Budget(planned.budget, planned.price, planned.cost)


def as_kept(spent: float) -> float:
    """Return how much of a budget is used as events keep it, in nine digits."""
    return min(float(f"{spent:.9g}"), sys.float_info.max)


def used(events: Sequence[Event], budget: Budget) -> float:
    """Return how much of a budget the commands have used whose events these are, in its unit.

    What the last proposal or end said under a budget of this kind or, if that is more, the time in which trials
    ran that have ended, or its price; of cost, what the trials that ended said.
    """
    said, is_same = 0.0, False
    for event in events:
        if isinstance(event, Planned):
            earlier = budget_of(event)
            is_same = earlier is not None and (earlier.price, earlier.cost) == (budget.price, budget.cost)
        elif isinstance(event, (Asked, Ended)) and event.spent is not None and is_same:
            said = event.spent
    if budget.cost is not None:
        return used_by_trials(events, budget)
    attempts = [event for event in events if isinstance(event, AttemptEvent)]
    if not budget.is_time:
        return max(said, sum(budget.used_by(event) for event in attempts if _span(event) is not None))
    return max(said, _covered([span for event in attempts if (span := _span(event)) is not None]))


def require_beside_goals(cost: str | None, goals: Sequence[str]) -> None:
    """Raise MethodError if a cost has the name of what is tuned: such a number is no extra, and is never counted."""
    if cost in goals:
        raise MethodError(
            f"cost must be a number other than what is tuned, and {shown(cost)} is tuned; use constraints"
        )


def used_by_trials(events: Sequence[Event], budget: Budget) -> float:
    """Return how much of a budget the trials have used whose events these are, by what their ends say.

    A loop of the user's has no clock of ours: of a budget of time, what counts is the sum of the trials' seconds.
    """
    return sum(used_by_each(events, budget))


def used_by_each(events: Sequence[Event], budget: Budget) -> list[float]:
    """Return for each event how much of a budget its trial says that it used; 0 of results that were added."""
    amounts = list[float]()
    added = set[int]()
    reported = dict[int, Mapping[str, Any] | None]()
    for event in events:
        if isinstance(event, Asked) and event.origin is Origin.ADDED:
            added.add(event.trial)
        elif isinstance(event, Reported):
            reported[event.trial] = event.metrics
        if isinstance(event, AttemptEvent) and event.trial not in added:
            amounts.append(budget.used_by(event, reported.get(event.trial)))
        else:
            amounts.append(0.0)
    return amounts


def _span(event: AttemptEvent) -> tuple[float, float] | None:
    """Return when an attempt ran that has ended, in seconds since 1970; None if that is not known."""
    if not event.seconds or (end := event.timestamp) is None:
        return None
    return end - event.seconds, end


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """Return the length of the union of intervals."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total
