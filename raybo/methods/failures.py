"""The probability that a configuration succeeds, by the trials that have failed.

A Gaussian process is fitted to +1 for each trial that has finished and -1 for each that has failed; a trial succeeds
with the probability that a new observation of it, noise included, is positive.

With one metric and no constraints failed trials count as the worst value alone: there the probability in its place, as
a factor of the acquisition, led to more failures than that rule. With several metrics or constraints they count as the
worst of each, and the probability is a factor as well.

Rasmussen, Williams (2006), "Gaussian Processes for Machine Learning", section 6.5, least-squares classification;
Gelbart, Snoek, Adams (2014), "Bayesian optimization with unknown constraints", for the product.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raybo.acquisition import Acquisition, LogProbabilityOfImprovement, Observed, Total
from raybo.events import FAILURES, State, Tags
from raybo.history import History
from raybo.methods.fitting import fitted
from raybo.space import Array
from raybo.surrogate import Standardised, success_model

SUCCESS, FAILURE = 1.0, -1.0
TAG = "failures"
MARK: Tags = {TAG: "learnt"}


class Failures:
    """What the failures of a history teach.

    Attributes:
        are_learnt: whether there are any in a study with several metrics or constraints.
        tags: what a proposal has to remember.
    """

    def __init__(self, history: History, rng: np.random.Generator) -> None:
        self.are_learnt = not history.goals.is_plain and history.count(*FAILURES) > 0
        self.tags: Tags = dict(MARK) if self.are_learnt else {}
        self._success: Acquisition | None = None
        if self.are_learnt and history.count(State.FINISHED):
            self._success, tags = _success_of(history, rng)
            self.tags |= tags

    def times(self, acquisition: Acquisition) -> Acquisition:
        """The logarithm of an acquisition, or a bound, plus that of the probability of success."""
        return acquisition if self._success is None else Total([acquisition, self._success])

    def probability(self, X: Array) -> Array:  # (m, d) -> (m,)
        """How likely trials at the rows of X succeed."""
        return np.ones(len(X)) if self._success is None else np.asarray(np.exp(self._success.value(X)))

    def tags_at(self, x: Array) -> Tags:  # (d,)
        """What a proposal of x remembers: how likely it succeeds too."""
        known: Tags = {} if self._success is None else {"success": float(self.probability(x[None, :])[0])}
        return {**known, **self.tags}


def success_at(history: History, X: Array) -> Array:  # (m, d) -> (m,)
    """How likely trials at the rows of X succeed, by a history in which some have failed and some have not.

    Raises:
        NumericalError: the model cannot be fitted.
    """
    return np.asarray(np.exp(_success_of(history, np.random.default_rng(0))[0].value(X)))


def _success_of(history: History, rng: np.random.Generator) -> tuple[Acquisition, Tags]:
    """The logarithm of the probability of success, and what the next fit starts from."""
    ends = _ends(history)
    outputs = Standardised.of(ends.y)
    fit = fitted(ends, success_model(), rng, outputs=outputs, tag="theta_success")
    middle = float(outputs.apply(np.zeros(1))[0])
    return LogProbabilityOfImprovement(Observed(fit.gp), middle), fit.tags


def _ends(history: History) -> History:
    """The history as one of successes and failures: all trials that finished or failed, with their labels."""
    return history.plain(
        replace(record, state=State.FINISHED, y=FAILURE if record.has_failed else SUCCESS, Y=None, margins=None)
        if record.has_failed or record.state is State.FINISHED
        else record
        for record in history.records
    )
