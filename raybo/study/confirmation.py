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
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.common.arguments import whole_number
from raybo.common.errors import MethodError
from raybo.common.messages import shown
from raybo.record.confirmed import again
from raybo.record.history import History
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.space import Array


@dataclass(frozen=True)
class Confirm:
    """The number of configurations that are run again, and of runs of each."""

    configurations: int
    repeats: int

    @classmethod
    def of(cls, given: object, name: str = "confirm") -> Confirm:
        """From `5x3`, or a pair; MethodError, with the argument's name, where it is neither."""
        if isinstance(given, Confirm):
            return given
        found = re.fullmatch(r"\s*(\d+)\s*[xX]\s*(\d+)\s*", given) if isinstance(given, str) else None
        pair: Any = [int(n) for n in found.groups()] if found else given
        with contextlib.suppress(MethodError):
            if isinstance(pair, (tuple, list)) and len(pair) == 2:
                return cls(*(whole_number(n, name) for n in pair))
        raise MethodError(f"{name} must be KxR, such as 5x3: configurations times runs of each, got {shown(given)}")


def most_promising(trials: Sequence[Trial], history: History, count: int) -> list[int]:
    """Numbers of the search's finished trials that a model expects most of, each configuration once, the best first.

    Where no model can be made, those with the best values.
    """
    done = [t.number for t in trials if t.state is State.FINISHED and t.origin is not Origin.CONFIRMED]
    rows = [number for number in done if trials[number].feasible]
    if not rows:
        return []
    X, y = _points(history, rows)
    from raybo.surrogate.noisy_trials import Expectation  # loads the Gaussian process

    model = Expectation.of(*_points(history, done), history.cube.categorical)  # as the recommendation's
    found: list[int] = []
    for i in np.argsort(-y, kind="stable") if model is None else model.ranking(X, y):
        if not any(np.array_equal(X[i], history.records[number].x) for number in found):
            found.append(rows[i])
        if len(found) == count:
            break
    return found


def _points(history: History, numbers: Sequence[int]) -> tuple[Array, Array]:
    """Return the points (n, d) and maximised values (n,) of finished trials."""
    records = [history.records[number] for number in numbers]
    return np.array([record.x for record in records]), np.array([record.y for record in records], dtype=np.float64)


def still_to_run(confirm: Confirm, trials: Sequence[Trial], history: History) -> list[int]:
    """Numbers of the trials whose configurations are to be run again, one for each run, in rounds."""
    chosen = most_promising(trials, history, confirm.configurations)
    counts = {number: sum(trial.tags["confirms"] == number for trial in again(trials)) for number in chosen}
    return [number for run in range(confirm.repeats) for number in chosen if counts[number] <= run]
