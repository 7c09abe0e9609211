"""Recommends a trial, and predicts the values of trials by a model.

    best             by value; with a context, by the estimated expectation over it
    best_expected    by what a model expects: with noise, the luckiest trial is not the best
    best_for         by the estimated value in one context
    expected_gain    how much a proposal promises, of which `--stop-below-gain` makes an end

With noise the model is that of `raybo.surrogate.noisy_trials`, with a context that of `raybo.context`, whatever method
ran the study. Both take time, so they are loaded and fitted when they are first needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from raybo.common.threads import limit_threads
from raybo.record.contexts import told_context
from raybo.record.history import History
from raybo.record.ledger import Ledger
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.space import Array

if TYPE_CHECKING:
    from raybo.surrogate.noisy_trials import Expectation

Expected: TypeAlias = tuple[float, float]  # mean and standard deviation, in the user's sign and units

EXPECTED = ("expected", "expected_sd")  # names of both, in a trial's details and in exports
LIKELY = 2_000  # trials of which a model may expect most: those with the best values


class Recommender:
    """Recommends trials of a study. A model is fitted once, and again after further events.

    Args:
        ledger: the study, which may grow.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._fitted: tuple[int, Expectation | None] | None = None  # after which event

    @property
    def best(self) -> Trial:
        """The best feasible trial, the earliest of equals; with a context, by the estimated expectation over it.

        If nothing has finished, it is the `furthest` of the pruned trials, which has no value.

        Raises:
            TrialError: no trial has finished or was pruned, none that has finished is feasible, or there are several
                metrics.
        """
        ledger = self._ledger
        if ledger.context is None or ledger.incumbent is None:
            return ledger.best
        from raybo.context import best_expected

        with limit_threads(1):
            return self._with_estimate(*best_expected(ledger.history))

    @property
    def best_expected(self) -> Trial:
        """The finished trial of which a model expects most; `best` if trials are too few for one.

        Its details hold the estimate and its standard deviation. Of more than 2,000 trials, the best 2,000 compete.

        Raises:
            TrialError: as `best`.
        """
        history, incumbent = self._ledger.history, self._ledger.incumbent
        if self._ledger.context is not None or incumbent is None:
            return self.best  # or the reason why there is none
        model = self._model()
        if model is None:
            return incumbent
        y = history.y
        worth = np.where(history.feasible, y, -np.inf)
        likely = np.sort(np.argsort(-worth, kind="stable")[:LIKELY])
        with limit_threads(1):
            means = np.where(np.isfinite(worth[likely]), model.at(history.X[likely])[0], -np.inf)
            place = likely[int(np.lexsort((-y[likely], -means))[0])]
            mean, sd = model.at(history.X[place][None, :])
        return self._with_estimate(int(history.records.numbers(State.FINISHED)[place]), float(mean[0]), float(sd[0]))

    def best_for(self, context: Mapping[str, Any]) -> Trial:
        """The finished trial with the best estimated value in a context.

        Raises:
            TrialError: no trial has finished, or the context does not match the declared one.
        """
        c = np.array(told_context(self._ledger.context, context, "best_for")["c"])
        from raybo.context import best_for

        with limit_threads(1):
            return self._with_estimate(*best_for(self._ledger.history, c))

    def expectations(self) -> dict[int, Expected] | None:
        """By number of each finished trial, the value that a model expects and its standard deviation.

        Empty while trials are too few for a model; None with several metrics or a context.
        """
        ledger = self._ledger
        if ledger.goals.k > 1 or ledger.context is not None:
            return None
        model = self._model()
        if model is None:
            return {}
        with limit_threads(1):
            means, sds = model.at(ledger.history.X)
        values = ledger.goal.value_of(means).tolist()
        numbers = ledger.history.records.numbers(State.FINISHED).tolist()
        return dict(zip(numbers, zip(values, sds.tolist(), strict=True), strict=True))

    def expected(self, trial: Trial | int) -> Expected | None:
        """The value that a model expects at a trial's configuration, and its standard deviation.

        None while trials are too few for a model, and with several metrics. With a context, the estimate by which the
        trial was recommended; None for other trials.

        Raises:
            TrialError: there is no such trial.
        """
        ledger = self._ledger
        number = ledger.history.require(trial)
        if isinstance(trial, Trial) and trial.details.keys() >= set(EXPECTED):
            mean, sd = (float(trial.details[name]) for name in EXPECTED)
            return mean, sd
        if ledger.goals.k > 1 or ledger.context is not None:
            return None
        model = self._model()
        if model is None:
            return None
        with limit_threads(1):
            means, sds = model.at(ledger.history.records[number].x[None, :])
        return ledger.goal.value_of(float(means[0])), float(sds[0])

    def _model(self) -> Expectation | None:
        """The model of all finished trials; None while they are too few."""
        if self._fitted is None or self._fitted[0] != self._ledger.last_event:
            self._fitted = self._ledger.last_event, _fitted(self._ledger.history)
        return self._fitted[1]

    def _with_estimate(self, number: int, mean: float, sd: float) -> Trial:
        """The trial with the estimate (maximised) in its details, if there is one."""
        trial = self._ledger.trials[number]
        if math.isnan(sd):
            return trial
        return trial.with_estimate(dict(zip(EXPECTED, (self._ledger.goal.value_of(mean), sd), strict=True)))


def expected_gain(history: History, x: Array) -> float | None:
    """Return the expected improvement of a point (d,) on the best value, in the metric's units.

    None while trials are too few to expect anything.
    """
    model = _fitted(history)
    if model is None or not history.feasible.any():
        return None
    with limit_threads(1):
        return float(model.gain(x[None, :], float(history.y[history.feasible].max()))[0])


def _fitted(history: History) -> Expectation | None:
    from raybo.surrogate.noisy_trials import Expectation

    with limit_threads(1):
        return Expectation.of(history.X, history.y, history.cube.categorical)
