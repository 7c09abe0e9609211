"""median: trials whose best so far is worse than what half of the others had come to by that step.

Golovin, Solnik, Moitra, Kochanski, Karro, Sculley (2017), "Google Vizier: A Service for Black-Box Optimization", KDD,
section 3.2.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.events import State
from raybo.history import History, Record
from raybo.methods.options import Options, option
from raybo.schedulers import GO, Verdict


@dataclass(frozen=True, kw_only=True)
class Median(Options):
    """Prunes a trial whose best report so far is worse than the median of the others' running averages at that step.

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
        others = [
            average
            for number, record in enumerate(history.records)
            if number != trial and (average := average_until(record, step)) is not None
        ]
        if not others:
            return GO
        best = max(y for _, y in history.records[trial].reports)
        cutoff = float(np.median(others))
        told = {"best": history.value_of(best), "cutoff": history.value_of(cutoff)}
        if best >= cutoff:
            return Verdict("go", numbers={**told, "others": len(others)})
        why = f"its best by step {step} is {told['best']:.6g}, the median of {len(others)} others {told['cutoff']:.6g}"
        return Verdict("prune", why, {**told, "others": len(others)})

    def next_promoted(self, history: History) -> int | None:
        """None: it pauses nothing."""
        return None


def average_until(record: Record, step: int) -> float | None:
    """The mean of what a trial had reported by a step; None where it has not come so far."""
    if record.step < step:
        return None
    return float(np.mean([y for at, y in record.reports if at <= step]))
