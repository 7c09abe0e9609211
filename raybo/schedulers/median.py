"""median: ends a trial whose best report so far is worse than the median of the finished trials' running averages.

Golovin, Solnik, Moitra, Kochanski, Karro, Sculley (2017), "Google Vizier: A Service for Black-Box Optimization", KDD,
section 3.2.1: a trial is stopped at step s "if the trial's best objective value by step s is strictly worse than the
median value of the running averages of all completed trials' objectives reported up to step s".
Ours: no trial is pruned within its grace period, or before enough trials have finished that have reported: results that
are known from elsewhere are no curves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from raybo.common.options import option
from raybo.record.history import History
from raybo.record.states import State
from raybo.schedulers.report_totals import folded
from raybo.schedulers.scheduler import Scheduler
from raybo.schedulers.verdict import GO, Verdict, in_words


@dataclass(frozen=True, kw_only=True)
class Median(Scheduler):
    """Prunes a trial whose best report so far is worse than the median of the finished trials' running averages.

    Golovin et al. (2017), "Google Vizier: A Service for Black-Box Optimization", section 3.2.1.
    """

    grace: int = option(1, "steps that every trial is given", at_least=1)
    startup: int = option(5, "trials that must have reported and finished before any is pruned", at_least=1)

    def decides(self, history: History, trial: int, step: int) -> bool:
        """Return True beyond the grace period, once enough trials have finished; not at the last step."""
        return (
            step > self.grace
            and (history.steps is None or step < history.steps)
            and history.count(State.FINISHED) >= self.startup
            and sum(1 for _ in islice(_finished(history), self.startup)) == self.startup
        )

    def decide(self, history: History, trial: int, step: int) -> Verdict:
        """Return a verdict to continue or to prune."""
        if not self.decides(history, trial, step):
            return GO
        finished, averages = list(_finished(history)), _averages(history)
        others = averages.until(finished, step)
        if not others:
            return GO
        best, cutoff = averages.best[trial], float(np.median(others))
        value, median = in_words(history, best), in_words(history, cutoff)
        why = f"best by step {step}: {value}, median of the {len(others)} finished {median}"
        numbers = {"best": history.value_of(best), "cutoff": history.value_of(cutoff), "others": len(others)}
        return Verdict("prune" if best < cutoff else "go", why, numbers)


def _averages(history: History) -> Averages:
    return folded(history, "averages", Averages)


def _finished(history: History) -> Iterator[int]:
    """Return the trials that have reported and finished."""
    records = history.records
    return (number for number in _averages(history).averages if records[number].state is State.FINISHED)


@dataclass
class Averages:
    """Running averages of every trial after each of its reports, and its best report."""

    averages: dict[int, list[float]] = field(default_factory=dict)
    steps: dict[int, list[int]] = field(default_factory=dict)
    skipping: set[int] = field(default_factory=set)  # trials whose n-th report is not of step n
    best: dict[int, float] = field(default_factory=dict)

    def take(self, trial: int, step: int, y: float) -> None:
        """Add the next report."""
        averages, steps = self.averages.setdefault(trial, []), self.steps.setdefault(trial, [])
        n = len(averages)
        averages.append((averages[-1] * n + y) / (n + 1) if n else y)
        steps.append(step)
        if step != n + 1:
            self.skipping.add(trial)
        self.best[trial] = max(y, self.best.get(trial, y))

    def until(self, trials: Sequence[int], step: int) -> list[float]:
        """Return the running averages at a step, of the trials that had reported by then."""
        known, skipping = self.averages, self.skipping
        found = [a[step - 1] if step <= len(a) else a[-1] for n in trials if n not in skipping and (a := known.get(n))]
        counts = ((n, bisect_right(self.steps[n], step)) for n in trials if n in skipping) if skipping else ()
        return found + [known[n][count - 1] for n, count in counts if count]
