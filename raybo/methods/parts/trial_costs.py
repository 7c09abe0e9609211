"""Learns what trials cost from those that have ended, for the choice of the next.

In a study with a budget, if the model expects the seconds of the trials so far to differ by more than a factor of
three, the improvement is weighed against the time that it takes, less and less as the budget is used, and points that
cannot finish in the time that is left are avoided. A pure function of the history, in which a trial's seconds are, and
how much of the budget was used at each proposal.

The job may say what a trial costs; that number then takes the place of the seconds throughout. Where the budget is
money, a trial of four processes counts the seconds of all four.

Of a trial that a scheduler ended, a whole run's seconds are those of its steps times the steps of a whole run. A job
with cheap versions is expected to take in proportion to its fidelity at first; the fidelity is an axis of the model,
which learns how far that is from the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from raybo.common.messages import three_figures, time_in_words
from raybo.record.budget import HOUR
from raybo.record.events import Tags, cost_in
from raybo.record.history import History
from raybo.record.states import State
from raybo.record.trial import Record
from raybo.space import Array

if TYPE_CHECKING:  # models take their time to load, and a study without a budget needs none here
    from raybo.acquisition import Acquisition
    from raybo.surrogate.log_linear import LogLinear, Slice

DIFFER = 3.0  # factor between the dearest and the cheapest trial, below which all cost the same
LEAST = 3  # trials that say what they cost
SAID_FROM = 2  # more of them than the space has parameters, before what a trial is expected to take is told to anybody
LEAST_LEFT = 1e-6  # of the budget, as its logarithm is needed
LEAST_OF_CHEAP = 2  # likewise, of a job with cheap versions, which begins with one configuration at two fidelities
TAKES = "takes"  # the tag of the expected seconds of a proposal, and of the trials before it in the median
OF = "takes_of"  # the tag of what it takes, if not seconds
PROCESS_SECONDS = "process-seconds"
NEAR = 0.8, 1.25  # a ratio of seconds between these is none worth a word


@dataclass(frozen=True)
class TrialCosts:
    """The expected costs of trials.

    Attributes:
        model: of a whole run's seconds.
        seconds: (n,), what the model expects of each of the trials that it knows, if it were a whole run.
        by_fidelity: of a whole run's seconds, by configuration and fidelity, if they were in proportion to the latter;
            None if there are no cheap versions of the job.
    """

    model: LogLinear | Slice
    seconds: Array
    by_fidelity: LogLinear | None = None

    @classmethod
    def of(cls, history: History) -> TrialCosts | None:
        """Return the model of a history; None if too few trials say how long they took: three, or two at fidelities."""
        known = [
            (record, seconds)
            for record in history.records
            if (seconds := whole_run(record, history.steps, history.cost, is_money(history)))
        ]
        if len(known) < (LEAST if history.fidelity is None else LEAST_OF_CHEAP):
            return None
        from raybo.surrogate.log_linear import LogLinear, Slice

        X, took = np.array([record.x for record, _ in known]), np.array([seconds for _, seconds in known])
        pairs = zip(history.cube.levels, history.cube.categorical, strict=True)
        choices = [levels if categorical else None for levels, categorical in pairs]
        if (fidelity := history.fidelity) is None:
            model = LogLinear.of(X, took, choices)
            return cls(model, np.exp(model.moments(X)[0]))
        places = [fidelity.place(record.fidelity or fidelity.high) for record, _ in known]
        whole = LogLinear.of(np.column_stack([X, places]), took, [*choices, None])
        return cls(Slice(whole, 1.0), np.exp(Slice(whole, 1.0).moments(X)[0]), whole)

    @property
    def differ(self) -> bool:
        """True if some trials take so much longer than others that it matters which come first."""
        return bool(self.seconds.max() > DIFFER * self.seconds.min())

    def at(self, x: Array, place: float = 1.0, share: float = 1.0) -> float:  # (d,)
        """Return the expected seconds of a run.

        Args:
            x: its configuration.
            place: of its fidelity on its axis, and share: of the highest; 1 for a whole run.
        """
        model = self.model
        if self.by_fidelity is not None:
            from raybo.surrogate.log_linear import Slice

            model = Slice(self.by_fidelity, place, math.log(share))
        mean, variance = model.moments(x[None, :])
        return float(np.exp(mean[0] + 0.5 * variance[0]))


def is_money(history: History) -> bool:
    """Return True if the budget is money, so that each process of a trial counts."""
    return history.budget is not None and history.budget.price is not None


def whole_run(record: Record, steps: int | None, cost: str | None = None, of_all: bool = False) -> float | None:
    """Return the seconds of a whole run, of a trial that finished or was pruned; None if they are not known.

    Args:
        record: the trial's.
        steps: of a whole run; None if they are not declared.
        cost: the returned number that counts in place of the seconds; None for the seconds.
        of_all: whether the seconds of all its processes count.
    """
    took, timed = record.seconds, record.step - record.untimed
    if cost is not None:
        took, timed = None if record.outcome is None else record.outcome.cost(cost), record.step
        if took is None and record.state is State.PRUNED:
            took = cost_in(record.last_metrics, cost)
    elif of_all and took and record.outcome is not None:
        took *= record.outcome.processes or 1
    if not took or record.is_open or record.state not in (State.FINISHED, State.PRUNED):
        return None
    if record.state is State.FINISHED:  # perhaps by its own early stopping
        if timed == record.step:
            return took
        return took * record.step / timed if timed > 0 else None
    return took * steps / timed if steps is not None and timed > 0 else None


def costs_that_matter(history: History) -> TrialCosts | None:
    """Return what trials cost, if there is a budget and they differ in it; None otherwise."""
    if history.budget is None:
        return None
    costs = TrialCosts.of(history)
    return costs if costs is not None and costs.differ else None


def per_cost(acquisition: Acquisition, history: History) -> Acquisition:
    """Return the logarithm of an improvement per cost; as it is if cost plays no part."""
    costs = costs_that_matter(history)
    if costs is None:
        return acquisition
    from raybo.acquisition.cost import PerCost

    return PerCost(acquisition, costs.model, 1.0 - history.used_share, math.log(seconds_left(history)))


def seconds_left(history: History) -> float:
    """Return for how long a trial that begins now can run, or what it may cost; of money, if as many go on as now.

    It is above 0, also where all is spent.
    """
    assert history.budget is not None
    left = max(history.budget.amount - (history.spent or 0.0), LEAST_LEFT * history.budget.amount)
    if history.budget.price is None:  # time, or cost
        return left
    return left * HOUR / history.budget.price / (1 + history.count(State.PENDING))


def expected_seconds(costs: TrialCosts | None, history: History, x: Array, fidelity: int | None) -> float:  # (d,)
    """Return what a run at a fidelity is expected to take; if nothing is known, in whole runs."""
    if history.fidelity is None or fidelity is None:
        return 1.0 if costs is None else costs.at(x)
    share = fidelity / history.fidelity.high
    return share if costs is None else costs.at(x, history.fidelity.place(fidelity), share)


def cost_tags(history: History, x: Array, fidelity: int | None = None) -> Tags:
    """Return what a proposal is expected to cost, as a tag, if cost plays a part in it and enough trials tell.

    A model of fewer has more slopes to find than trials to find them from, and is often wrong by a factor of ten.
    """
    costs = costs_that_matter(history)
    if costs is None or len(costs.seconds) < history.d + SAID_FROM:
        return {}
    unit = {} if history.cost is None else {OF: history.cost}
    if is_money(history) and any(each.outcome is not None and each.outcome.processes for each in history.records):
        unit = {OF: PROCESS_SECONDS}
    return {
        **unit,
        TAKES: [
            float(f"{seconds:.4g}")
            for seconds in (expected_seconds(costs, history, x, fidelity), float(np.median(costs.seconds)))
        ],
    }


def cost_in_words(tags: Tags) -> str:
    """Return what a proposal is expected to cost, in words; empty if it does not say so."""
    if TAKES not in tags:
        return ""
    seconds, usual = tags[TAKES]
    ratio, words = usual / seconds, ("cheap", "dear") if OF in tags else ("quick", "long")
    if NEAR[0] <= ratio <= NEAR[1]:
        than = "as others do"
    else:
        times = three_figures(float(f"{max(ratio, 1.0 / ratio):.2g}"))
        than = f"{times} times as {words[ratio < 1.0]} as the median trial"
    takes = f"{three_figures(seconds)} {tags[OF]}" if OF in tags else time_in_words(seconds)
    return f"expected to take {takes}, {than}"
