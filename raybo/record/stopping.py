"""When a study has found enough, by what has happened in it: a target, patience, proposals that promise little.

    target             a trial has finished that is at least as good
    patience           so many trials have finished since the best one; with several metrics, since one joined the front
    stop_below_gain    three proposals in a row, after the initial design, were expected to gain less than this over the
                       best value, in the metric's units
    stop_when_not_worth
                       the last proposal was expected to gain less than this for the hours of a worker that it takes
                       or, with a price, for the money; after some results, as few show too little of a function to
                       expect anything. The dearer that proposal is, beside what the best is ahead of the median, the
                       fewer are waited for: there is hardly more than that to be found. Nor does it end while the
                       latter half of the results has improved on the best by several times what they cost: a model
                       that promises nothing more is then wrong. After Xie et al. (2025), "Cost-aware Stopping for
                       Bayesian Optimization", arXiv:2507.12453, which stops if no point's expected improvement per
                       cost is more

A pure function of the study's events, as it stands after them: a command that continues a study goes on where its own
limits are wider than the last one's, or where a trial that was still running then has improved on the best. Results
from elsewhere may reach the target; they do not count towards patience.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from raybo.common.arguments import finite_number, whole_number
from raybo.record.budget import HOUR
from raybo.record.events import Asked, Event, Planned, Reported, Told
from raybo.record.goals import Goals
from raybo.record.origin import Origin

WORKER_HOUR = "worker-hour"
IN_A_ROW = 3  # proposals that promise too little
FIRST_RESULTS = 5, 40  # at least and at most, before it is judged what is worth its cost; between them:
FIRST, POWER = 6.0, 0.4  # FIRST / share^POWER; the share is the next trial's cost by the lead of the best result
PAYING = 4.0  # a study goes on while the latter half of its results improves by more than this many times its cost


@dataclass(frozen=True)
class Limits:
    """The limits that end a study before all its trials have been run; None for no limit.

    Raises:
        MethodError: a limit is not one; names it.
    """

    target: float | None = None
    patience: int | None = None
    stop_below_gain: float | None = None
    stop_when_not_worth: float | None = None
    price: float | None = None  # of an hour of a worker, in which it is judged what is worth its cost
    cost: str | None = None  # name of the returned number that trials cost, in place of their seconds

    def __post_init__(self) -> None:
        if self.target is not None:
            object.__setattr__(self, "target", finite_number(self.target, "target"))
        if self.patience is not None:
            object.__setattr__(self, "patience", whole_number(self.patience, "patience"))
        if self.stop_below_gain is not None:
            object.__setattr__(self, "stop_below_gain", finite_number(self.stop_below_gain, "stop_below_gain", above=0))
        if self.stop_when_not_worth is not None:
            least = finite_number(self.stop_when_not_worth, "stop_when_not_worth", above=0)
            object.__setattr__(self, "stop_when_not_worth", least)

    @property
    def unit(self) -> str:
        """What is paid for, in words."""
        if self.cost is not None:
            return f"unit of {self.cost}"
        return WORKER_HOUR if self.price is None else "unit of money"

    @property
    def units(self) -> float:
        """How many of these a trial costs for each of what its cost is counted in, which may be seconds."""
        return 1.0 if self.cost is not None else (self.price or 1.0) / HOUR


class Stopping:
    """Reads the events of a study, in their order, and says when it has found enough.

    Args:
        limits: what ends it.
        goals: what is wanted; a trial that breaks a constraint is not better than another.
    Attributes:
        worth: what the last proposal was expected to gain per hour, or per unit of money; None while nobody knows.
    """

    def __init__(self, limits: Limits, goals: Goals) -> None:
        self.limits = limits
        self.goals = goals
        self.goal = goals.first
        self.metric = goals.names[0]
        self._origins: dict[int, Origin | None] = {}
        self._broke: set[int] = set()  # trials with a report that breaks what must hold at every step
        self._reached = ""  # the target, and by which trial
        self._front = np.empty((0, goals.k))  # with one metric the best value
        self._since = 0
        self._small: list[float] = []
        self._results = list[float]()  # maximised; of trials that break a constraint, minus infinity
        self._costs = list[float]()  # of the results, in the metric's units
        self._next_cost = 0.0  # of the last proposal, in the metric's units, at what is to be gained for it
        self._processes = 1  # of the last trial that ended, if an hour of each has its price
        self._counts_processes = False  # whether what a proposal is expected to take does
        self.worth: float | None = None

    @property
    def reason(self) -> str:
        """Return the reason to end the study, in words; empty if there is none."""
        if self._reached:
            return self._reached
        if self.limits.patience is not None and self._since >= self.limits.patience:
            if self.goals.k > 1:
                return f"none of the last {self._since} trials that finished has joined the front"
            return f"no improvement in the last {self._since} trials that finished"
        if len(self._small) >= IN_A_ROW:
            return (
                f"the last {IN_A_ROW} proposals were expected to improve {self.metric} by "
                f"{max(self._small[-IN_A_ROW:]):.2g} at most"
            )
        if self._is_not_worth(self.worth):
            unit = "hour of a worker" if self.limits.unit == WORKER_HOUR else self.limits.unit  # as in older journals
            return (
                f"the next {unit} is not worth it: the last proposal was expected to improve "
                f"{self.metric} by {self.worth:.2g} for it"
            )
        return ""

    def _is_not_worth(self, worth: float | None) -> bool:
        least = self.limits.stop_when_not_worth
        if least is None or worth is None or worth >= least:
            return False
        return len(self._feasible) >= self._first_results and not self._has_paid

    @property
    def _has_paid(self) -> bool:
        """True if the latter half of the results has improved on the best by far more than they cost."""
        middle = max(1, len(self._results) - len(self._results) // 2)
        improvement = max(self._results) - max(self._results[:middle])  # infinite if nothing was feasible before
        return improvement > PAYING * sum(self._costs[middle:])

    @property
    def _feasible(self) -> list[float]:
        return [result for result in self._results if result > -math.inf]

    @property
    def _first_results(self) -> float:
        """Return how many results are needed before a proposal may be judged not to be worth its cost."""
        least, most = FIRST_RESULTS
        if len(feasible := self._feasible) < least:
            return most
        ahead = max(feasible) - float(np.median(feasible))
        if not (ahead > 0.0 and self._next_cost > 0.0):  # there is nothing better than the usual yet
            return most
        return float(np.clip(FIRST * (self._next_cost / ahead) ** -POWER, least, most))

    def hear(self, event: Event) -> None:
        """Take in an event."""
        if isinstance(event, Asked):
            self._origins[event.trial] = event.origin
            self._hear_gain(event)
        elif isinstance(event, Told):
            values = event.values(self.goals)
            is_feasible = event.trial not in self._broke and not self.goals.violations(self.goals.margins(values))
            if self.limits.stop_when_not_worth is not None and self._origins.get(event.trial) is not Origin.CONFIRMED:
                self._results.append(self.goal.maximised(values[self.metric]) if is_feasible else -math.inf)
                self._costs.append(self._paid(event) * self.limits.units * self.limits.stop_when_not_worth)
            self._hear_values(event.trial, values, is_feasible)
        elif isinstance(event, Planned):
            self._counts_processes = event.price is not None
        elif isinstance(event, Reported) and not event.repeated and event.broken(self.goals):
            self._broke.add(event.trial)

    def _paid(self, event: Told) -> float:
        """Return what a trial cost: its seconds, with a price those of all its processes, or a number of its own."""
        if self.limits.cost is not None:
            return event.cost(self.limits.cost) or 0.0
        if self.limits.price is not None:
            self._processes = event.processes or 1
        return (event.seconds or 0.0) * self._processes

    def _hear_values(self, trial: int, values: Mapping[str, float], is_feasible: bool) -> None:
        origin = self._origins.get(trial)
        if origin is Origin.CONFIRMED:  # the search was over
            return
        target, value = self.limits.target, values[self.metric]
        if is_feasible and target is not None and not self.goal.is_better(target, value) and not self._reached:
            self._reached = f"trial {trial} has reached the target: {self.metric} {value:.6g}"
        y = self.goals.maximised(values)
        if is_feasible and not (self._front >= y).all(axis=1).any():
            self._front = np.vstack([self._front[~(self._front <= y).all(axis=1)], y])
            self._since = 0
        elif origin is not Origin.ADDED:
            self._since += 1

    def _hear_gain(self, event: Asked) -> None:
        least, gain = self.limits.stop_below_gain, event.gain
        if least is not None and gain is not None:
            self._small = [*self._small, gain] if gain < least else []
        worthwhile = self.limits.stop_when_not_worth
        if worthwhile is not None and gain is not None and event.takes is not None:
            processes = 1 if self._counts_processes else self._processes  # else the expectation is of them all
            units = event.takes * processes * self.limits.units
            self.worth, self._next_cost = gain / units, units * worthwhile
