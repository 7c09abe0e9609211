"""The probability that a configuration succeeds, by the trials that have failed.

A Gaussian process is fitted to +1 for each trial that has finished and -1 for each that has failed; a trial succeeds
with the probability that a new observation of it, noise included, is positive.

For people to look at. To the methods a failed trial counts as the worst value: the probability in its place, as a
factor of the acquisition, led to more failures than that.

Rasmussen, Williams (2006), "Gaussian Processes for Machine Learning", section 6.5, least-squares classification.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raybo.acquisition import LogProbabilityOfImprovement, Observed
from raybo.events import State
from raybo.history import History
from raybo.methods.fitting import fitted
from raybo.space import Array
from raybo.surrogate import Standardised, success_model

SUCCESS, FAILURE = 1.0, -1.0


def success_at(history: History, X: Array) -> Array:  # (m, d) -> (m,)
    """How likely trials at the rows of X succeed, by a history in which some have failed and some have not.

    Raises:
        NumericalError: the model cannot be fitted.
    """
    ends = _ends(history)
    outputs = Standardised.of(ends.y)
    gp = fitted(ends, success_model(), np.random.default_rng(0), outputs=outputs).gp
    middle = float(outputs.apply(np.zeros(1))[0])
    return np.asarray(np.exp(LogProbabilityOfImprovement(Observed(gp), middle).value(X)))


def _ends(history: History) -> History:
    """The history as one of successes and failures: all trials that finished or failed, with their labels."""
    return history.plain(
        replace(record, state=State.FINISHED, y=FAILURE if record.has_failed else SUCCESS, Y=None, margins=None)
        if record.has_failed or record.state is State.FINISHED
        else record
        for record in history.records
    )
