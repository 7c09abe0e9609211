"""median: trials whose best so far is worse than what half of the finished ones had come to by that step.

Golovin, Solnik, Moitra, Kochanski, Karro, Sculley (2017), "Google Vizier: A Service for Black-Box Optimization", KDD,
section 3.2.1: a trial is stopped at step s "if the trial's best objective value by step s is strictly worse than the
median value of the running averages of all completed trials' objectives reported up to step s".
Ours: no trial is pruned within its grace, or before enough trials have finished.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from raybo.events import State
from raybo.history import History
from raybo.methods.options import Options, option
from raybo.schedulers.folded import folded
from raybo.schedulers.verdict import GO, Verdict, in_words


@dataclass(frozen=True, kw_only=True)
class Median(Options):
    """Prunes a trial whose best report so far is worse than the median of the finished trials' running averages.

    Golovin et al. (2017), "Google Vizier: A Service for Black-Box Optimization", section 3.2.1.
    """

    grace: int = option(1, "steps that every trial is given", at_least=1)
    startup: int = option(5, "trials that must have finished before any is pruned", at_least=1)

    def decides(self, history: History, trial: int, step: int) -> bool:
        """Beyond the grace, once enough trials have finished; not at the last step."""
        return (
            step > self.grace
            and (history.steps is None or step < history.steps)
            and history.count(State.FINISHED) >= self.startup
        )

    def decide(self, history: History, trial: int, step: int) -> Verdict:
        """To go on, or to prune it."""
        if not self.decides(history, trial, step):
            return GO
        averages = folded(history, "averages", Averages)
        finished = (number for number, record in enumerate(history.records) if record.state is State.FINISHED)
        others = [average for number in finished if (average := averages.until(number, step)) is not None]
        if not others:
            return GO
        best, cutoff = averages.best[trial], float(np.median(others))
        value, median = in_words(history, best), in_words(history, cutoff)
        why = f"best by step {step}: {value}, median of the {len(others)} finished {median}"
        numbers = {"best": history.value_of(best), "cutoff": history.value_of(cutoff), "others": len(others)}
        return Verdict("prune" if best < cutoff else "go", why, numbers)

    def next_promoted(self, history: History) -> int | None:
        """None: it pauses nothing."""
        return None


@dataclass
class Averages:
    """Running averages of every trial, and its best report."""

    steps: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    sums: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    best: dict[int, float] = field(default_factory=dict)

    def take(self, trial: int, step: int, y: float) -> None:
        """The report that follows."""
        sums = self.sums[trial]
        sums.append(y + (sums[-1] if sums else 0.0))
        self.steps[trial].append(step)
        self.best[trial] = max(y, self.best.get(trial, y))

    def until(self, trial: int, step: int) -> float | None:
        """The mean of what a trial had reported by a step; None where it had reported nothing."""
        count = bisect_right(self.steps[trial], step)
        return self.sums[trial][count - 1] / count if count else None
