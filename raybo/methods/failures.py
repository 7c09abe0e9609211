"""The probability that a configuration succeeds, by the trials that have failed.

`auto` weighs what a point is worth with it, log P added, beside counting failed trials as the worst value seen. The
probability alone, with failed trials left out of the model of the values, led to more failures than the worst value
alone; so did a classifier by least squares in place of the probit, which is too sure of itself.
"""

from __future__ import annotations

import numpy as np

from raybo.acquisition import Acquisition, LogProbabilityOfImprovement, Observed
from raybo.events import State
from raybo.history import History
from raybo.space import Array
from raybo.surrogate import Classifier

LATEST = 120  # trials that are learnt from: where the search is now


def log_success(history: History) -> Acquisition:
    """The logarithm of the probability that a trial succeeds, by a history in which one has failed.

    Raises:
        NumericalError: the model cannot be fitted.
    """
    ended = [record for record in history.records if record.has_failed or record.state is State.FINISHED][-LATEST:]
    X = np.array([record.x for record in ended])
    classifier = Classifier.of(X, [not record.has_failed for record in ended], history.cube.categorical)
    return LogProbabilityOfImprovement(Observed(classifier.gp), -classifier.offset)


def success_at(history: History, X: Array) -> Array:  # (m, d) -> (m,)
    """How likely trials at the rows of X succeed; raises as `log_success`."""
    return np.asarray(np.exp(log_success(history).value(X)))
