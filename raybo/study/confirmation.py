"""The last trials of a study: its most promising configurations once more, with other seeds, and whose mean is best.

    raybo tune job.py --trials 60 --confirm 5x3        15 trials after the 60: five configurations, three times each

Of values that are noisy, the best is the luckiest as much as the best, and a model evens that out only in part. So the
configurations that a model expects most of are run again, each trial with a seed of its own
(`raybo.current_trial().seed`), and the recommendation goes by the means of these runs: the values that they were chosen
for do not count.

Which they are is a pure function of the trials of the search, and what is still to be run follows from the journal; so
an interrupted confirmation goes on where it was.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.common.arguments import whole_number
from raybo.common.errors import MethodError
from raybo.common.messages import shown
from raybo.record.goals import Goal
from raybo.record.history import History
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.record.trial import Trial


@dataclass(frozen=True)
class Confirm:
    """The number of configurations that are run again, and of runs of each."""

    configurations: int
    repeats: int

    @classmethod
    def of(cls, given: object) -> Confirm:
        """From `5x3`, or a pair; MethodError where it is neither."""
        if isinstance(given, Confirm):
            return given
        found = re.fullmatch(r"\s*(\d+)\s*[xX]\s*(\d+)\s*", given) if isinstance(given, str) else None
        pair: Any = [int(n) for n in found.groups()] if found else given
        with contextlib.suppress(MethodError):
            if isinstance(pair, (tuple, list)) and len(pair) == 2:
                return cls(*(whole_number(n, "confirm") for n in pair))
        raise MethodError(f"confirm must be KxR, such as 5x3: configurations times runs of each, got {shown(given)}")


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


def most_promising(trials: Sequence[Trial], history: History, count: int) -> list[int]:
    """Numbers of the search's finished trials that a model expects most of, each configuration once, the best first.

    Where no model can be made, those with the best values.
    """
    rows = [trial.number for trial in trials if trial.feasible and trial.origin is not Origin.CONFIRMED]
    if not rows:
        return []
    X = np.array([history.records[number].x for number in rows])
    y = np.array([history.records[number].y for number in rows], dtype=np.float64)
    from raybo.surrogate.noisy_trials import Expectation  # loads the Gaussian process

    model = Expectation.of(X, y, history.cube.categorical)
    worth = y if model is None else model.at(X)[0]
    found: list[int] = []
    for i in np.lexsort((-y, -worth)):
        if not any(np.array_equal(X[i], history.records[number].x) for number in found):
            found.append(rows[i])
        if len(found) == count:
            break
    return found


def still_to_run(confirm: Confirm, trials: Sequence[Trial], history: History) -> list[int]:
    """Numbers of the trials whose configurations are to be run again, one for each run, in rounds."""
    chosen = most_promising(trials, history, confirm.configurations)
    counts = {number: sum(trial.tags["confirms"] == number for trial in again(trials)) for number in chosen}
    return [number for run in range(confirm.repeats) for number in chosen if counts[number] <= run]


def again(trials: Sequence[Trial]) -> list[Trial]:
    """The trials that run a configuration again; those that the user stopped do not count."""
    return [trial for trial in trials if trial.origin is Origin.CONFIRMED and trial.state is not State.STOPPED]


def again_count(trials: Sequence[Trial], history: History) -> int:
    """Return the number of trials that run a configuration again; quick if none of the history does."""
    return len(again(trials)) if history.count_tag("confirms") else 0


def confirmed(trials: Sequence[Trial], history: History, goal: Goal) -> list[Confirmed]:
    """Return the configurations that were run again, the best mean first; empty if there are none.

    With constraints, those that keep them in more of the further runs come first: a trial of the search may be lucky.
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
    return sorted(ordered, key=lambda each: each.infeasible)


def _breaks(trial: Trial, history: History) -> bool:
    """True if it breaks a constraint, or was ended as a report broke one that must hold at every step."""
    goals = history.goals
    return bool(trial.violations or goals.violations(goals.worst_margins(history.records[trial.number].curves)))
