"""asha: at each rung only the best of the trials that have reached it continue, without waiting for slow ones.

Li, Jamieson, Rostamizadeh, Gonina, Ben-tzur, Hardt, Recht, Talwalkar (2020), "A System for Massively Parallel
Hyperparameter Tuning", MLSys, arXiv:1810.05934, algorithm 2, which is `variant=promote`. `variant=stop` never
pauses, for trials without checkpoints: a trial that is not in the top at a rung ends.
Ours: if a rung has fewer than eta trials, "stop" lets the best one continue, so that the first trial is never ended; a
trial that would be the next to be promoted continues at once. In a study that would end without a result, one of the
waiting trials continues, see `last_resort`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

from raybo.common.options import option
from raybo.record.history import History
from raybo.schedulers.rungs import Climbed, Ladder, climbed_by, is_paused, judged, last_resort, promotable, rung_at
from raybo.schedulers.scheduler import Scheduler
from raybo.schedulers.verdict import GO, Verdict

Variant: TypeAlias = Literal["stop", "promote"]


@dataclass(frozen=True, kw_only=True)
class Asha(Scheduler):
    """Successive halving without waiting: at the steps grace * eta^k only the top 1 / eta go on.

    Li et al. (2020), "A System for Massively Parallel Hyperparameter Tuning", algorithm 2.
    """

    grace: int = option(1, "the first step at which trials are compared", at_least=1)
    eta: int = option(4, "one in eta trials at a rung goes on, and the next rung is eta times as far", at_least=2)
    variant: Variant = option("stop", "what happens to the others: stop ends them, promote pauses them")

    def decides(self, history: History, trial: int, step: int) -> bool:
        """Return True at the rungs."""
        ladder = self._ladder(history)
        return rung_at(history, ladder, trial, step) is not None

    def decide(self, history: History, trial: int, step: int) -> Verdict:
        """Return a verdict to continue in the top, otherwise to end or to wait."""
        ladder = self._ladder(history)
        return verdict(self._climbed(history), history, ladder, trial, step, self.variant)

    def next_promoted(self, history: History) -> int | None:
        """Return the best paused trial in the top of the highest rung."""
        if self.variant == "stop":
            return None
        waits = partial(is_paused, history)
        chosen = promotable(self._climbed(history), history, self._ladder(history), waits)
        return last_resort(history, waits) if chosen is None else chosen

    def _ladder(self, history: History) -> Ladder:
        assert history.steps is not None
        return Ladder(self.grace, self.eta, history.steps)

    def _climbed(self, history: History) -> Climbed:
        ladder = self._ladder(history)
        return climbed_by(history, ladder, lambda trial: ladder)


def verdict(climbed: Climbed, history: History, ladder: Ladder, trial: int, step: int, variant: Variant) -> Verdict:
    """Return the verdict on a trial at a step of its ladder."""
    rung = rung_at(history, ladder, trial, step)
    if rung is None:
        return GO
    in_top, said = judged(climbed, history, ladder, trial, rung)
    if variant == "stop":
        return said if in_top else replace(said, action="prune")

    def waits(other: int) -> bool:
        return other == trial or is_paused(history, other)

    chosen = promotable(climbed, history, ladder, waits)
    if chosen is None:
        chosen = last_resort(history, waits)
    return said if chosen == trial else replace(said, action="pause")
