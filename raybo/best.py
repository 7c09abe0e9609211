"""The best trial of a study: by its value, or where contexts decide too, by what is to be expected of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from raybo.errors import TrialError
from raybo.history import History, State, Trial
from raybo.space import Array
from raybo.threads import limit_threads


def best_trial(trials: Sequence[Trial], history: History, c: Array | None = None) -> Trial:
    """The best finished trial, the earliest of equals.

    Where a context is declared: the one with the best estimated expectation over it, or value at a context. The
    estimate and its standard deviation are in `details`.

    Args:
        trials: as users see them.
        history: the same as methods see them.
        c: (dc,), the context in the unit cube; None for the expectation.
    Raises:
        TrialError: no trial has finished.
    """
    if history.context_cube is None:
        finished = [trial for trial in trials if trial.state is State.FINISHED]
        if not finished:
            raise TrialError("no trial has finished yet, so there is no best one")
        return max(finished, key=lambda trial: (history.sign * cast(float, trial.value), -trial.number))
    from raybo.context import best_expected, best_for  # loads the Gaussian process

    with limit_threads(1):
        number, mean, sd = best_expected(history) if c is None else best_for(history, c)
    known = {} if math.isnan(sd) else {"expected": history.sign * mean, "expected_sd": sd}
    return replace(trials[number], details={**trials[number].details, **known})
