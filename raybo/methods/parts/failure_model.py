"""The probability that a configuration succeeds, judged by the trials that have failed.

A Gaussian process is fitted to +1 for each trial that has finished and -1 for each that has failed; a trial succeeds
with the probability that a new observation of it, noise included, is positive.

This is for people to look at. For the methods, a failed trial counts as the worst value: using the probability instead,
as a factor of the acquisition, led to more failures.

Rasmussen, Williams (2006), "Gaussian Processes for Machine Learning", section 6.5, least-squares classification.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raybo.acquisition import LogProbabilityOfImprovement, Observed
from raybo.methods.parts.fitting import fitted
from raybo.record.history import History
from raybo.record.states import FAILURES, State
from raybo.space import Array
from raybo.surrogate import Standardised, success_model

SUCCESS, FAILURE = 1.0, -1.0
MOST, LEAST = 1_000, 100  # trials that the model knows: in all, and of either kind, if there are as many


def success_at(history: History, X: Array) -> Array:  # (m, d) -> (m,)
    """Return the probabilities that trials at the rows of X succeed, by a history in which some have failed.

    Raises:
        NumericalError: the model cannot be fitted.
    """
    ends = _ends(history)
    outputs = Standardised.of(ends.y)
    gp = fitted(ends, success_model(), np.random.default_rng(0), outputs=outputs).gp
    middle = float(outputs.apply(np.zeros(1))[0])
    return np.asarray(np.exp(LogProbabilityOfImprovement(Observed(gp), middle).value(X)))


def _ends(history: History) -> History:
    """The history as one of successes and failures: trials that finished or failed, labelled, and the others."""
    known = _known(history)
    return history.plain(
        replace(record, state=State.FINISHED, y=FAILURE if record.has_failed else SUCCESS, Y=None, margins=None)
        if number in known
        else record
        for number, record in enumerate(history.records)
        if number in known or not (record.has_failed or record.state is State.FINISHED)
    )


def _known(history: History) -> set[int]:
    """Numbers of the trials that the model knows: of more than MOST an even choice, with their share of failures."""
    failed, finished = history.records.numbers(*FAILURES), history.records.numbers(State.FINISHED)
    n = len(failed) + len(finished)
    if n > MOST:
        count = round(MOST * len(failed) / n)
        count = max(min(count, MOST - min(len(finished), LEAST)), min(len(failed), LEAST))
        failed, finished = (
            numbers[np.linspace(0, len(numbers) - 1, size).astype(int)]
            for numbers, size in ((failed, count), (finished, MOST - count))
        )
    return {*failed.tolist(), *finished.tolist()}
