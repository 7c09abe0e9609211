"""The configurations that were run again at the end of a study, and what their further runs came to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raybo.record.goals import Goal
from raybo.record.history import History
from raybo.record.origin import Origin
from raybo.record.states import OPEN, State
from raybo.record.trial import Trial


@dataclass(frozen=True)
class Confirmed:
    """A configuration that was run again.

    Attributes:
        trial: the search's trial of it.
        values: of its further runs, in the user's sign.
        mean: their mean. error: the mean's standard error; None where there is one run only.
        planned: how many further runs there are, failed and pending ones too.
        infeasible: how many of them break a constraint.
    """

    trial: Trial
    values: tuple[float, ...]
    planned: int
    infeasible: int = 0

    @property
    def mean(self) -> float:
        """Of the further runs."""
        return float(np.mean(self.values))

    @property
    def error(self) -> float | None:
        """The mean's standard error."""
        return float(np.std(self.values, ddof=1) / math.sqrt(len(self.values))) if len(self.values) > 1 else None


def again(trials: Sequence[Trial]) -> list[Trial]:
    """The trials that run a configuration again; those that the user stopped do not count."""
    return [trial for trial in trials if trial.origin is Origin.CONFIRMED and trial.state is not State.STOPPED]


def again_count(trials: Sequence[Trial], history: History) -> int:
    """Return the number of trials that run a configuration again; quick if none of the history does."""
    return len(again(trials)) if history.count_tag("confirms") else 0


def confirmed(trials: Sequence[Trial], history: History, goal: Goal) -> list[Confirmed]:
    """Return the configurations that were run again, the best mean first; empty if there are none.

    Those come first of which more of the further runs have ended with a value, and keep the constraints: the mean over
    the runs that survive is biased, and a trial of the search may be lucky.
    """
    runs: dict[int, list[Trial]] = {}
    for trial in again(trials):
        runs.setdefault(int(trial.tags["confirms"]), []).append(trial)
    found = [
        Confirmed(
            trials[number],
            tuple(t.value for t in each if t.value is not None),
            len(each),
            sum(_breaks(t, history) for t in each),
        )
        for number, each in runs.items()
    ]
    done = [each for each in found if each.values]
    ordered = [done[i] for i in goal.best_first([each.mean for each in done])] if done else []
    kept = {
        number: np.mean([t.value is not None and not _breaks(t, history) for t in each if t.state not in OPEN])
        for number, each in runs.items()
        if any(t.value is not None for t in each)
    }
    return sorted(ordered, key=lambda each: -kept[each.trial.number])


def _breaks(trial: Trial, history: History) -> bool:
    """True if it breaks a constraint, or was ended as a report broke one that must hold at every step."""
    goals = history.goals
    return bool(trial.violations or goals.violations(goals.worst_margins(history.records[trial.number].curves)))
