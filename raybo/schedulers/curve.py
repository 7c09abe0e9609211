"""curve: a model of configuration and step predicts a trial's last value, and trials that can hardly win are ended.

Ours; the model is that of `raybo/methods/parts/learning_curves.py`, which cites its sources. At a thirteenth, a quarter
and a half of the steps, a trial ends
- the first time, if it is one of the first trials: a short look at several is worth more than the whole of one, as
  nothing is known yet;
- if the probability that it ends better than the best one, finished or expected, is below `odds`.
A configuration that got as far before, and was pruned, may continue: its second proposal took that into account.
`auto` proposes pruned configurations again once they look best, so with `auto` what is ended too early is not lost.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from raybo.common.options import option
from raybo.common.threads import limit_threads
from raybo.methods.parts.learning_curves import LEAST_STD, final_means, fit_curves, reported
from raybo.record.history import History
from raybo.record.origin import Origin, confirms, origin_of
from raybo.record.states import State
from raybo.schedulers.scheduler import Scheduler
from raybo.schedulers.verdict import GO, Verdict, in_words

LOOKS = (13, 4, 2)  # a trial is judged after 1/13, 1/4 and 1/2 of its steps


@dataclass(frozen=True, kw_only=True)
class Curve(Scheduler):
    """Ends a trial that is unlikely to beat the best, by a Gaussian process over configuration and step.

    raybo's own, after Swersky, Snoek, Adams (2014), "Freeze-Thaw Bayesian Optimization".
    """

    odds: float = option(
        0.05, "a trial is ended if its probability of beating the best is below this", at_least=0, below=1
    )
    grace: int | None = option(
        None, "the first step at which trials are judged; none: a thirteenth of all steps", at_least=1
    )
    first: int = option(
        10, "how many of the first trials end at the first judged step; at most a quarter of all", at_least=0
    )
    is_slow: ClassVar[bool] = True  # a verdict would block a study's loop for too long

    def decides(self, history: History, trial: int, step: int) -> bool:
        """Return True for the first report at or beyond each step at which trials are judged; not at the last step."""
        return self._look(history, trial, step) is not None

    def decide(self, history: History, trial: int, step: int) -> Verdict:
        """Return a verdict to continue or to prune."""
        look, record = self._look(history, trial, step), history.records[trial]
        if look is None:
            return GO
        others = [other for n, other in enumerate(history.records) if n != trial and not confirms(other.tags)]
        if any(other.step >= step and np.array_equal(other.x, record.x) for other in others):
            return GO
        if look == self._looks(history)[0]:
            here = 1 + sum(other.step >= look for other in others)
            first = self.first if history.planned is None else min(self.first, (history.planned - _added(history)) // 4)
            if here <= first:
                why = f"one of the first {first}, which end at step {look}: a look at others is worth more"
                return Verdict("prune", why, {"step": look, "place": here, "first": first})
        with limit_threads(1):
            return self._judged(history, trial)

    def _judged(self, history: History, trial: int) -> Verdict:
        search = _of_search(history.of_judged)
        fit = fit_curves(search, refit=False)
        others = np.delete(final_means(fit.gp, search), reported(search).index(trial))
        best = max(fit.incumbent, float(others.max())) if len(others) else fit.incumbent
        if best == -math.inf:  # there is no other
            return GO
        prediction = fit.prediction(history.records[trial].x)
        mean, sd = prediction["mean"], max(prediction["std"], LEAST_STD)
        probability = float(ndtr((mean - best) / sd))
        low, expected, high, above = fit.outputs.invert(np.array([mean - sd, mean, mean + sd, best])).tolist()
        why = (
            f"beats {in_words(history, above)} with probability {probability:.2g}: expects "
            f"{in_words(history, expected)}, from {in_words(history, low)} to {in_words(history, high)}"
        )
        numbers = {
            "probability": probability,
            "odds": self.odds,
            "expected": history.value_of(expected),
            "best": history.value_of(above),
        }
        return Verdict("prune" if probability < self.odds else "go", why, numbers)

    def _looks(self, history: History) -> tuple[int, ...]:
        """Return the steps at which trials are judged."""
        assert history.steps is not None
        steps = [max(1, round(history.steps / part)) for part in LOOKS]
        if self.grace is not None:
            steps = [self.grace, *(step for step in steps if step > self.grace)]
        return tuple(sorted({step for step in steps if step < history.steps}))

    def _look(self, history: History, trial: int, step: int) -> int | None:
        """Return the step of judgement that a reported, or next, step falls on; None if it falls on none."""
        assert history.steps is not None
        if step >= history.steps:
            return None
        reports = history.records[trial].reports
        place = bisect_left(reports, (step,))
        before = reports[place - 1][0] if place else 0
        return next((look for look in reversed(self._looks(history)) if before < look <= step), None)


def _of_search(history: History) -> History:
    """Return the history of one metric, without the reports of trials that confirm a configuration."""
    if not any(confirms(record.tags) for record in history.records):
        return history
    return history.plain(replace(r, state=State.LOST) if confirms(r.tags) else r for r in history.records)


def _added(history: History) -> int:
    """Count the planned trials that are results from elsewhere."""
    if not history.count_tag("origin"):
        return 0
    return sum(origin_of(record.tags) is Origin.ADDED for record in history.records)
